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

from marin_profile.schema.capture import (
    Abridged,
    CaptureDetails,
    Coverage,
    Host,
    Profiling,
    RunMetadata,
    StepCompiles,
    TraceOverview,
    TraceProvenance,
    UnattributedOp,
    WorkBetween,
)
from marin_profile.schema.communication import (
    Collective,
    CommunicationOp,
    Straggler,
    StragglerHost,
    Transfer,
    straggler_names,
)
from marin_profile.schema.device_time import (
    BreakdownPart,
    DeviceLedger,
    DeviceQuantiles,
    StepAccount,
    TimeBreakdown,
)
from marin_profile.schema.files import LARGEST_SUMMARY, load_summary, parse_summary
from marin_profile.schema.findings import GapBeforeOp, GapRegionContext, OptimizationCandidate
from marin_profile.schema.host import Compilation, HostActivity, HostCause, Launched
from marin_profile.schema.memory import AllocatorMemory, MemoryBuffer, MemoryScope, ProgramMemory
from marin_profile.schema.ops import (
    REMAINDER,
    HotOp,
    Loop,
    OpGroup,
    Program,
    ProgramOp,
    Region,
    RepeatedRegion,
    Roofline,
    RooflineRow,
    SemanticFamily,
)
from marin_profile.schema.record import (
    CAPTURE,
    EPOCH_UTC,
    SCHEMA_VERSION,
    STEADY,
    WHOLE_PERIODS,
    Record,
)
from marin_profile.schema.steps import (
    DurationStats,
    LongOp,
    OutlierCause,
    Step,
    StepClass,
    StepLedger,
    StepOutlier,
    StepTime,
)
from marin_profile.schema.summary import ProfileSummary
from marin_profile.schema.text import canonical_json
from marin_profile.schema.what_if import WhatIf, WhatIfChange

__all__ = [
    "CAPTURE",
    "EPOCH_UTC",
    "LARGEST_SUMMARY",
    "REMAINDER",
    "SCHEMA_VERSION",
    "STEADY",
    "WHOLE_PERIODS",
    "Abridged",
    "AllocatorMemory",
    "BreakdownPart",
    "CaptureDetails",
    "Collective",
    "CommunicationOp",
    "Compilation",
    "Coverage",
    "DeviceLedger",
    "DeviceQuantiles",
    "DurationStats",
    "GapBeforeOp",
    "GapRegionContext",
    "Host",
    "HostActivity",
    "HostCause",
    "HotOp",
    "Launched",
    "LongOp",
    "Loop",
    "MemoryBuffer",
    "MemoryScope",
    "OpGroup",
    "OptimizationCandidate",
    "OutlierCause",
    "ProfileSummary",
    "Profiling",
    "Program",
    "ProgramMemory",
    "ProgramOp",
    "Record",
    "Region",
    "RepeatedRegion",
    "Roofline",
    "RooflineRow",
    "RunMetadata",
    "SemanticFamily",
    "Step",
    "StepAccount",
    "StepClass",
    "StepCompiles",
    "StepLedger",
    "StepOutlier",
    "StepTime",
    "Straggler",
    "StragglerHost",
    "TimeBreakdown",
    "TraceOverview",
    "TraceProvenance",
    "Transfer",
    "UnattributedOp",
    "WhatIf",
    "WhatIfChange",
    "WorkBetween",
    "canonical_json",
    "load_summary",
    "parse_summary",
    "straggler_names",
]
