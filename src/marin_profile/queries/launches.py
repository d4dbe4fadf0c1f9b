"""How often programs run and the host launches them, in all and per step.

Executions are counted on devices, launches from Python on the host, where its events are known.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Devices, Ratio
from marin_profile.facts.device_time import basis_of, hosts_left_out
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import fold_program
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import REMAINDER, ProfileSummary


class LaunchRow(Row, frozen=True, kw_only=True, tag_field="record", tag="launched"):
    """Calls of one function from Python."""

    host: str
    function: str
    count: Count
    per_step: Ratio | None = None


class ExecutionsRow(Row, frozen=True, kw_only=True, tag_field="record", tag="executed"):
    """`executions`: over all devices; `per_step`: on one device."""

    program: str
    program_id: str | None = None
    executions: Count | None = None
    devices: Devices | None = None
    per_device: Ratio | None = None
    per_step: Ratio | None = None


class TotalRow(Row, frozen=True, kw_only=True, tag_field="record", tag="all"):
    """Of all hosts and functions; of all programs on one device. Null where any is not known."""

    launches: Count | None = None
    launches_per_step: Ratio | None = None
    executions: Count | None = None
    executions_per_step: Ratio | None = None


def launch_rows(summary: ProfileSummary, program: str | None = None) -> list[LaunchRow]:
    rows = [
        LaunchRow.of(one, host=host.host)
        for host in summary.host_activity
        for one in host.launches
        if program is None or fold_program(one.function) == fold_program(program)
    ]
    return sorted(rows, key=lambda row: (-row.count, row.host, row.function))


def execution_rows(summary: ProfileSummary, program: str | None = None) -> list[ExecutionsRow]:
    rows = [
        ExecutionsRow(
            program=one.name,
            program_id=one.program_id,
            executions=one.executions,
            devices=one.devices,
            per_device=one.executions / one.devices if one.executions and one.devices else None,
            per_step=one.calls_per_step,
        )
        for one in summary.programs
        if one.name != REMAINDER
        and (program is None or fold_program(one.name) == fold_program(program))
    ]
    return sorted(rows, key=lambda row: (-(row.executions or 0), row.program, row.program_id or ""))


def _whole(
    launches: list[LaunchRow], executions: list[ExecutionsRow], *, all_hosts: bool
) -> TotalRow:
    def total(values: list[float | int | None]) -> float | int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    of_hosts = launches if all_hosts else []
    return TotalRow(
        launches=total([row.count for row in of_hosts]),  # type: ignore[arg-type]
        launches_per_step=total([row.per_step for row in of_hosts]),
        executions=total([row.executions for row in executions]),  # type: ignore[arg-type]
        executions_per_step=total([row.per_step for row in executions]),
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    launches = launch_rows(summary, parameters.program)
    executions = execution_rows(summary, parameters.program)
    reasons = sorted({host.reason for host in summary.host_activity if host.reason})
    unknown = (
        f"Launches from Python are not known: {'; '.join(reasons)}."
        if reasons
        else "No launch from Python is in the capture."
    )
    if not launches and not any(row.executions is not None for row in executions):
        return CannotAnswer(
            f"{unknown} Executions of programs are not known either.",
            "Capture with the host tracer on (JAX's default), as an XPlane file.",
        )
    left_out = hosts_left_out(summary)
    return listing(
        basis_of(summary, "host_activity", "programs"),
        [_whole(launches, executions, all_hosts=not left_out)],
        launches,
        executions,
        limit=parameters.limit,
        note=left_out or None if launches else f"{unknown} Executions are counted on the devices.",
    )


QUERY = Query(
    name="launches",
    description="How often programs are launched and run: in all, per step and per device.",
    example="How many launches are there per step?",
    run=run,
    rows=(TotalRow, LaunchRow, ExecutionsRow),
    parameters=("limit", "program"),
    gives={
        "step": ("executions_per_step", "launches_per_step", "per_step"),
        "device": ("per_device",),
    },
    intents=(intent(11, "launch", unless=("idle", "why", "gap")),),
)
