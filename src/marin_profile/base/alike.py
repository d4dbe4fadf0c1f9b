"""As how many independent values those of a series count.

Contract: neighbours are alike, so n values count as n (1 - r) / (1 + r), r being the correlation of
neighbours (0 to MOST_ALIKE). Equal values count each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, variance

MOST_ALIKE = 0.9


def independent(values: Sequence[float]) -> float:
    """Of two values or more, in their order."""
    centre, spread = fmean(values), variance(values)
    if not spread:
        return float(len(values))
    neighbours = sum((a - centre) * (b - centre) for a, b in pairwise(values))
    alike = min(max(neighbours / (spread * (len(values) - 1)), 0.0), MOST_ALIKE)
    return len(values) * (1.0 - alike) / (1.0 + alike)
