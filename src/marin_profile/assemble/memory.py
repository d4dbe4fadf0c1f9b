"""The memory sections: programs that several hosts hold with equal figures are one row."""

from __future__ import annotations

from collections import Counter

from marin_profile import schema
from marin_profile.analysis.memory import MOST_PROGRAMS, LiveBuffer, ProgramMemory, ScopeMemory
from marin_profile.assemble.context import Context


def memory(context: Context) -> list[schema.ProgramMemory] | None:
    """The fullest first; None where no host's file holds plans."""
    if all(part.memory is None for part in context.parts):
        return None
    hosts = Counter(row for part in context.parts for row in part.memory or ())
    rows = sorted(
        hosts, key=lambda row: (-row.peak, row.module, row.program_id, row.space, row.instruction)
    )
    return [_program(row, hosts[row]) for row in rows[:MOST_PROGRAMS]]


def allocators(context: Context) -> list[schema.AllocatorMemory]:
    return [
        schema.AllocatorMemory(
            host=part.host,
            device=use.device or None,
            allocator=use.name or None,
            in_use_size=use.in_use,
            most_in_use_size=use.most_in_use,
            allocated_peak_size=use.allocated_peak,
            capacity_size=use.capacity,
            headroom_size=use.headroom,
        )
        for part in context.parts
        for use in part.allocators
    ]


def _program(row: ProgramMemory, hosts: int) -> schema.ProgramMemory:
    parameters, outputs, constants, temporaries = row.kinds
    return schema.ProgramMemory(
        program_id=str(row.program_id),
        module=row.module or None,
        space=row.space,
        peak_size=row.peak,
        parameter_size=parameters,
        output_size=outputs,
        constant_size=constants,
        temporary_size=temporaries,
        padding_size=row.padding,
        instruction=row.instruction or None,
        scope=_path(row.scope),
        pass_=row.pass_name if row.scope else None,
        by_scope=[_scope(one) for one in row.scopes],
        buffers=[_buffer(one) for one in row.buffers],
        buffer_count=row.count,
        is_complete=row.is_whole,
        donated_size=row.donated,
        donatable_size=row.donatable,
        donatable_arguments=list(row.donatable_arguments),
        host_count=hosts,
    )


def _scope(one: ScopeMemory) -> schema.MemoryScope:
    return schema.MemoryScope(
        scope=schema.REMAINDER if one.scope is None else _path(one.scope),
        pass_=one.pass_name if one.scope else None,
        size=one.size,
        count=one.count,
    )


def _buffer(one: LiveBuffer) -> schema.MemoryBuffer:
    return schema.MemoryBuffer(
        kind=one.kind,
        instruction=one.instruction or None,
        argument=one.argument or None,
        shape=one.shape or None,
        scope=_path(one.scope),
        pass_=one.pass_name if one.scope else None,
        size=one.size,
        padding=one.padding,
    )


def _path(scope: tuple[str, ...]) -> str | None:
    return "/".join(scope) or None
