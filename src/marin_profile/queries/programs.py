"""The programs (compiled functions) that ran: their share of device time, calls, and ledger.

The time of a program's ops is split in compute, exposed communication, exposed transfer and
unattributed; what is idle inside its executions stands beside that. Shares are of the time of all
devices in the capture.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Devices, Microseconds, Ratio, Share
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.model import (
    SUBJECTS,
    Answer,
    CannotAnswer,
    Query,
    in_order,
    intent,
    listing,
)
from marin_profile.queries.names import fold_program
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary, Program


class TopOp(Row, frozen=True, kw_only=True):
    name: str
    category: str
    exposed_duration: Microseconds


class ProgramRow(Row, frozen=True, kw_only=True):
    """`call_*`: of one execution on one device; `per_step_duration`: of all calls in a step."""

    name: str
    program_id: str | None = None
    executions: Count | None = None
    devices: Devices | None = None
    share_of_device_time: Share | None = None
    exposed_duration: Microseconds
    compute_duration: Microseconds | None = None
    exposed_communication_duration: Microseconds | None = None
    exposed_transfer_duration: Microseconds | None = None
    unattributed_duration: Microseconds | None = None
    idle_duration: Microseconds | None = None
    call_median: Microseconds | None = None
    call_mean: Microseconds | None = None
    period: Microseconds | None = None
    calls_per_step: Ratio | None = None
    share_of_steps: Share | None = None
    per_step_duration: Microseconds | None = None
    top_ops: list[TopOp]


MOST_OPS = 3


def program_rows(summary: ProfileSummary) -> list[ProgramRow]:
    return [_row(program) for program in summary.programs]


def _row(program: Program) -> ProgramRow:
    call = program.call
    return ProgramRow.of(
        program,
        call_median=call.median if call else None,
        call_mean=call.mean if call else None,
        per_step_duration=program.calls_per_step * call.mean
        if call and call.mean is not None and program.calls_per_step is not None
        else None,
        top_ops=[TopOp.of(op) for op in program.top_ops[:MOST_OPS]],
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    rows = program_rows(summary)
    if not rows:
        return CannotAnswer(
            "No op of this summary names the program that it belongs to.",
            "Summarize the profile again with this version, from the xplane file.",
        )
    if parameters.program is not None:
        wanted = fold_program(parameters.program)
        known = tuple(dict.fromkeys(row.name for row in rows))
        rows = [row for row in rows if fold_program(row.name) == wanted]
        if not rows:
            return CannotAnswer(
                f"{parameters.program} was compiled or launched; none of its ops is seen to run.",
                "Ask with a program's name as the answer of programs gives it.",
                known[:5],
            )
    field = {
        "idle": "idle_duration",
        "compute": "compute_duration",
        "communication": "exposed_communication_duration",
        "transfer": "exposed_transfer_duration",
        "count": "executions",
    }.get(parameters.by or "")
    if field is not None:
        if any(getattr(row, field) is None for row in rows):
            return CannotAnswer(
                f"It is not known how much {parameters.by} each program holds.",
                "Ask which programs ran: they are ordered by their time.",
            )
        rows.sort(key=lambda row: (-getattr(row, field), row.name))
    return listing(
        basis_of(summary, "programs"),
        in_order(rows, parameters.order),
        limit=parameters.limit,
        default_limit=5,
    )


QUERY = Query(
    name="programs",
    description="Each program that ran: share of device time, calls, time of a call, idle inside.",
    example="Which programs ran, and how often?",
    run=run,
    rows=(ProgramRow, TopOp),
    parameters=("limit", "program", "order", "by"),
    gives={
        "share": ("share_of_device_time",),
        "step": ("per_step_duration", "calls_per_step"),
        "call": ("call_median", "call_mean"),
    },
    intents=(
        intent(
            12,
            "@program",
            unless=SUBJECTS,
        ),
        intent(10, "program|executable", "call|called|execution"),
        intent(10, "call|called|execution", "many|often|time", unless=("launch", "gap", "@kind")),
        intent(
            8,
            "program|executable",
            "which|what|list|show|share|many|often|time|take|each|top|period",
            unless=("bound", "compare", "change", "memory", "between"),
        ),
    ),
)
