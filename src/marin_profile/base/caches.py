"""Answers about text that repeats, kept within bounds: a process that reads many profiles, or one
with names without end, does not grow by them."""

from __future__ import annotations

from functools import lru_cache

# More than a large model's programs have instructions.
MOST_KEPT = 1 << 14

cached = lru_cache(maxsize=MOST_KEPT)
