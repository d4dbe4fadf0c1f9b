"""profile_verdict.v1: what a comparison of step times came to, as frozen pydantic models.

Contract: times are microseconds, changes of step times per cent of the time before; null means not
known. Intervals are two-sided 95 %, bounds one-sided 99.5 %.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from marin_profile.schema import Record, canonical_json
from marin_profile.verdict.rules import Helped, Status

VERDICT_SCHEMA = "profile_verdict.v1"

CheckName = Literal[
    "mean_step_time",
    "step_time",
    "slow_steps",
    "step_p90",
    "exposed_communication",
    "idle",
]
Result = Literal[Status, "not judged"]
Unit = Literal["%", "us", "% of a step"]


class Thresholds(Record):
    """The changes from which on a check speaks; what is better never does. Also a file may hold no
    other: one that is passed over would let a regression pass.

    `max_step_median_regression_pct` bounds the mean step and the typical step alike. The two shares
    are of the mean step before the change, which makes them microseconds a step."""

    model_config = ConfigDict(extra="forbid")

    max_step_median_regression_pct: float = Field(default=5.0, ge=0)
    max_step_p90_regression_pct: float = Field(default=10.0, ge=0)
    max_communication_share_regression_abs: float = Field(default=0.05, ge=0)
    max_stall_share_regression_abs: float = Field(default=0.05, ge=0)


class SideStepTimes(Record):
    """The step times of one side; of several captures the geometric means of each one's.

    `mean_step_time` and `step_time` (the typical step) are what the changes are changes of: the
    mean weighs steps that come back after so many others by how often they do, whatever part of a
    cycle the window holds; the typical step is the trimmed mean of the logs of the commonest kind
    of step. `slow_steps_every` lists after how many steps slow ones come back, in any capture;
    `stray_steps` counts those that are far from the others without a pattern."""

    captures: int
    steps: int
    steps_per_capture: tuple[int, ...]
    mean_step_time: float | None = None
    step_time: float | None = None
    median: float | None = None
    p90: float | None = None
    slow_steps_every: tuple[int, ...] = ()
    stray_steps: int = 0


class Check(Record):
    """One quantity against its threshold. `unit` is that of the change, bounds and threshold: "%"
    (before and after are microseconds), "us" (per step and device), or "% of a step" (what slow
    steps add to the mean, per cent of the typical step; before and after too)."""

    check: CheckName
    result: Result
    unit: Unit
    threshold: float
    before: float | None = None
    after: float | None = None
    change: float | None = None
    interval: tuple[float, float] | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    error_from: Literal["steps", "captures", "pairs"] | None = None
    degrees_of_freedom: float | None = None
    reason: str | None = None

    @property
    def is_certain(self) -> bool:
        """Whether a one-sided bound leaves out 0: certainly more, or certainly less."""
        return (self.lower_bound or 0.0) > 0 or (self.upper_bound or 0.0) < 0


class DecileShift(Record):
    """How a decile of the step time moved: which steps became slower, short or long ones. Times are
    microseconds, `change` and `interval` per cent."""

    decile: int
    before: float
    after: float
    change: float
    interval: tuple[float, float] | None = None


class Noise(Record):
    """The measured run-to-run spread that the interval includes."""

    num_repeats: int
    log_sd: float


class SequentialLook(Record):
    """After so many pairs of at most `last_look`, what holds although every look might have been
    the last: the p-values of "no slower" and of "slower by the threshold or more", of the mean."""

    pairs: int
    last_look: int
    slower_p: float
    within_p: float


class Needed(Record):
    """What would settle an inconclusive verdict, if the change stays as estimated, or confirm a
    likely one."""

    captures_per_side: int | None = None
    steps_per_capture: int | None = None
    sentence: str


class Assessment(Record):
    """The verdict. `basis` is the step length that was compared; `decided_by` the check that the
    sentence leads with, whose change, interval and bounds stand here as well. `helped` says whether
    the step became shorter; `error_from` whether the interval stands on the steps within the
    captures, on captures against each other, or on pairs of them."""

    schema_version: str = VERDICT_SCHEMA
    status: Status
    confidence: Literal["likely", "confirmed"]
    helped: Helped = "cannot tell"
    sentence: str
    decided_by: CheckName | None = None
    reasons: tuple[str, ...] = ()
    basis: Literal["period", "duration"] | None = None
    error_from: Literal["steps", "captures", "pairs"] | None = None
    before: SideStepTimes
    after: SideStepTimes
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    lower_bound_pct: float | None = None
    upper_bound_pct: float | None = None
    degrees_of_freedom: float | None = None
    autocorrelation: float | None = None
    drifts: bool = False
    sequential: SequentialLook | None = None
    noise_floor: Noise | None = None
    needed: Needed | None = None
    checks: tuple[Check, ...] = ()
    deciles: tuple[DecileShift, ...] = ()
    thresholds: Thresholds = Field(default_factory=Thresholds)
    label: str | None = None

    def check(self, name: CheckName) -> Check | None:
        """None where nothing was judged."""
        return next((row for row in self.checks if row.check == name), None)

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))
