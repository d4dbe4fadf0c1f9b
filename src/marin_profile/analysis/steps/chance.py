"""How far the mean period of a capture may be off by chance.

Contract: steps that follow each other are alike, so n of them count as n (1 - r) / (1 + r), r being
the correlation of neighbours (0 to MOST_ALIKE). What differs from run to run is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean

LEAST_PERIODS = 4
MOST_ALIKE = 0.9
TWO_SIDED_95 = 1.96


def error_of_mean(periods: Sequence[float]) -> float | None:
    """Half of the 95 % interval of the mean; None for fewer periods than LEAST_PERIODS."""
    count = len(periods)
    if count < LEAST_PERIODS:
        return None
    mean = fmean(periods)
    off = [period - mean for period in periods]
    squares = sum(one * one for one in off)
    if not squares:
        return 0.0
    alike = min(max(sum(one * two for one, two in pairwise(off)) / squares, 0.0), MOST_ALIKE)
    counted = count * (1 - alike) / (1 + alike)
    return TWO_SIDED_95 * sqrt(squares / (count - 1) / counted)
