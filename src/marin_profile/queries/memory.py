"""How much memory programs need at their peak by XLA's plan, and what uses it there.

The fullest programs, then what is alive at the peak of the fullest in the device's own memory, by
scope and by buffer. Asked of a scope, what of it is alive there: the peak falls by that at most
without it, since another instant may then be the fullest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from marin_profile.base.units import Bytes, Count, Share
from marin_profile.events.scopes import SEPARATOR, split_path
from marin_profile.facts.memory import fullest
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import fold_program
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import MemoryScope, ProfileSummary, ProgramMemory

BASIS = "XLA's plan of each program"
IN_USE = "what allocators had in use"


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


class MemoryInUseRow(Row, frozen=True, kw_only=True, tag_field="record", tag="in_use"):
    host: str
    device: str | None = None
    allocator: str | None = None
    in_use_size: Bytes
    most_in_use_size: Bytes
    allocated_peak_size: Bytes
    capacity_size: Bytes
    headroom_size: Bytes


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


class MemoryOfScope(Row, frozen=True, kw_only=True, tag_field="record", tag="of_scope"):
    """What the scopes that `scope` names hold at the peak, in all passes; all of it is an upper
    bound of what the peak would fall by without them."""

    program_id: str
    module: str | None = None
    space: str
    scope: str
    scopes: Count
    freed_at_most: Bytes
    share_of_peak: Share
    peak_size: Bytes


def of_scope(program: ProgramMemory, wanted: str) -> tuple[MemoryOfScope, list[MemoryScope]] | None:
    """None where no scope at the peak has this part in its path."""
    parts = [
        re.compile(re.escape(part).replace(r"\*", ".*"), re.IGNORECASE)
        for part in wanted.replace(SEPARATOR, "/").split("/")
        if part
    ]
    held = [one for one in program.by_scope if one.scope and _is_in(parts, one.scope)]
    if not held:
        return None
    size = sum(one.size for one in held)
    row = MemoryOfScope.of(
        program,
        scope=wanted,
        scopes=len({one.scope for one in held}),
        freed_at_most=size,
        share_of_peak=size / program.peak_size,
    )
    return row, held


def _is_in(parts: Sequence[re.Pattern[str]], scope: str) -> bool:
    """Whether the parts stand in the path one behind the other; "*" in one is any text."""
    path = split_path(scope)
    return bool(parts) and any(
        all(part.fullmatch(own) for own, part in zip(path[at:], parts, strict=False))
        for at in range(len(path) - len(parts) + 1)
    )


def _answer_of_scope(
    program: ProgramMemory, wanted: str, limit: int | None
) -> Answer | CannotAnswer:
    found = of_scope(program, wanted)
    if found is None:
        return CannotAnswer(
            f"No scope with '{wanted}' in its path is listed at the peak of "
            f"{program.module or program.program_id}: without it the peak stays as it is, or it "
            "holds too little to be listed.",
            "Ask how much memory is used, and by what; the scopes there are candidates.",
            tuple(one.scope for one in program.by_scope if one.scope)[:5],
        )
    row, held = found
    of_program = {"program_id": program.program_id, "space": program.space}
    return listing(
        BASIS,
        [row],
        [MemoryScopeRow.of(one, **of_program) for one in held],
        limit=limit,
        note="An upper bound: without it another instant may be the fullest.",
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    in_use = [MemoryInUseRow.of(row) for row in summary.allocators]
    if not summary.memory:
        if in_use and (parameters.scope, parameters.program, parameters.pass_) == (
            None,
            None,
            None,
        ):
            return listing(IN_USE, in_use, limit=parameters.limit)
        return CannotAnswer(
            "The summary holds no plans of programs' memory.",
            "Capture with HLO protos in an xplane file (enable_hlo_proto of "
            "jax.profiler.ProfileOptions, JAX's default), and summarize with this version.",
        )
    plans = summary.memory
    if parameters.program is not None:
        wanted = fold_program(parameters.program)
        plans = [row for row in plans if fold_program(row.module or "") == wanted]
        if not plans:
            return CannotAnswer(
                f"The plan of {parameters.program} is not among those that the summary holds.",
                "Ask how much memory is used: the programs there are candidates.",
                tuple(dict.fromkeys(row.module for row in summary.memory if row.module))[:5],
            )
    first = fullest(plans)
    if parameters.scope is not None:
        return _answer_of_scope(first, parameters.scope, parameters.limit)
    of_first = {"program_id": first.program_id, "space": first.space}
    scopes = [row for row in first.by_scope if parameters.pass_ in (None, row.pass_)]
    buffers = [row for row in first.buffers if parameters.pass_ in (None, row.pass_)]
    if parameters.pass_ is not None and not scopes and not buffers:
        return CannotAnswer(
            f"Nothing at the peak is listed as of the {parameters.pass_} pass.",
            "Ask how much memory is used, and by what.",
        )
    return listing(
        f"{BASIS}; {IN_USE}" if in_use else BASIS,
        in_use,
        [MemoryRow.of(row) for row in plans],
        [MemoryScopeRow.of(row, **of_first) for row in scopes],
        [MemoryBufferRow.of(row, **of_first) for row in buffers],
        limit=parameters.limit,
    )


QUERY = Query(
    name="memory",
    description="Memory of each program at its peak by XLA's plan, and what uses it there.",
    example="How much HBM is used at the peak, and by what?",
    run=run,
    rows=(MemoryInUseRow, MemoryRow, MemoryScopeRow, MemoryBufferRow, MemoryOfScope),
    parameters=("limit", "program", "scope", "pass"),
    gives={"share": ("share_of_peak",)},
    intents=(
        intent(
            12,
            "memory",
            unless=("bound", "bandwidth", "flop", "time", "transfer", "@kind", "bottleneck"),
        ),
        intent(9, "buffer|padding|oom|headroom"),
        intent(21, "memory|buffer|byte", "free|freed|save|saved", "if", unless=("communication",)),
        intent(
            13, "@op|@scope|@program|@family", "free|freed", unless=("if", "communication", "@kind")
        ),
    ),
)
