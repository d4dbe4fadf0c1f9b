"""profile_comparison.v1 as frozen pydantic models.

Contract
* Durations are microseconds **per step and device**, the mean over a side's captures; `delta` is
  after - before, `relative` the delta as a share of before. None means that no capture of a side
  has such a thing ("not present"), never 0.
* Every `Split` sums to the target: its rows' deltas and `others`, exactly, in the six decimals that
  are written.
* `interval` is the 95 % interval of the delta, `noise` says that it is not told from noise; both
  are None where nothing is known of it, see `noise`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from marin_profile.schema import Record, canonical_json

COMPARISON_SCHEMA = "profile_comparison.v1"


class Change(Record):
    """One figure before and after."""

    before: float | None = None
    after: float | None = None
    delta: float | None = None
    relative: float | None = None


class ComparedCapture(Record):
    """What is known of one of the captures. `kept_steps`: how many the figures rest on."""

    source_path: str
    source_format: str
    trace_sha256: str | None = None
    generated_at_utc: str
    run_id: str | None = None
    run_path: str | None = None
    git_sha: str | None = None
    config_hash: str | None = None
    hardware_type: str | None = None
    num_devices: int | None = None
    num_hosts: int | None = None
    step_source: str | None = None
    kept_steps: int
    tool_version: str | None = None
    jax_version: str | None = None


class Caveat(Record):
    """A reason why the two may not be comparable. "blocking": what differs is not the program's
    speed, or is not known to be; "note": the reader should know."""

    about: str
    severity: Literal["blocking", "note"]
    sentence: str


class ScaledShapes(Record):
    """What most shapes differ in: the size of their `dimension`, counted from 1 from the left, in
    ops with at least `share` of the op time. `per_element`: the time of a step by that size."""

    dimension: int
    before: int
    after: int
    share: float
    per_element: Change | None = None


class Comparability(Record):
    """`same_capture`: both summaries are of the same bytes. `comparable`: they are not, and no
    caveat is blocking. In JSON the caveats are called `doubts`."""

    same_capture: bool
    comparable: bool
    caveats: list[Caveat] = Field(default_factory=list, alias="doubts")
    shapes: ScaledShapes | None = None

    @property
    def blocking(self) -> list[Caveat]:
        return [caveat for caveat in self.caveats if caveat.severity == "blocking"]


class JudgedChange(Change):
    """A change with its noise."""

    interval: tuple[float, float] | None = None
    noise: bool | None = None


class Basis(Record):
    """What is compared where there are no steps: an execution of a `program`, whose executions
    (over all devices and captures of a side) stand in for steps, or the whole capture."""

    kind: Literal["program", "capture"]
    program: str | None = None
    before_executions: int | None = None
    after_executions: int | None = None
    sentence: str


class Target(JudgedChange):
    """What the splits explain. `basis` "periods": the mean over whole periods and devices;
    "execution": the mean over devices of the one step's execution, launch included where all
    captures have it; without steps see Basis. `median`: the change of the typical step, the median
    length (`median_measure`), which the splits do not sum to. Steps are those of all captures."""

    basis: str
    launch_included: bool
    before_captures: int
    after_captures: int
    before_steps: int
    after_steps: int
    before_devices: int
    after_devices: int
    median_measure: str | None = None
    median: Change | None = None


class SplitRow(JudgedChange):
    """One part of the target; `share_of_target` = its delta / the target's."""

    name: str
    share_of_target: float | None = None


class GrossChange(Record):
    """What a delta is made of, which it sums: ops that came and grew (not negative), went and
    shrank (not positive)."""

    added: float
    removed: float
    grown: float
    shrunk: float


class RegionChange(SplitRow):
    """Owned time of ops in a region, named as after the change, "old -> new" where its own name
    changed; `renamed_from` is then, or where a region above was renamed, its whole path before.
    `gross` and `delta_by_pass` split the delta (ops without a pass are in none)."""

    renamed_from: str | None = None
    gross: GrossChange | None = None
    delta_by_pass: dict[str, float] = Field(default_factory=dict)


class OpSide(Record):
    """Ops alike in all but their number; `count` and `duration` per step and device."""

    canonical_name: str
    names: list[str] = Field(default_factory=list)
    num_names: int
    category: str
    shape_signature: str | None = None
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    count: float | None = None
    duration: float


class OpChange(SplitRow):
    """An op, with its partner; `match` says how they match (see `matching`), "only_before" and
    "only_after" that there is no partner, "idle", "launch" and "rest" that the time is of no op
    that is listed."""

    match: str
    before_op: OpSide | None = None
    after_op: OpSide | None = None


class Split(Record):
    """At most top_k rows, those told from noise first, then by size of their delta; `others` is the
    sum of those left out, `noise` of all `noise_rows` rows that are not told from noise, listed or
    left out."""

    rows: list[SplitRow] = Field(default_factory=list)
    others: SplitRow | None = None
    noise: SplitRow | None = None
    noise_rows: int = 0
    total_rows: int = 0


class RegionSplit(Split):
    rows: list[RegionChange] = Field(default_factory=list)  # type: ignore[assignment]


class OpSplit(Split):
    """`gross` sums all rows of ops by what became of them. `rest` sums the rows without a partner
    (and the summaries' remainder rows): the other rows + rest = target. `matches` counts the rows
    of each way of matching."""

    rows: list[OpChange] = Field(default_factory=list)  # type: ignore[assignment]
    gross: GrossChange
    rest: SplitRow
    matches: dict[str, int] = Field(default_factory=dict)


class Rename(Record):
    """A region whose own name or depth changed; whole paths."""

    before: str
    after: str


