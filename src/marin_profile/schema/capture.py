"""The capture: the run and the files that it comes from, its hosts, and what was left out."""

from __future__ import annotations

from marin_profile.base.units import Count, Devices, Microseconds, Ratio, ShareOfOpTime, Steps
from marin_profile.schema.record import Record, StepNumber


class RunMetadata(Record):
    """The run that the profile is of; artifact fields are known only after an upload.
    `config_hash` is the first 16 hex digits of the sha256 of the config's sorted-key JSON."""

    run_path: str | None = None
    run_id: str | None = None
    artifact_ref: str | None = None
    artifact_name: str | None = None
    hardware_type: str | None = None
    mesh_or_topology: str | None = None
    git_sha: str | None = None
    config_hash: str | None = None
    num_devices: Devices | None = None
    num_hosts: Count | None = None


class TraceOverview(Record):
    """Size and quality of the trace. Events total = complete ones + those left out; times count
    from the first event; `quality_warnings` are one sentence each, and `doubts` those of them that
    say that any figure may be wrong."""

    display_time_unit: str | None = None
    num_events_total: Count
    num_complete_events: Count
    num_processes: Count
    num_threads: Count
    profile_start_ts: Microseconds | None = None
    profile_end_ts: Microseconds | None = None
    duration_basis: str
    suspected_truncation: bool = False
    quality_warnings: list[str] = []
    doubts: list[str] = []


class TraceProvenance(Record):
    """Identity of the trace: sha256 of the file, of several files of their sorted digests; the
    commonest run ids and source lines."""

    trace_sha256: str | None = None
    run_ids: list[str] = []
    source_file_hints: list[str] = []


class Host(Record):
    """One file of the capture: a host, or one process of it; `machine` is the host that it ran on,
    `num_hosts` counts machines. `clock_conflicts`: how many launches and completions contradict the
    times of the devices' work (null: nothing to compare); `clock_uncertainty`: the widest of these
    conflicts, nothing that relates times of host and devices is known below it. `clock_offset` is
    the least that must be added to the devices' times to put them on the host's clock, null where
    nothing contradicts or no constant mends it; the true offset lies between it and
    `clock_offset_limit` (null: not known how far)."""

    host: str
    machine: str | None = None
    file: str
    sha256: str
    devices: list[str] = []
    clock_offset: Microseconds | None = None
    clock_offset_limit: Microseconds | None = None
    clock_uncertainty: Microseconds | None = None
    clock_conflicts: Count | None = None
    warnings: list[str] = []
    source_format: str | None = None
    chosen_because: str | None = None


class StepCompiles(Record):
    """What JAX compiled in one profiled step; `cache_hits`: programs found in its cache instead."""

    step_num: StepNumber
    programs: Count
    duration: Microseconds
    cache_hits: Count


class WorkBetween(Record):
    """Work of training's loop before a step, after the step before."""

    step_num: StepNumber
    duration: Microseconds


class Profiling(Record):
    """How training saw the capture. `window_to_outside` is the median profiled step over the median
    of `num_steps_outside` other steps, by the wall clock; the profiler's own calls are the longest
    of all processes; `missing_processes` left no capture. `ingested_beside`: another capture was
    summarised meanwhile. `between_step_median`: what the loop did between the profiled steps, such
    as hooks and data; `work_between`: where that took much longer."""

    trigger: str
    representative: bool | None = None
    window_to_outside: Ratio | None = None
    reason: str
    num_steps_outside: Steps
    outside_step_median: Microseconds | None = None
    start_trace_duration: Microseconds
    stop_trace_duration: Microseconds
    num_processes: Count
    missing_processes: list[int] = []
    ingested_beside: bool = False
    compiles: list[StepCompiles] = []
    between_step_median: Microseconds | None = None
    work_between: list[WorkBetween] = []


class CaptureDetails(Record):
    """When the profile was taken (UTC), from which files, and by which versions; `profiling` where
    the training's callback took it."""

    start: str | None = None
    stop: str | None = None
    files: list[str] = []
    tool_version: str | None = None
    jax_version: str | None = None
    profiling: Profiling | None = None


class UnattributedOp(Record):
    """An op whose kernel carries no HLO op (command buffers, driver copies)."""

    name: str
    count: Count
    exclusive_duration: Microseconds
    reason: str


class Abridged(Record):
    """A list that does not hold all rows that it would: `rows` are there, `rows_left_out` are not;
    `kept` says which are, and what became of the others."""

    list_name: str
    rows: Count
    rows_left_out: Count
    kept: str


class Coverage(Record):
    """How much of the device time the summary can speak for. `cost_share` stands in older files
    only: see `coverage` in Roofline."""

    hlo_attributed_share: ShareOfOpTime | None = None
    scope_attributed_share: ShareOfOpTime | None = None
    cost_share: ShareOfOpTime | None = None
    lines_not_analysed: list[str] = []
    events_dropped: dict[str, Count] = {}
    empty_devices: list[str] = []
    unattributed_ops: list[UnattributedOp] = []
    overlapping_events: Count = 0
    format_lacks: list[str] = []
