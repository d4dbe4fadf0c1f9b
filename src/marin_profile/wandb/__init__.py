"""W&B: artifacts and runs in, artifacts out.

Contract: `session` alone imports the SDK; everything else gets it from there.
"""
