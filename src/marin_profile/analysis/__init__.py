"""One question, one module: pure functions from a Timeline's devices to typed, mergeable results.

All times are integer picoseconds; conversion to microseconds happens once, in `summarize`.
"""
