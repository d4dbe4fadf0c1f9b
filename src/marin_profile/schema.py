"""profile_summary.v1 as frozen pydantic models.

Contract
* Every duration is in **microseconds** (float, six decimals: exact picoseconds up to 8,589 s);
  every share is in 0..1; None means that the file does not say.
* Field names, units and nesting that the schema shares with `marin.profiling` keep their
  meaning; new fields only add. Unknown fields survive a read-write round trip.
* Program ids are text: they are unsigned 64 bit and JSON readers would round them.
* `to_json` is canonical: sorted keys, fixed rounding, one trailing newline.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from marin_profile.errors import BrokenInputError, NotFoundError

SCHEMA_VERSION = "profile_summary.v1"
EPOCH_UTC = "1970-01-01T00:00:00.000000Z"

CAPTURE = "capture"
STEADY = "steady"


class Record(BaseModel):
    """Base of all records: frozen, and keeps fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


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
    num_devices: int | None = None
    num_hosts: int | None = None


class TraceOverview(Record):
    """Size and quality of the trace. Events total = complete ones + those left out; times count
    from the first event; `quality_warnings` are one sentence each."""

    display_time_unit: str | None = None
    num_events_total: int
    num_complete_events: int
    num_processes: int
    num_threads: int
    profile_start_ts: float | None = None
    profile_end_ts: float | None = None
    duration_basis: str
    suspected_truncation: bool = False
    quality_warnings: list[str] = []


class TraceProvenance(Record):
    """Identity of the trace: sha256 of the file, of several files of their sorted digests; the
    commonest run ids and source lines."""

    trace_sha256: str | None = None
    run_ids: list[str] = []
    source_file_hints: list[str] = []


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


class BreakdownPart(Record):
    """One bucket: its time over all devices, and its share of the sum of the buckets."""

    total_duration: float
    share_of_total: float


class TimeBreakdown(Record):
    """Five buckets over all devices. `basis` names the window ("steady" or "capture")."""

    duration_basis: str
    total_duration: float
    compute: BreakdownPart
    communication: BreakdownPart
    host: BreakdownPart
    stall: BreakdownPart
    other: BreakdownPart
    basis: str | None = None


class DeviceLedger(Record):
    """Where one device's time went in one window; the five terms sum to `window_duration`:
    compute + exposed communication + exposed transfer + unattributed + idle."""

    device: str
    host: str
    kind: str
    window: str
    window_start: float
    window_duration: float
    compute_duration: float
    overlapped_communication_duration: float
    exposed_communication_duration: float
    exposed_transfer_duration: float
    unattributed_duration: float
    idle_duration: float
    exposed_communication_by_kind: dict[str, float] = {}
    overlapped_communication_by_kind: dict[str, float] = {}
    exposed_transfer_by_kind: dict[str, float] = {}


class StepAccount(Record):
    """What one step costs, ready to be compared: sums over `devices` of `steps` each; divided by
    both they are per step and device. total = compute + exposed communication + exposed transfer +
    unattributed + idle + launch. `basis` "periods": from the first kept step's start to the last
    one's, on each device (time between steps is idle); "execution": the one kept step's interval on
    each device and its launch, the part of the module execution before its first op and after its
    last one (None: the file does not tell, or for periods)."""

    basis: str
    device_kind: str
    devices: int
    steps: int
    total_duration: float
    compute_duration: float
    overlapped_communication_duration: float
    exposed_communication_duration: float
    exposed_transfer_duration: float
    unattributed_duration: float
    idle_duration: float
    launch_duration: float | None = None
    exposed_communication_by_kind: dict[str, float] = {}
    overlapped_communication_by_kind: dict[str, float] = {}
    exposed_transfer_by_kind: dict[str, float] = {}


class HotOp(Record):
    """One op (name within a program) over all devices. `exclusive_duration` is self time;
    `per_step_duration` is the self time per kept step and device in the steady window;
    `category` is the kind (compute, all-reduce, host_to_device, ...), `hlo_category` XLA's own."""

    name: str
    canonical_name: str = ""
    category: str
    count: int
    total_duration: float
    exclusive_duration: float
    avg_duration: float
    shape_signature: str | None = None
    source_file: str | None = None
    tf_op_path: str | None = None
    flop_proxy_per_invocation: float | None = Field(
        default=None,
        validation_alias=AliasChoices("flop_proxy_per_invocation", "work_proxy_per_invocation"),
    )
    module: str | None = None
    program_id: str | None = None
    hlo_op: str | None = None
    hlo_category: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    flops: int | None = None
    bytes_accessed: int | None = None
    achieved_tflops: float | None = None
    achieved_gbps: float | None = None
    bound_by: str | None = None
    exposed_duration: float | None = None
    per_step_duration: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_canonical_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("canonical_name") and "name" in data:
            from marin_profile.classify import canonical_name

            return {**data, "canonical_name": canonical_name(str(data["name"]))}
        return data


