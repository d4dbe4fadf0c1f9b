"""Steps: statistics, classes, and every step by itself."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share, Steps
from marin_profile.schema.record import Record


class DurationStats(Record):
    """Statistics over durations; quantiles by linear interpolation. All None where count is 0."""

    count: Count
    mean: Microseconds | None = None
    median: Microseconds | None = None
    p90: Microseconds | None = None
    min: Microseconds | None = None
    max: Microseconds | None = None


class StepClass(Record):
    """A class of steps of like length ("light", "heavy"); periodicity in steps."""

    name: str
    count: Count
    fraction_of_steady: Share
    duration_stats: DurationStats
    representative_step: int | None = None
    representative_duration: Microseconds | None = None
    periodicity: Steps | None = None


class StepLedger(Record):
    """The device ledger inside one step, summed over devices."""

    window_duration: Microseconds
    compute_duration: Microseconds
    exposed_communication_duration: Microseconds
    exposed_transfer_duration: Microseconds
    unattributed_duration: Microseconds
    idle_duration: Microseconds


class Step(Record):
    """One step. `start` counts from the capture's first device op; `duration` is the median over
    devices, `critical_path` the latest end minus the earliest start over the devices of one host,
    `period` the median over devices of the time from this boundary to the next one's. `boundary` is
    where the step begins, counted like `start`: there, or before it where the device was idle.
    `cut`: the capture holds only a part of the step; it is in no statistic and no window."""

    index: int
    step_num: int | None = None
    start: Microseconds
    duration: Microseconds | None = None
    critical_path: Microseconds | None = None
    period: Microseconds | None = None
    boundary: Microseconds | None = None
    kept: bool
    cut: bool = False
    step_class: str | None = None
    ledger: StepLedger | None = None


class StepTime(Record):
    """`source`: "device_steps" | "annotation" | "module" | "none"; `linked` tells whether device
    work was tied to the markers (else only the period is known)."""

    warmup_steps_ignored: Steps
    all_steps: DurationStats
    steady_state_steps: DurationStats
    classes: list[StepClass] = []
    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    period: DurationStats | None = None
    critical_path: DurationStats | None = None
    steps: list[Step] = []
