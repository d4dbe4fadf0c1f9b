"""Steps: statistics, classes, and every step by itself."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share, Steps
from marin_profile.schema.record import Record, StepNumber


class DurationStats(Record):
    """Statistics over durations; quantiles by linear interpolation. All None where count is 0."""

    count: Count
    mean: Microseconds | None = None
    median: Microseconds | None = None
    p90: Microseconds | None = None
    min: Microseconds | None = None
    max: Microseconds | None = None


class StepClass(Record):
    """A class of steps of like period ("light", "heavy"); periodicity in steps.
    `duration_stats` are of the durations, `period_stats` of the periods of its steps."""

    name: str
    count: Count
    fraction_of_steady: Share
    duration_stats: DurationStats
    representative_step: StepNumber | None = None
    representative_duration: Microseconds | None = None
    periodicity: Steps | None = None
    period_stats: DurationStats | None = None


class StepOutlier(Record):
    """A kept step whose period exceeds the median by more than 5 x 1.4826 median absolute
    deviations and by more than 10 %; `excess` is what it takes beyond the median.

    `cause` is the part of the period that grew most against the other steps: "compile" or
    "host_event" (the host event `cause_name` covers half of the longest gap before `before_op`),
    "gap" (idle before `before_op`, no host event known for it), "program" (`cause_name` is not run
    by the other steps), "communication" or "transfer" (exposed), "compute", "recompute" or
    "unattributed" (`cause_name` is the op that grew most); None: not known. `cause_duration` is
    how much that part grew, on the device that waited least for others."""

    index: StepNumber
    step_num: StepNumber | None = None
    period: Microseconds
    excess: Microseconds
    cause: str | None = None
    cause_name: str | None = None
    before_op: str | None = None
    cause_duration: Microseconds | None = None


class OutlierCause(Record):
    """The outliers of one cause: how many, what they take beyond the median in all and per whole
    period (so much of the mean is theirs), and after how many steps they come back."""

    cause: str | None = None
    cause_name: str | None = None
    before_op: str | None = None
    count: Count
    total_excess: Microseconds
    excess_per_period: Microseconds
    periodicity: Steps | None = None
    steps: list[int] = []


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
    `cut`: the capture holds only a part of the step, which is left out of all statistics and
    windows."""

    index: StepNumber
    step_num: StepNumber | None = None
    start: Microseconds
    duration: Microseconds | None = None
    critical_path: Microseconds | None = None
    period: Microseconds | None = None
    boundary: Microseconds | None = None
    kept: bool
    cut: bool = False
    step_class: str | None = None
    ledger: StepLedger | None = None


class LongOp(Record):
    """The longest op that outlasts a typical step; `duration` is its self time, `steps` how many
    typical steps fit into it."""

    name: str
    device: str
    duration: Microseconds
    steps: Steps


class StepTime(Record):
    """`source`: "device_steps" | "annotation" | "module" | "none"; `linked` says whether device
    work was tied to the markers (else only the period is known).

    `typical_period` is the median period of the kept steps. `mean_period` is what training pays:
    the time from the first kept step's boundary to the last one's, by the `whole_periods` between
    them, with steps missing from the capture counted. `outliers` are in order of time; in
    `outlier_causes` the one that costs most stands first, `steps` being step numbers, or indexes
    where steps have none. `steps_without_work`: steps that the source names beside `steps`, in
    which no device worked."""

    warmup_steps_ignored: Steps
    all_steps: DurationStats
    steady_state_steps: DurationStats
    classes: list[StepClass] = []
    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    period: DurationStats | None = None
    critical_path: DurationStats | None = None
    typical_period: Microseconds | None = None
    mean_period: Microseconds | None = None
    whole_periods: Count | None = None
    outliers: list[StepOutlier] = []
    outlier_causes: list[OutlierCause] = []
    steps_without_work: Steps | None = None
    long_op: LongOp | None = None
    steps: list[Step] = []
