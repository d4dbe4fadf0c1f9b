"""From changes and their bounds to a status: the whole decision, on arrays.

Contract
* fail: the step time's estimate is beyond its threshold and its lower one-sided 99.5 % bound is
  beyond zero. warn: another check is so, or the step time is certainly longer, if by no more than
  the threshold. pass: the 95 % interval ends below the threshold. Else inconclusive. In this order.
* What is not known (NaN or infinite bounds) never fails, warns or passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.estimate import CERTAIN, INTERVAL, ChangeEstimate
from marin_profile.verdict.student import Floats

FAIL, WARN, PASS, INCONCLUSIVE = "fail", "warn", "pass", "inconclusive"


@dataclass(frozen=True)
class Bounds:
    """A change, its two-sided 95 % interval (low, high) and one-sided 99.5 % bounds."""

    estimate: Floats
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats

    def rounded(self, decimals: int) -> Bounds:
        """As they are written, so that nothing is decided on what a reader cannot see."""
        return Bounds(*(np.round(getattr(self, field.name), decimals) for field in fields(self)))

    def is_beyond(self, threshold: float) -> NDArray[np.bool_]:
        return (self.estimate > threshold) & self.is_certain()

    def is_certain(self) -> NDArray[np.bool_]:
        """Longer, larger: certainly more than before."""
        return np.asarray(self.lower > 0)

    def is_within(self, threshold: float) -> NDArray[np.bool_]:
        return np.asarray(self.high < threshold)


def as_difference(change: ChangeEstimate) -> Bounds:
    estimate = change.estimate
    near, far = change.half_width(INTERVAL), change.half_width(CERTAIN)
    return Bounds(estimate, estimate - near, estimate + near, estimate - far, estimate + far)


def as_percent(change: ChangeEstimate) -> Bounds:
    """Of a change of logarithms."""
    logs = as_difference(change)
    with np.errstate(over="ignore"):  # no finite bound then
        return Bounds(*(100.0 * np.expm1(getattr(logs, field.name)) for field in fields(logs)))


def statuses(
    step_time: Bounds, threshold: float, others: Sequence[tuple[Bounds, float]] = ()
) -> NDArray[np.str_]:
    """One status for each run. `others` are checks that can warn, with their thresholds."""
    warned = step_time.is_certain()
    for bounds, most in others:
        warned = warned | bounds.is_beyond(most)
    return np.select(
        [step_time.is_beyond(threshold), warned, step_time.is_within(threshold)],
        [FAIL, WARN, PASS],
        INCONCLUSIVE,
    )
