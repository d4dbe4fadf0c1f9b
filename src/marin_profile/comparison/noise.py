"""Is a row's change more than noise?

Contract
* An interval is the 95 % confidence interval of the change of the mean, by Welch's t: of captures
  against captures where both sides have several (of pairs of captures, by the t of their
  differences), else of steps against steps where the row has a value for each step, else unknown.
* Steps that follow each other are alike, and count as fewer (`alike`). They say nothing of what
  differs from run to run.
* A row is noise if its interval contains 0. In a long list some intervals miss 0 by chance, so the
  5 % are shared out over the rows that both sides have, by their time: of a list, one row or more
  is named by mistake in at most 5 % of comparisons. An op that all captures of one side have, and
  none of the other, is there by no chance: its interval alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import variance

from marin_profile.base.alike import independent
from marin_profile.base.times import PS_PER_US

ERROR = 0.05
# The least share of ERROR that a row gets: quantiles further out are not exact.
LEAST_ERROR = 1e-6

Times = tuple[Fraction, ...]


@dataclass(frozen=True)
class RowTimes:
    """One row: picoseconds per step and device, capture by capture. A side is None where none of
    its captures has such a thing; a capture without it, among others with it, has 0."""

    before: Times | None = None
    after: Times | None = None

    @property
    def delta(self) -> Fraction:
        return mean(self.after) - mean(self.before)

    @property
    def size(self) -> Fraction:
        return mean(self.before) + mean(self.after)

    def __add__(self, other: RowTimes) -> RowTimes:
        return RowTimes(added(self.before, other.before), added(self.after, other.after))


@dataclass(frozen=True)
class Spread:
    """How far a mean may be off: its variance and degrees of freedom."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Judged:
    """`interval` in microseconds; both None where there is no interval."""

    interval: tuple[float, float] | None = None
    noise: bool | None = None


CERTAIN = Spread(0.0, 1.0)
NOT_JUDGED = Judged()


def mean(times: Times | None) -> Fraction:
    return sum(times, Fraction(0)) / len(times) if times else Fraction(0)


def added(one: Times | None, two: Times | None) -> Times | None:
    if one is None or two is None:
        return one if two is None else two
    return tuple(left + right for left, right in zip(one, two, strict=True))


def of_captures(times: Times | None, captures: int) -> Spread | None:
    if captures < 2:
        return None
    values = [float(time) for time in times] if times else [0.0] * captures
    return Spread(variance(values) / captures, captures - 1)


def of_steps(values: Sequence[float]) -> Spread | None:
    """Of one capture; the values in the order of the steps."""
    if len(values) < 3:
        return None
    spread = variance(values)
    if not spread:
        return Spread(0.0, len(values) - 1)
    looks = max(2.0, independent(values))
    return Spread(spread / looks, looks - 1.0)


def judge(
    rows: Sequence[RowTimes], spreads: Sequence[tuple[Spread | None, Spread | None]]
) -> list[Judged]:
    """The rows of one list."""
    chance = [None not in (row.before, row.after) for row in rows]
    whole = sum((row.size for row, drawn in zip(rows, chance, strict=True) if drawn), Fraction(0))
    shares = [
        float(row.size / whole) if drawn and whole else 1.0
        for row, drawn in zip(rows, chance, strict=True)
    ]
    return [
        _judged(row, *pair, share) for row, pair, share in zip(rows, spreads, shares, strict=True)
    ]


def judge_captures(
    rows: Sequence[RowTimes], captures: tuple[int, int], *, paired: bool = False
) -> list[Judged]:
    """`paired`: the captures of the sides belong together, one by one."""
    if paired:
        return judge(rows, [(_of_pairs(row, captures[0]), CERTAIN) for row in rows])
    spreads = [
        (of_captures(row.before, captures[0]), of_captures(row.after, captures[1])) for row in rows
    ]
    return judge(rows, spreads)


def _of_pairs(row: RowTimes, pairs: int) -> Spread | None:
    none = (Fraction(0),) * pairs
    times = zip(row.before or none, row.after or none, strict=True)
    return of_captures(tuple(after - before for before, after in times), pairs)


def _judged(row: RowTimes, one: Spread | None, two: Spread | None, share: float) -> Judged:
    if one is None or two is None:
        return NOT_JUDGED
    delta, width = float(row.delta), half_width(one, two, ERROR)
    strict = half_width(one, two, max(ERROR * share, LEAST_ERROR))
    interval = (round((delta - width) / PS_PER_US, 6), round((delta + width) / PS_PER_US, 6))
    return Judged(interval, abs(delta) <= strict)


def half_width(one: Spread, two: Spread, error: float) -> float:
    """Of the interval that misses with probability `error`; degrees of freedom by Welch and
    Satterthwaite."""
    # Reports are rendered without it, and without numpy.
    from marin_profile.verdict.student import t_quantile

    both = one.variance + two.variance
    if not both:
        return 0.0
    freedom = both**2 / (one.variance**2 / one.freedom + two.variance**2 / two.freedom)
    return float(t_quantile(1.0 - error / 2.0, freedom)) * math.sqrt(both)
