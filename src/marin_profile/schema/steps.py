"""Steps: statistics, classes, and every step by itself."""

from __future__ import annotations

from marin_profile.schema.record import Record


class DurationStats(Record):
    """Statistics over durations; quantiles by linear interpolation. All None where count is 0."""

    count: int
    mean: float | None = None
    median: float | None = None
    p90: float | None = None
    min: float | None = None
    max: float | None = None


class StepClass(Record):
    """A class of steps of like length ("light", "heavy"); periodicity in steps."""

    name: str
    count: int
    fraction_of_steady: float
    duration_stats: DurationStats
    representative_step: int | None = None
    representative_duration: float | None = None
    periodicity: int | None = None


class StepLedger(Record):
    """The device ledger inside one step, summed over devices."""

    window_duration: float
    compute_duration: float
    exposed_communication_duration: float
    exposed_transfer_duration: float
    unattributed_duration: float
    idle_duration: float


class Step(Record):
    """One step. `start` counts from the capture's first device op; `duration` is the median over
    devices, `critical_path` the latest end minus the earliest start over the devices of one host,
    `period` the median over devices of the time from this start to the next one's."""

    index: int
    step_num: int | None = None
    start: float
    duration: float | None = None
    critical_path: float | None = None
    period: float | None = None
    kept: bool
    step_class: str | None = None
    ledger: StepLedger | None = None


class StepTime(Record):
    """`source`: "device_steps" | "annotation" | "module" | "none"; `linked` tells whether device
    work was tied to the markers (else only the period is known)."""

    warmup_steps_ignored: int
    all_steps: DurationStats
    steady_state_steps: DurationStats
    classes: list[StepClass] = []
    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    period: DurationStats | None = None
    critical_path: DurationStats | None = None
    steps: list[Step] = []