class Attribution(Record):
    """The target's delta, split over and over: `headline` by the fewest regions that account for
    it, with all below them, `regions` by what stands in each region itself. `intervals_from`: what
    the rows' intervals rest on, "captures", or "steps", which only ledger terms have."""

    intervals_from: Literal["captures", "steps"] | None = None
    ledger: Split
    families: Split
    headline: RegionSplit
    regions: RegionSplit
    ops: OpSplit
    renames: list[Rename] = Field(default_factory=list)


class StepChange(Change):
    """A statistic of the kept steps' lengths, of all or of one class (`step_class`). `measure`:
    period, duration or critical_path."""

    measure: str
    step_class: str | None = None
    statistic: str
    before_count: int | None = None
    after_count: int | None = None


class InclusiveRegionChange(JudgedChange):
    """Owned time of a region and all below it; names and `gross` as in RegionChange."""

    path: str
    renamed_from: str | None = None
    gross: GrossChange


class CollectiveChange(Record):
    """One kind of collective."""

    collective: str
    exposed: Change
    overlapped: Change


class BandwidthChange(Record):
    """One (kind, group size) over the whole captures; GB/s, nccl-tests convention."""

    collective: str
    group_size: int | None = None
    algorithm_gbps: Change
    bus_gbps: Change


class GapChange(Change):
    """Idle time before the ops of one canonical name; counts per step and device."""

    name: str
    before_count: float | None = None
    after_count: float | None = None


class DeviceChange(Change):
    """A device, or a host (`device` is None; the mean over its devices), that changed otherwise
    than the others; per step of it. before, after and delta are those of `term`, the first in which
    it stands out (communication without waiting for others); `beyond_others`: its delta less the
    median one (of two, the other's); `z`: its modified z-score, None of two. `wait_caused`: what
    another device waits for it in a step."""

    host: str
    device: str | None = None
    term: str
    beyond_others: float
    z: float | None = None
    terms: dict[str, Change]
    wait_caused: Change | None = None


class MemoryScopeChange(Record):
    """What is alive of a scope and pass at the peak, in bytes; `scope` is null for buffers without
    one. None: that side's peak holds nothing of it."""

    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    before_size: int | None = None
    after_size: int | None = None
    delta_size: int


class MemoryChange(Record):
    """The planned peak of the fullest program of each side in one memory space, in bytes. The
    rows' deltas and `others_size` sum to `delta_size`; of the `total_rows` that changed the largest
    are listed. `is_complete`: both plans could be read to their end."""

    space: str
    before_program: str
    after_program: str
    before_size: int
    after_size: int
    delta_size: int
    relative: float | None = None
    rows: list[MemoryScopeChange] = Field(default_factory=list)
    others_size: int
    total_rows: int
    is_complete: bool = True


class HloProgramPair(Record):
    """A program before and after, by name. `matched_instructions`: those of before that compute the
    same after, in an op of the same work; `same_names`: how many names both have."""

    before: str
    after: str
    before_instructions: int
    after_instructions: int
    matched_instructions: int
    same_names: int


class HloDifference(SplitRow):
    """What XLA did differently in one place, or in several that are alike, and what that took:
    before, after and delta are of the ops named (the longest first, at most five), as the time that
    they own: what is hidden behind others is not in it. `scope`, `pass` and `source` ("file:line")
    are those of its heaviest instruction. `memory_delta_size`: how many bytes more are alive at the
    peak in the scopes of its instructions; null where that is the same, or no plan is known.
    `may_follow_from`: the kind of a difference of the same program that may be its cause."""

    kind: str
    sentence: str
    program: str
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    source: str | None = None
    before_ops: list[str] = Field(default_factory=list)
    after_ops: list[str] = Field(default_factory=list)
    num_before_ops: int
    num_after_ops: int
    places: int
    memory_delta_size: int | None = None
    may_follow_from: str | None = None


class HloChanges(Record):
    """The target's delta by what XLA did differently: `differences`, `others` that are not listed,
    `unchanged` (ops that compute the same) and `elsewhere` (ops of no program that is known, idle,
    launch) sum to it. `cannot_answer`: why nothing is known. `too_large`: programs that are not
    compared."""

    programs: list[HloProgramPair] = Field(default_factory=list)
    differences: list[HloDifference] = Field(default_factory=list)
    others: SplitRow | None = None
    total_differences: int = 0
    unchanged: SplitRow | None = None
    elsewhere: SplitRow | None = None
    too_large: list[str] = Field(default_factory=list)
    cannot_answer: str | None = None


class Comparison(Record):
    """The whole comparison. Without a `target` (`cannot_attribute` says why) there is no
    attribution, and lists that need it are empty."""

    schema_version: str = COMPARISON_SCHEMA
    before: list[ComparedCapture]
    after: list[ComparedCapture]
    comparability: Comparability
    basis: Basis | None = None
    target: Target | None = None
    cannot_attribute: str | None = None
    attribution: Attribution | None = None
    devices: list[DeviceChange] = Field(default_factory=list)
    step_time: list[StepChange] = Field(default_factory=list)
    regions: list[InclusiveRegionChange] = Field(default_factory=list)
    total_regions: int = 0
    collectives: list[CollectiveChange] = Field(default_factory=list)
    bandwidth: list[BandwidthChange] = Field(default_factory=list)
    gaps: list[GapChange] = Field(default_factory=list)
    total_gaps: int = 0
    memory: MemoryChange | None = None
    hlo: HloChanges | None = None
    units: dict[str, str] = Field(default_factory=dict)

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))
