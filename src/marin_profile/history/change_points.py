"""Where a series of log step times changed its level for good.

Contract
* Deterministic; nothing is drawn at random. The input is in order of time, a natural log each.
* Candidates: the split into segments of at least 3 values with the least
  sum of squares / s^2 + 2 ln(n) per segment, found exactly (optimal partitioning: Jackson et al.
  2005). s is the median absolute difference of neighbours / (0.6745 sqrt 2): a shift does not
  inflate it.
* A candidate stays if Student's t test of the segments on both sides (equal variances) gives
  p < 0.001, also p * (number of places where the split could have been) < 0.01; if Welch's test
  (each side's own variance) gives p < 0.02, which a few slow runs among three do not; and if the
  level shifts by at least 1 %. The weakest that fails goes first, and its segments become one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.student import two_sided_p

SHORTEST_SEGMENT = 3
LARGEST_P = 0.001
LARGEST_P_OF_ALL_PLACES = 0.01
LARGEST_WELCH_P = 0.02
SMALLEST_SHIFT = math.log(1.01)
# No step times repeat more exactly than this (0.05 %): a constant series has some noise too.
SMALLEST_SD = 0.0005


@dataclass(frozen=True)
class ChangePoint:
    """`index` is the first value at the new level; levels are means of logs, `p` is two-sided."""

    index: int
    level_before: float
    level_after: float
    p: float

    @property
    def ratio(self) -> float:
        """The new level as a multiple of the old one."""
        return math.exp(self.level_after - self.level_before)


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """The changes of level, in order."""
    series = np.asarray(values, np.float64)
    bounds = _best_bounds(series)
    while len(bounds) > 2:
        tested = [_tested(series, *bounds[at - 1 : at + 2]) for at in range(1, len(bounds) - 1)]
        failing = [(-worth, point.index) for point, worth in tested if worth < 0]
        if not failing:
            return [point for point, _ in tested]
        bounds.remove(max(failing)[1])
    return []


def _best_bounds(series: NDArray[np.float64]) -> list[int]:
    """0, the candidates, and the length."""
    count = len(series)
    if count < 2 * SHORTEST_SEGMENT:
        return [0, count]
    spread = float(np.median(np.abs(np.diff(series)))) / (0.6745 * math.sqrt(2))
    scale = max(spread, SMALLEST_SD) ** 2
    penalty = 2 * math.log(count)
    centred = series - series.mean()
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred**2)))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(count + 1, np.int64)
    for end in range(SHORTEST_SEGMENT, count + 1):
        start = np.arange(end - SHORTEST_SEGMENT + 1)
        total = sums[end] - sums[start]
        cost = (squares[end] - squares[start] - total**2 / (end - start)) / scale
        whole = best[start] + cost + penalty
        previous[end] = int(np.argmin(whole))
        best[end] = whole[previous[end]]
    bounds = [count]
    while bounds[-1] > 0:
        bounds.append(int(previous[bounds[-1]]))
    return bounds[::-1]


def _tested(
    series: NDArray[np.float64], start: int, split: int, end: int
) -> tuple[ChangePoint, float]:
    """The change and its score: below 0 it fails, and the lowest is the weakest."""
    left, right = series[start:split], series[split:end]
    shift = float(right.mean() - left.mean())
    p = _pooled_p(left, right, shift)
    point = ChangePoint(split, float(left.mean()), float(right.mean()), p)
    if abs(shift) < SMALLEST_SHIFT:
        return point, abs(shift) / SMALLEST_SHIFT - 3
    if _welch_p(left, right, shift) > LARGEST_WELCH_P:
        return point, -1 - p
    places = end - start - 2 * SHORTEST_SEGMENT + 1
    return point, min(LARGEST_P, LARGEST_P_OF_ALL_PLACES / places) - p


def _pooled_p(left: NDArray[np.float64], right: NDArray[np.float64], shift: float) -> float:
    degrees = len(left) + len(right) - 2
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    sd = max(math.sqrt(squares / degrees), SMALLEST_SD)
    return two_sided_p(shift / (sd * math.sqrt(1 / len(left) + 1 / len(right))), degrees)


def _welch_p(left: NDArray[np.float64], right: NDArray[np.float64], shift: float) -> float:
    first, second = (
        max(float(side.var(ddof=1)), SMALLEST_SD**2) / len(side) for side in (left, right)
    )
    degrees = (first + second) ** 2 / (first**2 / (len(left) - 1) + second**2 / (len(right) - 1))
    return two_sided_p(shift / math.sqrt(first + second), degrees)