class OpGroup(Record):
    """All ops alike in (canonical name, category, shape, scope, pass). `count` and the durations
    cover the whole capture and all devices; `per_step_duration` as in HotOp. `owned_duration` is
    the part of the step account's windows that belongs to these ops alone: every instant has one
    owner or is idle; `account_count` executions start in them. An op that only an async line shows
    has count 0. The remainder row, if any, is named "(remainder)"."""

    canonical_name: str
    category: str
    shape_signature: str | None = None
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    names: list[str] = []
    num_names: int
    count: int
    exclusive_duration: float
    exposed_duration: float
    steady_count: int | None = None
    steady_exclusive_duration: float | None = None
    per_step_duration: float | None = None
    account_count: int | None = None
    owned_duration: float | None = None
    owned_per_step_duration: float | None = None


class CommunicationOp(Record):
    """One collective kind over all devices; a start/done pair counts once."""

    collective: str
    count: int
    total_duration: float
    avg_duration: float
    exposed_duration: float | None = None
    overlapped_duration: float | None = None


class Collective(Record):
    """One (kind, group size). `wait_duration` is the time devices spent waiting for the last to
    arrive; bandwidths in GB/s (1e9 bytes) over wire time by the nccl-tests convention."""

    collective: str
    group_size: int | None = None
    count: int
    bytes: int | None = None
    duration: float
    exposed_duration: float
    overlapped_duration: float
    wait_duration: float | None = None
    algorithm_gbps: float | None = None
    bus_gbps: float | None = None


class GapBeforeOp(Record):
    """Idle time that ends at `name` (= payload_op); `marker_op` is the op that ended it. account_*:
    the part in the step account's windows."""

    name: str
    count: int
    total_gap_duration: float
    max_gap_duration: float
    avg_gap_duration: float
    payload_op: str | None = None
    marker_op: str | None = None
    account_count: int | None = None
    account_gap_duration: float | None = None


class Region(Record):
    """A scope path ("a=>b=>leaf"). Inclusive and exclusive are sums of self time over devices."""

    path: str
    depth: int
    count: int
    inclusive_duration: float
    exclusive_duration: float
    inclusive_by_pass: dict[str, float] | None = None


class GapRegionContext(Record):
    """The gaps before one op whose payload stands in one region ("(no scope)": in none)."""

    op_name: str
    region_path: str
    count: int
    total_gap_duration: float
    avg_gap_duration: float


class SemanticFamily(Record):
    """All ops of one family (attention, matmul, normalisation, copy, ...); `owned_duration` as in
    OpGroup."""

    family: str
    count: int
    total_duration: float
    exclusive_duration: float
    share_of_total: float
    avg_duration: float
    avg_exclusive_duration: float
    example_op: str | None = None
    dominant_shape_signature: str | None = None
    flop_proxy_total: float | None = Field(
        default=None, validation_alias=AliasChoices("flop_proxy_total", "work_proxy_total")
    )
    time_per_flop_proxy: float | None = Field(
        default=None,
        validation_alias=AliasChoices("time_per_flop_proxy", "normalized_exclusive_per_work"),
    )
    owned_duration: float | None = None


class OptimizationCandidate(Record):
    """One thing to try, with the numbers that speak for it."""

    candidate_id: str
    title: str
    rationale: str
    evidence: list[str]
    suggestions: list[str]


class Roofline(Record):
    """`peaks`: teraflops_per_second, hbm_gigabytes_per_second per device; `achieved`: the same two
    over op time plus operational_intensity (flops/byte); `utilization`: shares of the peaks;
    `coverage`: share of device op time whose ops carry costs; `mfu` of the steady steps."""

    peaks: dict[str, float] = {}
    achieved: dict[str, float] = {}
    utilization: dict[str, float] = {}
    bound_by: str | None = None
    mfu: float | None = None
    coverage: float | None = None


class Host(Record):
    """One host of the capture. `clock_offset` in microseconds against the first host."""

    host: str
    file: str
    sha256: str
    devices: list[str] = []
    clock_offset: float | None = None
    warnings: list[str] = []
    source_format: str | None = None
    chosen_because: str | None = None


class UnattributedOp(Record):
    """An op whose kernel carries no HLO op (command buffers, driver copies)."""

    name: str
    count: int
    exclusive_duration: float
    reason: str


