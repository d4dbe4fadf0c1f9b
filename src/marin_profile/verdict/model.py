"""profile_verdict.v1: what a comparison of step times came to, as frozen pydantic models.

Contract: times are microseconds, changes of times per cent of the time before, shares and their
changes lie in -1..1; null means not known. Intervals are two-sided 95 %, bounds one-sided 99.5 %.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from marin_profile.schema import Record, canonical_json

VERDICT_SCHEMA = "profile_verdict.v1"

Status = Literal["pass", "warn", "fail", "inconclusive"]


class Thresholds(Record):
    """The changes from which on a check speaks; what is better never does. Also a file may hold no
    other: one that is passed over would let a regression pass."""

    model_config = ConfigDict(extra="forbid")

    max_step_median_regression_pct: float = Field(default=5.0, ge=0)
    max_step_p90_regression_pct: float = Field(default=10.0, ge=0)
    max_communication_share_regression_abs: float = Field(default=0.05, ge=0)
    max_stall_share_regression_abs: float = Field(default=0.05, ge=0)


class SideStepTimes(Record):
    """The step times of one side; of several captures the geometric means of each one's.

    `step_time` is what the change is a change of: the trimmed mean of the log step times, like
    classes of steps weighing alike on both sides."""

    captures: int
    steps: int
    steps_per_capture: tuple[int, ...]
    step_time: float | None = None
    median: float | None = None
    p90: float | None = None


class Check(Record):
    """One quantity against its threshold. `unit` is that of the change, bounds and threshold:
    "%" (before and after are microseconds) or "share"."""

    check: Literal["step_time", "step_p90", "communication_share", "stall_share"]
    result: Literal["pass", "warn", "fail", "inconclusive", "not judged"]
    unit: Literal["%", "share"]
    threshold: float
    before: float | None = None
    after: float | None = None
    change: float | None = None
    interval: tuple[float, float] | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    reason: str | None = None


class Noise(Record):
    """The measured run-to-run spread that the interval includes."""

    num_repeats: int
    log_sd: float


class Needed(Record):
    """What would settle an inconclusive verdict, if the change stays as estimated."""

    steps_per_side: int | None = None
    captures_per_side: int | None = None
    sentence: str


class Assessment(Record):
    """The verdict. `basis` is the step length that was compared; `error_from` tells whether the
    interval stands on the steps within the captures or on captures against each other."""

    schema_version: str = VERDICT_SCHEMA
    status: Status
    confidence: Literal["likely", "confirmed"]
    sentence: str
    reasons: tuple[str, ...] = ()
    basis: Literal["period", "duration"] | None = None
    error_from: Literal["steps", "captures"] | None = None
    before: SideStepTimes
    after: SideStepTimes
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    lower_bound_pct: float | None = None
    upper_bound_pct: float | None = None
    degrees_of_freedom: float | None = None
    autocorrelation: float | None = None
    noise_floor: Noise | None = None
    needed: Needed | None = None
    checks: tuple[Check, ...] = ()
    thresholds: Thresholds = Field(default_factory=Thresholds)
    label: str | None = None

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))
