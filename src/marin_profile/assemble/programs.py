"""The programs that ran: how often, how long, and what their time was."""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile import schema
from marin_profile.analysis.executions import Program
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.program_calls import ProgramCalls, merge_calls, period_of
from marin_profile.assemble.context import Context, us, us_or_none
from marin_profile.assemble.steps import duration_stats
from marin_profile.events.classify import (
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
)

MOST_PROGRAMS = 32
MOST_OPS = 5


def programs(context: Context) -> list[schema.Program]:
    """The one whose ops own most first; ops of no known program are in no row."""
    groups: dict[Program, list[OpTotals]] = {}
    for op in context.ops:
        if op.device_kind != SPARSECORE and (op.module or op.program_id is not None):
            groups.setdefault((op.module, op.program_id), []).append(op)
    calls = {row.program: row for row in merge_calls(row for p in context.parts for row in p.calls)}
    runs = context.runs_by_name
    devices = [device for _, device in context.devices if device.kind != SPARSECORE]
    whole = sum(device.capture.end - device.capture.start for device in devices)
    ordered = sorted(
        groups.items(),
        key=lambda item: (-_owned(item[1]), item[0][0], -1 if item[0][1] is None else item[0][1]),
    )
    rows = [
        _program(program, ops, whole, calls.get(program), runs.get(program[0]))
        for program, ops in ordered[:MOST_PROGRAMS]
    ]
    rest = [op for _, ops in ordered[MOST_PROGRAMS:] for op in ops]
    if rest:
        rows.append(_program((schema.REMAINDER, None), rest, whole, None, None))
    return rows


def _owned(ops: Sequence[OpTotals], group: int | None = None) -> int:
    return sum(op.exposed for op in ops if group is None or op.facts.group == group)


def _program(
    program: Program,
    ops: Sequence[OpTotals],
    whole: int,
    calls: ProgramCalls | None,
    runs: int | None,
) -> schema.Program:
    name, program_id = program
    row = schema.Program(
        name=name or str(program_id),
        program_id=None if program_id is None else str(program_id),
        executions=runs if calls is None else len(calls.lengths),
        exposed_duration=us(_owned(ops)),
        share_of_device_time=_owned(ops) / whole if whole else None,
        compute_duration=us(_owned(ops, GROUP_COMPUTE)),
        exposed_communication_duration=us(_owned(ops, GROUP_COMMUNICATION)),
        exposed_transfer_duration=us(_owned(ops, GROUP_TRANSFER)),
        unattributed_duration=us(_owned(ops, GROUP_UNKNOWN)),
        top_ops=[
            schema.ProgramOp(
                name=op.facts.name,
                category=op.facts.kind,
                scope=op.facts.scope_path or None,
                count=op.count,
                exposed_duration=us(op.exposed),
            )
            for op in sorted(ops, key=lambda op: (-op.exposed, op.rank))[:MOST_OPS]
        ],
    )
    if calls is None:
        return row
    return row.model_copy(
        update={
            "devices": calls.devices,
            "idle_duration": us(calls.idle),
            "call": duration_stats(calls.lengths),
            "period": us_or_none(period_of(calls.distances)),
            "calls_per_step": calls.in_periods / calls.periods if calls.periods else None,
            "share_of_steps": calls.steps_with / calls.steps if calls.steps else None,
        }
    )
