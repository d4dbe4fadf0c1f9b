"""The whole of profile_summary.v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from marin_profile.schema.capture import (
    Abridged,
    CaptureDetails,
    Coverage,
    Host,
    RunMetadata,
    TraceOverview,
    TraceProvenance,
)
from marin_profile.schema.communication import (
    Collective,
    CommunicationOp,
    Straggler,
    StragglerHost,
    Transfer,
)
from marin_profile.schema.device_time import (
    DeviceLedger,
    DeviceQuantiles,
    StepAccount,
    TimeBreakdown,
)
from marin_profile.schema.findings import GapBeforeOp, GapRegionContext, OptimizationCandidate
from marin_profile.schema.host import HostActivity
from marin_profile.schema.memory import AllocatorMemory, ProgramMemory
from marin_profile.schema.ops import (
    HotOp,
    Loop,
    OpGroup,
    Program,
    Region,
    RepeatedRegion,
    Roofline,
    SemanticFamily,
)
from marin_profile.schema.record import EPOCH_UTC, SCHEMA_VERSION, Record
from marin_profile.schema.steps import StepTime
from marin_profile.schema.text import canonical_json
from marin_profile.schema.what_if import WhatIf


class ProfileSummary(Record):
    """The whole summary; `list_basis` says for each list which window it covers. `programs`: the
    one whose ops own most first. `memory`, the fullest programs first, is null where the profile
    holds no plans of XLA's; `allocators` is empty where it holds none of their events.
    `repeated_regions`: the 100 largest; `loops`: the 32 largest. `device_quantiles` and `abridged`
    are empty unless the capture has more devices or hosts than lists hold."""

    schema_version: str = SCHEMA_VERSION
    generated_at_utc: str = EPOCH_UTC
    source_format: str
    source_path: str
    run_metadata: RunMetadata
    trace_overview: TraceOverview
    trace_provenance: TraceProvenance = Field(default_factory=TraceProvenance)
    step_time: StepTime
    time_breakdown: TimeBreakdown
    hot_ops: list[HotOp]
    semantic_families: list[SemanticFamily] = []
    communication_ops: list[CommunicationOp]
    gap_before_ops: list[GapBeforeOp]
    hierarchical_regions: list[Region]
    repeated_regions: list[RepeatedRegion] = []
    gap_region_contexts: list[GapRegionContext] = []
    optimization_candidates: list[OptimizationCandidate]
    device_ledger: list[DeviceLedger] = []
    device_quantiles: list[DeviceQuantiles] = []
    step_account: StepAccount | None = None
    op_groups: list[OpGroup] = []
    programs: list[Program] = []
    loops: list[Loop] = []
    collectives: list[Collective] = []
    transfers: list[Transfer] = []
    stragglers: list[Straggler] = []
    straggler_hosts: list[StragglerHost] = []
    roofline: Roofline | None = None
    hosts: list[Host] = []
    host_activity: list[HostActivity] = []
    memory: list[ProgramMemory] | None = None
    allocators: list[AllocatorMemory] = []
    what_if: WhatIf | None = None
    coverage: Coverage | None = None
    capture: CaptureDetails | None = None
    abridged: list[Abridged] = []
    list_basis: dict[str, str] = {}

    def with_run(self, known: Mapping[str, Any]) -> ProfileSummary:
        """With what the run knows of itself, by the names of RunMetadata. A run counts processes as
        its hosts: where all of them are in the capture, the capture's count of machines stands."""
        known = dict(known)
        if known.get("num_hosts") == len(self.hosts):
            del known["num_hosts"]
        merged = self.run_metadata.model_copy(update=known)
        return self.model_copy(update={"run_metadata": merged})

    def to_json(self) -> str:
        return canonical_json(self.model_dump(mode="python", by_alias=True))
