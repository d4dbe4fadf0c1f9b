"""Module executions of a device, and which one each op belongs to.

Contract: TPU executions are events of the modules line, and an op belongs to the one it
starts in on the event clock; CPU executions are the groups of ops that share module and run id;
GPU files have none. Executions are in order of their start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.planes import CPU, SPARSECORE, TPU, is_modules_line
from marin_profile.base.columns import extent_by, unique_pairs
from marin_profile.events.timeline import Int64s, Line, Timeline

Program = tuple[str, int | None]  # name and id, None where the file has no ids
_MODULE_ID = re.compile(r"^(.*?)\((-?\d{1,20})\)$")


@dataclass(frozen=True)
class Executions:
    """Module executions of one device on the event clock; `key` indexes `modules`.

    run_id is 0 and has_run_id False where the file has none.
    """

    modules: tuple[Program, ...]
    key: Int64s
    start: Int64s
    end: Int64s
    run_id: Int64s
    has_run_id: NDArray[np.bool_]


def find_executions(
    timeline: Timeline,
    kind: str,
    rows: Int64s,
    op: Int64s,
    facts: tuple[OpFacts, ...],
    lines: Iterable[Line],
) -> tuple[Executions | None, Int64s]:
    if kind in (TPU, SPARSECORE):
        return _module_line_executions(timeline, rows, lines)
    if kind == CPU:
        return _run_executions(timeline, rows, op, facts)
    return None, np.full(len(rows), -1, np.int64)


def split_module_name(name: str) -> Program:
    """ "jit_f(1219)" -> ("jit_f", 1219)."""
    match = _MODULE_ID.match(name)
    return (match.group(1), int(match.group(2)) % (1 << 64)) if match else (name, None)


def _module_line_executions(
    timeline: Timeline, rows: Int64s, lines: Iterable[Line]
) -> tuple[Executions | None, Int64s]:
    """Executions of the modules line; an op belongs to the one it starts in (event clock)."""
    found = [timeline.rows_of(line) for line in lines if is_modules_line(line) and line.count]
    if not found:
        return None, np.full(len(rows), -1, np.int64)
    module_rows = np.concatenate(found)
    module_rows = module_rows[np.argsort(timeline.start[module_rows], kind="stable")]
    start = timeline.start[module_rows]
    end = start + timeline.duration[module_rows]
    used, module_of_row = np.unique(timeline.op[module_rows], return_inverse=True)
    named = [split_module_name(timeline.ops[index].name) for index in used.tolist()]
    modules = tuple(sorted(set(named), key=_module_order))
    at = {module: index for index, module in enumerate(modules)}
    has_run, run_id = timeline.run_id.find(module_rows)
    executions = Executions(
        modules=modules,
        key=np.array([at[module] for module in named], np.int64)[module_of_row],
        start=start,
        end=end,
        run_id=run_id,
        has_run_id=has_run,
    )
    op_start = timeline.start[rows]
    index = np.searchsorted(start, op_start, side="right") - 1
    inside = (index >= 0) & (op_start <= end[np.maximum(index, 0)])
    return executions, np.where(inside, index, -1)


def _run_executions(
    timeline: Timeline, rows: Int64s, op: Int64s, facts: tuple[OpFacts, ...]
) -> tuple[Executions | None, Int64s]:
    """Executions as groups of (module, run id), in order of their first op."""
    has_run, run_id = timeline.run_id.find(rows)
    if not has_run.any():
        return None, np.full(len(rows), -1, np.int64)
    programs = sorted({(fact.module, fact.program_id) for fact in facts}, key=_module_order)
    at = {program: index for index, program in enumerate(programs)}
    program_of = np.array([at[fact.module, fact.program_id] for fact in facts], np.int64)
    keys, runs, inverse = unique_pairs(program_of[op][has_run], run_id[has_run])
    event_start = timeline.start[rows][has_run]
    event_end = event_start + timeline.duration[rows][has_run]
    start, end = extent_by(inverse, event_start, event_end, len(keys))
    order = np.argsort(start, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    execution = np.full(len(rows), -1, np.int64)
    execution[has_run] = rank[inverse]
    return (
        Executions(
            modules=tuple(programs),
            key=keys[order],
            start=start[order],
            end=end[order],
            run_id=runs[order],
            has_run_id=np.ones(len(order), np.bool_),
        ),
        execution,
    )


def _module_order(module: Program) -> tuple[str, int]:
    return module[0], -1 if module[1] is None else module[1]
