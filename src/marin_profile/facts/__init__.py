"""Figures that several views read off a summary: summary in, typed rows out."""