class Coverage(Record):
    """How much of the device time the summary can speak for."""

    hlo_attributed_share: float | None = None
    scope_attributed_share: float | None = None
    cost_share: float | None = None
    lines_not_analysed: list[str] = []
    events_dropped: dict[str, int] = {}
    empty_devices: list[str] = []
    unattributed_ops: list[UnattributedOp] = []
    overlapping_events: int = 0
    format_lacks: list[str] = []


class Profiling(Record):
    """How training saw the capture. `window_to_outside` is the median profiled step over the median
    of `num_steps_outside` other steps, by the wall clock; the profiler's own calls are the longest
    of all processes; `missing_processes` left no capture."""

    trigger: str
    representative: bool | None = None
    window_to_outside: float | None = None
    reason: str
    num_steps_outside: int
    outside_step_median: float | None = None
    start_trace_duration: float
    stop_trace_duration: float
    num_processes: int
    missing_processes: list[int] = []


class Capture(Record):
    """When the profile was taken (UTC), from which files, and by which versions; `profiling` where
    the training's callback took it."""

    start: str | None = None
    stop: str | None = None
    files: list[str] = []
    tracer_options: dict[str, str] | None = None
    tool_version: str | None = None
    jax_version: str | None = None
    profiling: Profiling | None = None


class ProfileSummary(Record):
    """The whole summary; `list_basis` says for each list which window it covers."""

    schema_version: str = SCHEMA_VERSION
    generated_at_utc: str = EPOCH_UTC
    source_format: str
    source_path: str
    run_metadata: RunMetadata
    trace_overview: TraceOverview
    trace_provenance: TraceProvenance = TraceProvenance()
    step_time: StepTime
    time_breakdown: TimeBreakdown
    hot_ops: list[HotOp]
    semantic_families: list[SemanticFamily] = []
    communication_ops: list[CommunicationOp]
    gap_before_ops: list[GapBeforeOp]
    hierarchical_regions: list[Region]
    gap_region_contexts: list[GapRegionContext] = []
    optimization_candidates: list[OptimizationCandidate]
    device_ledger: list[DeviceLedger] = []
    step_account: StepAccount | None = None
    op_groups: list[OpGroup] = []
    collectives: list[Collective] = []
    roofline: Roofline | None = None
    hosts: list[Host] = []
    memory: dict[str, Any] | None = None
    coverage: Coverage | None = None
    capture: Capture | None = None
    list_basis: dict[str, str] = {}

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))


_WRITTEN_AS_IS = frozenset({str, int, bool, type(None)})


def canonical_json(data: Any) -> str:
    """Sorted keys, two-space indent, floats rounded to six decimals, one trailing newline.

    Raises ValueError on NaN and infinities: neither is a number that a summary may hold.
    """
    import msgspec

    encoded = msgspec.json.encode(_rounded(data), order="sorted")
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def _rounded(data: Any) -> Any:
    kind = type(data)
    if kind is float:
        if not math.isfinite(data):
            raise ValueError(f"{data} is no number that JSON can hold")
        return round(data, 6)
    if kind is dict:
        return {
            key: value if type(value) in _WRITTEN_AS_IS else _rounded(value)
            for key, value in data.items()
        }
    if kind is list or kind is tuple:
        return [value if type(value) in _WRITTEN_AS_IS else _rounded(value) for value in data]
    return data


def parse_summary(text: str | bytes, *, path: str = "the summary") -> ProfileSummary:
    """Read a profile_summary.v1 JSON text. Raises BrokenInputError if it is none."""
    try:
        summary = ProfileSummary.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise BrokenInputError(
            f"{path} is no {SCHEMA_VERSION}: {where}: {first['msg']}; make one with "
            "'marin-profile summarize'."
        ) from error
    if summary.schema_version != SCHEMA_VERSION:
        raise BrokenInputError(
            f"{path} has schema_version {summary.schema_version!r}, but this version reads "
            f"{SCHEMA_VERSION!r}; summarize the profile again."
        )
    return summary


def load_summary(path: str | Path) -> ProfileSummary:
    """Read a summary from a local file or an fsspec URL."""
    text = _read_bytes(str(path))
    return parse_summary(text, path=str(path))


def _read_bytes(path: str) -> bytes:
    try:
        if "://" in path:
            import fsspec

            with fsspec.open(path, "rb") as stream:
                return stream.read()
        return Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(
            f"{path} does not exist or is no file; name a summary that 'marin-profile summarize' "
            "wrote."
        ) from error
