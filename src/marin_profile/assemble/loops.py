"""The loops of the programs that ran."""

from __future__ import annotations

from marin_profile import schema
from marin_profile.analysis.loops import LoopTotals, loop_totals
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.assemble.context import Context, us

MOST_LOOPS = 32
MOST_SCOPES = 5


def loops(context: Context) -> list[schema.Loop]:
    """The one with most time first."""
    rows = loop_totals(op for op in context.ops if op.device_kind != SPARSECORE)
    runs = context.runs_by_name if rows else {}
    return [_loop(row, runs.get(row.module)) for row in rows[:MOST_LOOPS]]


def _loop(row: LoopTotals, runs: int | None) -> schema.Loop:
    iterations = row.iterations
    scopes = sorted(row.by_scope.items(), key=lambda item: (-item[1], item[0]))
    return schema.Loop(
        program=row.module or str(row.program_id),
        program_id=None if row.program_id is None else str(row.program_id),
        name=row.name,
        around=list(row.around),
        pass_=row.pass_name,
        duration=us(row.exclusive),
        iterations=iterations,
        iterations_per_execution=iterations / runs if iterations and runs else None,
        duration_per_iteration=us(row.exclusive) / iterations if iterations else None,
        by_scope={"/".join(scope): us(time) for scope, time in scopes[:MOST_SCOPES]},
    )
