"""From changes and their bounds to a status: the whole decision.

Contract
* Both estimands count, the mean and the typical step. fail: the estimate of one is beyond the
  threshold and its lower one-sided 99.5 % bound beyond zero; likely_fail: the same, but nothing
  shows how far runs differ (one capture a side, no noise floor). warn: another check is so, or one
  of the two is certainly longer, if by no more than the threshold. pass: the 95 % intervals of both
  end below the threshold. Else inconclusive. In this order.
* Captures that cannot be relied on (`settles` is false) are inconclusive, whatever checks say.
* What is not known (NaN or infinite bounds) never fails, warns or passes.
* Helped: "yes" if the mean step is certainly shorter; "no" if either is certainly longer, or if the
  mean is shorter by less than LEAST_GAIN at best; else "cannot tell".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final, Literal

from marin_profile.verdict.estimate import ChangeEstimate

Status = Literal["pass", "warn", "likely_fail", "fail", "inconclusive"]
FAIL: Final = "fail"
LIKELY_FAIL: Final = "likely_fail"
WARN: Final = "warn"
PASS: Final = "pass"
INCONCLUSIVE: Final = "inconclusive"
Helped = Literal["yes", "no", "cannot tell"]
LEAST_GAIN = 1.0  # per cent


@dataclass(frozen=True)
class Bounds:
    """A change, its two-sided 95 % interval (low, high) and one-sided 99.5 % bounds."""

    estimate: float
    low: float
    high: float
    lower: float
    upper: float

    def rounded(self, decimals: int) -> Bounds:
        """As they are written, so that nothing is decided on what a reader cannot see."""
        return Bounds(*(round(value, decimals) + 0.0 for value in astuple(self)))

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    def is_beyond(self, threshold: float) -> bool:
        return self.estimate > threshold and self.is_more

    @property
    def is_more(self) -> bool:
        """Certainly longer, larger than before."""
        return self.is_known and self.lower > 0

    @property
    def is_less(self) -> bool:
        return self.is_known and self.upper < 0

    def is_within(self, threshold: float) -> bool:
        return self.is_known and self.high < threshold


def as_difference(change: ChangeEstimate) -> Bounds:
    estimate = change.estimate
    near, far = change.interval_half_width, change.certain_half_width
    return Bounds(estimate, estimate - near, estimate + near, estimate - far, estimate + far)


def as_percent(change: ChangeEstimate) -> Bounds:
    """Of a change of logarithms."""
    return Bounds(*(_percent(value) for value in astuple(as_difference(change))))


def _percent(log: float) -> float:
    try:
        return 100.0 * math.expm1(log)
    except OverflowError:
        return math.inf


def step_result(
    bounds: Bounds, threshold: float, *, confirmed: bool, settles: bool = True
) -> Status:
    """What one estimand says."""
    if not settles:
        return INCONCLUSIVE
    if bounds.is_beyond(threshold):
        return FAIL if confirmed else LIKELY_FAIL
    if bounds.is_more:
        return WARN
    return PASS if bounds.is_within(threshold) else INCONCLUSIVE


def other_result(bounds: Bounds, threshold: float) -> Status:
    if bounds.is_beyond(threshold):
        return WARN
    return PASS if bounds.is_within(threshold) else INCONCLUSIVE


def status_of(steps: Sequence[str], others: Sequence[str] = (), *, settles: bool = True) -> Status:
    """`steps`: the results of the estimands; `others` can warn, nothing more."""
    if not settles:
        return INCONCLUSIVE
    found = (*steps, *(one for one in others if one == WARN))
    if FAIL in found:
        return FAIL
    if LIKELY_FAIL in found:
        return LIKELY_FAIL
    if WARN in found:
        return WARN
    return PASS if all(one == PASS for one in steps) else INCONCLUSIVE


def helped(mean: Bounds, typical: Bounds, *, settles: bool = True) -> Helped:
    if not settles or not mean.is_known:
        return "cannot tell"
    if mean.is_less:
        return "yes"
    if mean.is_more or typical.is_more or mean.low > -LEAST_GAIN:
        return "no"
    return "cannot tell"
