"""Where a series of log step times changed its level for good.

Contract
* Deterministic; nothing is drawn at random. The input is in order of time, a natural log each.
* Values are first drawn to within 3 s of the running median of 5, s being the median absolute
  difference of neighbours / (0.6745 sqrt 2): neither outliers nor a shift inflate it.
* Candidates: the best split into segments of at least 3 values (see `segments`), by
  sum of squares / s^2 + 2 ln(n) per segment; each split goes to the place within 2 of it with the
  least absolute deviations, since an outlier beside it moves the running median.
* A candidate stays if Student's t test of the segments on both sides (equal variances) gives
  p < 0.001, also p * (number of places where the split could have been) < 0.01; if Welch's test
  (each side's own variance) gives p < 0.02; if the ranks differ (Mann-Whitney); if the shorter side
  is no run of outliers such as the rest holds one by one; and if the level shifts by at least 1 %.
  Both t tests allow for neighbours that are alike (AR(1), see `autocorrelation`). Of what fails,
  the weakest go first, no two side by side, and their segments become one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marin_profile.history.segments import best_bounds
from marin_profile.verdict.noise import SMALLEST_SD
from marin_profile.verdict.student import Floats, incomplete_beta, two_sided_p

SHORTEST_SEGMENT = 3
LARGEST_P = 0.001
LARGEST_P_OF_ALL_PLACES = 0.01
LARGEST_WELCH_P = 0.02
LEAST_RANK_Z = 2.6
SMALLEST_SHIFT = math.log(1.01)
OUTLIER = 3.0
NEARBY = 2
# From here on the shorter side of a shift may be outliers.
LARGE_SHIFT = 4.0
# The autocorrelation is drawn towards PRIOR_PHI as by PRIOR_COUNT more values.
PRIOR_PHI, PRIOR_COUNT, MOST_PHI = 0.5, 12.0, 0.9


@dataclass(frozen=True)
class ChangePoint:
    """`index` is the first value at the new level; levels are means of logs without what outliers
    add, `p` is two-sided."""

    index: int
    level_before: float
    level_after: float
    p: float

    @property
    def ratio(self) -> float:
        """The new level as a multiple of the old one."""
        return math.exp(self.level_after - self.level_before)


@dataclass(frozen=True)
class _Series:
    values: Floats
    drawn_in: Floats
    spread: float


@dataclass(frozen=True)
class Shift:
    """From one group of values to another: `p` by Student's test, `error` and `freedom` Welch's."""

    before: float
    after: float
    p: float
    error: float
    freedom: float

    @property
    def size(self) -> float:
        return self.after - self.before


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """The changes of level, in order."""
    if len(values) < 2 * SHORTEST_SEGMENT:
        return []
    whole = np.asarray(values, np.float64)
    drawn_in, spread = without_outliers(whole)
    series = _Series(whole, drawn_in, spread)
    penalty = 2 * math.log(len(values))
    bounds = best_bounds((drawn_in / spread).tolist(), penalty, SHORTEST_SEGMENT)
    while len(bounds) > 2:
        bounds = _settled(series, bounds)
        phi = autocorrelation(drawn_in, bounds)
        tested = [_tested(series, bounds, at, phi) for at in range(1, len(bounds) - 1)]
        if all(worth >= 0 for _, worth in tested):
            return [point for point, _ in tested]
        gone = _weakest([worth for _, worth in tested])
        bounds = [0, *(one for at, one in enumerate(bounds[1:-1]) if at not in gone), bounds[-1]]
    return []


def _weakest(worths: Sequence[float]) -> set[int]:
    """Of what fails, all that is weaker than both neighbours; of equals the first."""
    padded = [math.inf, *worths, math.inf]
    return {
        at
        for at, (before, worth, after) in enumerate(zip(padded, worths, padded[2:], strict=False))
        if worth < 0 and worth < before and worth <= after
    }


def _settled(series: _Series, bounds: Sequence[int]) -> list[int]:
    """No segment becomes shorter than SHORTEST_SEGMENT; outliers count as no more than such."""
    values, most = series.values, OUTLIER * series.spread
    settled = list(bounds)
    for at in range(1, len(bounds) - 1):
        start, split, end = settled[at - 1], bounds[at], bounds[at + 1]
        left, right = np.median(values[start:split]), np.median(values[split:end])
        room = end - SHORTEST_SEGMENT - (NEARBY if at + 2 < len(bounds) else 0)
        last = max(split, min(split + NEARBY, room))
        first = max(start + SHORTEST_SEGMENT, split - NEARBY)
        between = values[first:last]
        to_left, to_right = (np.minimum(np.abs(between - level), most) for level in (left, right))
        # What each place takes less than the first one, which leaves all values to the right.
        gains = np.concatenate(([0.0], np.cumsum(to_right - to_left)))
        settled[at] = first + max(
            range(len(gains)), key=lambda moved: (gains[moved], -abs(first + moved - split), -moved)
        )
    return settled


def without_outliers(values: Floats) -> tuple[Floats, float]:
    """The values drawn to the running median where they are far from it, and the spread."""
    spread = float(np.median(np.abs(np.diff(values)))) / (0.6745 * math.sqrt(2))
    spread = max(spread, SMALLEST_SD)
    nearby = np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, constant_values=np.nan), 5)
    middle = np.nanmedian(nearby, axis=1)
    return np.clip(values, middle - OUTLIER * spread, middle + OUTLIER * spread), spread


def near_the_median(values: Floats, least_spread: float = SMALLEST_SD) -> Floats:
    """Values of one level without their outliers."""
    middle = np.median(values)
    spread = max(float(np.median(np.abs(values - middle))) / 0.6745, least_spread)
    return np.clip(values, middle - OUTLIER * spread, middle + OUTLIER * spread)


def autocorrelation(values: Floats, bounds: Sequence[int]) -> float:
    """The AR(1) coefficient of the values about their segments' means: corrected for the bias that
    these bring (Kendall 1954), drawn towards PRIOR_PHI, and within 0..MOST_PHI."""
    product = square = 0.0
    for start, end in pairwise(bounds):
        rest = values[start:end] - values[start:end].mean()
        product += float(rest[1:] @ rest[:-1])
        square += float(rest @ rest)
    if square == 0:
        return 0.0
    count, segments = len(values), len(bounds) - 1
    # E[r] is about phi - (1 + 3 phi) / n for n values about their own mean.
    free = count - 3 * segments
    known = count * product / square + segments if free > 0 else 0.0
    drawn = (known + PRIOR_COUNT * PRIOR_PHI) / (max(free, 0) + PRIOR_COUNT)
    return min(max(drawn, 0.0), MOST_PHI)


def shift_between(left: Floats, right: Floats, phi: float) -> Shift:
    """Of at least two values each."""
    free = [len(side) - 1 for side in (left, right)]
    squares = [float(((side - side.mean()) ** 2).sum()) for side in (left, right)]
    # How much more the mean varies than that of independent values, over their number.
    factors = [_variance_factor(phi, len(side)) / len(side) for side in (left, right)]
    before, after = float(left.mean()), float(right.mean())
    pooled = max(math.sqrt(sum(squares) / sum(free)), SMALLEST_SD)
    p = two_sided_p((after - before) / (pooled * math.sqrt(sum(factors))), sum(free))
    own = [
        max(square / one, SMALLEST_SD**2) * factor
        for square, one, factor in zip(squares, free, factors, strict=True)
    ]
    freedom = sum(own) ** 2 / sum(part**2 / one for part, one in zip(own, free, strict=True))
    return Shift(before, after, p, math.sqrt(sum(own)), freedom)


def _variance_factor(phi: float, count: int) -> float:
    """n * variance of the mean of n AR(1) values / variance of one (Bartlett 1935)."""
    lasting = 2 * phi * (1 - phi**count) / (count * (1 - phi) ** 2)
    return (1 + phi) / (1 - phi) - lasting


def _tested(
    series: _Series, bounds: Sequence[int], at: int, phi: float
) -> tuple[ChangePoint, float]:
    """The change and its score: below 0 it fails, and the lowest is the weakest."""
    start, split, end = bounds[at - 1 : at + 2]
    shift = shift_between(series.drawn_in[start:split], series.drawn_in[split:end], phi)
    levels = [
        float(near_the_median(series.values[one:two]).mean())
        for one, two in ((start, split), (split, end))
    ]
    point = ChangePoint(split, levels[0], levels[1], shift.p)
    if abs(shift.size) < SMALLEST_SHIFT:
        return point, abs(shift.size) / SMALLEST_SHIFT - 3
    fails = (
        two_sided_p(shift.size / shift.error, shift.freedom) > LARGEST_WELCH_P
        or not _ranks_differ(series.values[start:split], series.values[split:end])
        or _may_be_outliers(series, bounds, at)
    )
    if fails:
        return point, -1 - shift.p
    places = end - start - 2 * SHORTEST_SEGMENT + 1
    return point, min(LARGEST_P, LARGEST_P_OF_ALL_PLACES / places) - shift.p


def _ranks_differ(left: Floats, right: Floats) -> bool:
    """Mann and Whitney's z, or nearly the one of sides that do not overlap where that is less: so
    that a side of which half are outliers is no level."""
    ordered = np.sort(left)
    below = np.searchsorted(ordered, right, "left") + np.searchsorted(ordered, right, "right")
    pairs = len(left) * len(right)
    sd = math.sqrt(pairs * (len(left) + len(right) + 1) / 12)
    z = abs(float(below.sum()) - pairs) / 2 / sd
    return z >= min(LEAST_RANK_Z, 0.9 * pairs / 2 / sd)


def _may_be_outliers(series: _Series, bounds: Sequence[int], at: int) -> bool:
    """Whether so many outliers may meet by chance as the shorter side of a large shift would be, if
    they are as frequent as among all other values."""
    start, split, end = bounds[at - 1 : at + 2]
    sides = (start, split), (split, end)
    near, far = sides if end - split < split - start else sides[::-1]
    level = float(np.median(series.values[slice(*near)]))
    suspects = series.values[slice(*far)]
    jump = float(np.median(suspects)) - level
    if abs(jump) < LARGE_SHIFT * series.spread:
        return False
    sign = math.copysign(1.0, jump)
    others = [series.values[slice(*one)] for one in pairwise(bounds) if one != far]
    outside = sum(int((sign * (side - np.median(side)) > abs(jump) / 2).sum()) for side in others)
    count = len(suspects)
    rate = (outside + 0.5) / (len(series.values) - count + 1)
    reached = int((sign * (suspects - level) > abs(jump) / 2).sum())
    chance = float(incomplete_beta(reached, count - reached + 1, rate))
    places = (len(series.values) - 2 * SHORTEST_SEGMENT + 1) * count
    return chance * places > LARGEST_P_OF_ALL_PLACES
