"""The programs (compiled functions) that ran: their share of device time, calls, and ledger.

The time of a program's ops is split in compute, exposed communication, exposed transfer and
unattributed; what is idle inside its executions stands beside that. Shares are of the time of all
devices in the capture.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Devices, Microseconds, Ratio, Share
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.queries.names import find_name
from marin_profile.schema import ProfileSummary, Program


class TopOp(Row, frozen=True, kw_only=True):
    name: str
    category: str
    exposed_duration: Microseconds


class ProgramRow(Row, frozen=True, kw_only=True):
    """`call_*`: of one execution on one device."""

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
        top_ops=[TopOp.of(op) for op in program.top_ops[:MOST_OPS]],
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    rows = program_rows(summary)
    if not rows:
        return CannotAnswer(
            "No op of this summary names the program that it belongs to.",
            "Summarize the profile again with this version, from the xplane file.",
        )
    if parameters.op is not None:
        match = find_name(parameters.op, [row.name for row in rows])
        if match.name is None:
            return CannotAnswer(
                f"'{parameters.op}' names no one program of this summary.",
                "Ask with a program's name as the answer of programs gives it.",
                match.candidates or tuple(row.name for row in rows[:5]),
            )
        rows = [row for row in rows if row.name == match.name]
    return listing(basis_of(summary, "programs"), rows, limit=parameters.limit, default_limit=5)


QUERY = Query(
    name="programs",
    description="Each program that ran: share of device time, calls, time of a call, idle inside.",
    example="Which programs ran, and how often?",
    run=run,
    rows=(ProgramRow, TopOp),
    parameters=("limit", "op"),
    intents=(
        intent(10, "program|executable", "@op", unless=("gap", "context", "before")),
        intent(10, "program|executable", "call|called|execution"),
        intent(10, "call|called|execution", "many|often|time", unless=("launch", "gap")),
        intent(
            8,
            "program|executable",
            "which|what|list|show|share|many|often|time|take|each|top|period",
            unless=("bound", "compare", "change", "memory"),
        ),
    ),
)
