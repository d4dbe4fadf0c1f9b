"""What to try next: `rules` has the table of rules, and ranks what they find; a module per subject.

Nothing is imported here: what rules say about a capture is read without numba.
"""
