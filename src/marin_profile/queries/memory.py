"""How much memory programs need at their peak by XLA's plan, and what uses it there.

The fullest programs, then what is alive at the peak of the fullest in the device's own memory, by
scope and by buffer.
"""

from __future__ import annotations

from marin_profile.base.units import Bytes, Count
from marin_profile.facts.memory import fullest
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary

BASIS = "XLA's plan of each program"


class MemoryRow(Row, frozen=True, kw_only=True, tag_field="record", tag="program"):
    program_id: str
    module: str | None = None
    space: str
    peak_size: Bytes
    parameter_size: Bytes
    output_size: Bytes
    constant_size: Bytes
    temporary_size: Bytes
    padding_size: Bytes | None = None
    instruction: str | None = None
    scope: str | None = None
    pass_: str | None = None
    buffer_count: Count
    is_complete: bool


class MemoryScopeRow(Row, frozen=True, kw_only=True, tag_field="record", tag="scope"):
    program_id: str
    space: str
    scope: str | None = None
    pass_: str | None = None
    size: Bytes
    count: Count


class MemoryBufferRow(Row, frozen=True, kw_only=True, tag_field="record", tag="buffer"):
    program_id: str
    space: str
    kind: str
    instruction: str | None = None
    argument: str | None = None
    shape: str | None = None
    scope: str | None = None
    pass_: str | None = None
    size: Bytes
    padding: Bytes | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if not summary.memory:
        return CannotAnswer(
            "The summary holds no plans of programs' memory.",
            "Capture with HLO protos in an xplane file (enable_hlo_proto of "
            "jax.profiler.ProfileOptions, JAX's default), and summarize with this version.",
        )
    first = fullest(summary.memory)
    of_first = {"program_id": first.program_id, "space": first.space}
    return listing(
        BASIS,
        [MemoryRow.of(row) for row in summary.memory],
        [MemoryScopeRow.of(row, **of_first) for row in first.by_scope],
        [MemoryBufferRow.of(row, **of_first) for row in first.buffers],
        limit=parameters.limit,
    )


QUERY = Query(
    name="memory",
    description="Memory of each program at its peak by XLA's plan, and what uses it there.",
    example="How much HBM is used at the peak, and by what?",
    run=run,
    rows=(MemoryRow, MemoryScopeRow, MemoryBufferRow),
    parameters=("limit",),
    intents=(
        intent(
            12,
            "memory",
            unless=("bound", "bandwidth", "flop", "time", "transfer", "@kind", "bottleneck"),
        ),
        intent(9, "buffer|padding|oom"),
    ),
)
