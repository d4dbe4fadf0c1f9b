"""How much one configuration varies from run to run, measured on repeats.

Contract
* Repeats are runs of one commit. The spread is that of the log step time (one figure a run) about
  its commit's mean, pooled over the commits: their degrees of freedom add up, and a change from one
  commit to the next is no noise.
* Outliers are left out: runs farther from their commit's median than OUTLIER times the spread that
  the median difference of two runs of one commit gives (Shamos 1976; each commit weighs as its
  degrees of freedom; of many runs, those at most FARTHEST apart). Below three degrees of freedom no
  outlier can be told.
* Fewer than two degrees of freedom (three runs of one commit) are no measurement.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

LEAST_DEGREES_OF_FREEDOM = 2
LEAST_TO_TELL_OUTLIERS = 3
OUTLIER = 6.0
FARTHEST = 25
# No step times repeat more exactly than this (0.05 %): equal ones do not make the next an outlier.
SMALLEST_SD = 0.0005
# The median of |a - b| for a, b of a normal distribution, as a multiple of its sd.
_MEDIAN_DIFFERENCE = math.sqrt(2) * statistics.NormalDist().inv_cdf(0.75)


@dataclass(frozen=True)
class NoiseFloor:
    """Run-to-run spread of the log step time of one configuration: `num_repeats` runs of
    `num_commits` commits, without `num_outliers` others."""

    num_repeats: int
    log_sd: float
    num_commits: int = 1
    num_outliers: int = 0

    @property
    def degrees_of_freedom(self) -> int:
        return self.num_repeats - self.num_commits


@dataclass(frozen=True)
class Floors:
    """What runs of one configuration differ by in each estimand, where it was measured."""

    typical: NoiseFloor | None = None
    mean: NoiseFloor | None = None


def noise_floor(commits: Sequence[Sequence[float]]) -> NoiseFloor | None:
    """From the log step times of each commit's runs; None where they are too few."""
    repeated = [runs for runs in commits if len(runs) > 1]
    kept = [runs for runs in _without_outliers(repeated) if len(runs) > 1]
    num_repeats = sum(map(len, kept))
    freedom = num_repeats - len(kept)
    if freedom < LEAST_DEGREES_OF_FREEDOM:
        return None
    squares = math.fsum((len(runs) - 1) * statistics.variance(runs) for runs in kept)
    num_outliers = sum(map(len, repeated)) - num_repeats
    return NoiseFloor(num_repeats, math.sqrt(squares / freedom), len(kept), num_outliers)


def _without_outliers(commits: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    if sum(len(runs) - 1 for runs in commits) < LEAST_TO_TELL_OUTLIERS:
        return commits
    farthest = OUTLIER * max(_robust_sd(commits), SMALLEST_SD)
    medians = [statistics.median(runs) for runs in commits]
    return [
        [run for run in runs if abs(run - median) <= farthest]
        for runs, median in zip(commits, medians, strict=True)
    ]


def _robust_sd(commits: Sequence[Sequence[float]]) -> float:
    """The weighted lower median of the differences inside commits, over that of sd 1."""
    weighted = []
    for runs in commits:
        apart = range(1, min(len(runs), FARTHEST + 1))
        found = [abs(a - b) for by in apart for a, b in zip(runs, runs[by:], strict=False)]
        weighted += [(one, (len(runs) - 1) / len(found)) for one in found]
    weighted.sort()
    reached = list(accumulate(weight for _, weight in weighted))
    middle = bisect_left(reached, reached[-1] / 2 * (1 - 1e-9))
    return weighted[middle][0] / _MEDIAN_DIFFERENCE
