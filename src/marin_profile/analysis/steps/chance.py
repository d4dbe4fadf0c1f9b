"""How far the mean period of a capture may be off by chance.

Contract: steps that follow each other are alike, and count as fewer (`alike`). What differs from
run to run is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import variance

from marin_profile.base.alike import independent

LEAST_PERIODS = 4
TWO_SIDED_95 = 1.96


def error_of_mean(periods: Sequence[float]) -> float | None:
    """Half of the 95 % interval of the mean; None for fewer periods than LEAST_PERIODS."""
    if len(periods) < LEAST_PERIODS:
        return None
    return TWO_SIDED_95 * sqrt(variance(periods) / independent(periods))
