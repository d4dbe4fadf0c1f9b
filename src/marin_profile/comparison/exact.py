"""Exact numbers: a summary's microseconds as picoseconds per step and device.

Contract: sums and differences are fractions, so what is equal gives exactly 0; only what is written
is rounded, to whole picoseconds, and `apportion` rounds the parts of a sum so that they still sum
to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from marin_profile.base.times import PS_PER_US
from marin_profile.comparison.model import Change


def picoseconds(microseconds: float) -> int:
    return round(microseconds * PS_PER_US)


def microseconds(value: Fraction | int) -> float:
    """Six decimals."""
    return round(value) / PS_PER_US


def change_of(before: Fraction | None, after: Fraction | None, delta: int | None = None) -> Change:
    return Change(**change_fields(before, after, delta))


def change_fields(
    before: Fraction | None, after: Fraction | None, delta: int | None = None
) -> dict[str, float | None]:
    """The fields of a Change of picoseconds; `delta` where the caller has rounded it. A side that
    is None counts as nothing in the delta, and stays None."""
    exact = (after or Fraction(0)) - (before or Fraction(0))
    return {
        "before": None if before is None else microseconds(before),
        "after": None if after is None else microseconds(after),
        "delta": microseconds(exact if delta is None else delta),
        "relative": rounded_ratio(exact, before) if after is not None else None,
    }


def plain_change(before: float | None, after: float | None) -> Change:
    """Of two figures that are not sums; unknown on a side, no delta."""
    if before is None or after is None:
        return Change(before=before, after=after)
    exact = Fraction(after) - Fraction(before)
    return Change(
        before=before,
        after=after,
        delta=round(float(exact), 6),
        relative=rounded_ratio(exact, Fraction(before)),
    )


def rounded_ratio(part: Fraction, whole: Fraction | None) -> float | None:
    """Six decimals; None where the whole is 0 or not known."""
    return round(float(part / whole), 6) if whole else None


def apportion(parts: Sequence[Fraction], total: Fraction | int | None = None) -> list[int]:
    """The parts rounded to integers that sum to the rounded total, by default their sum: those with
    the largest remainders are rounded up, ties by position. What the total has beyond the sum is
    the largest part's."""
    whole = list(parts)
    lost = Fraction(0) if total is None else total - sum(whole, Fraction(0))
    if lost and whole:
        whole[max(range(len(whole)), key=lambda at: (abs(whole[at]), -at))] += lost
    floors = [part.__floor__() for part in whole]
    missing = round(sum(whole, Fraction(0))) - sum(floors)
    by_remainder = sorted(range(len(whole)), key=lambda at: (floors[at] - whole[at], at))
    for at in by_remainder[:missing]:
        floors[at] += 1
    return floors
