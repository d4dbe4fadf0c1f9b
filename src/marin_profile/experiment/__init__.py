"""Experiments: which arm is faster than the control, which commit made the step slower."""
