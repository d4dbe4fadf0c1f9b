"""What was compiled while the capture ran: how often, how long, and in which step."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds
from marin_profile.facts.device_time import basis_of, hosts_left_out
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import fold_program
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


class HostRow(Row, frozen=True, kw_only=True, tag_field="record", tag="host"):
    """All compilations on the main thread of one host."""

    host: str
    compilations: Count
    duration: Microseconds


class CompilationRow(Row, frozen=True, kw_only=True, tag_field="record", tag="compilation"):
    """`step`: in whose period."""

    host: str
    function: str | None = None
    duration: Microseconds
    step: int | None = None


def _longest_first(row: CompilationRow) -> tuple[float, str, str]:
    return -row.duration, row.host, row.function or ""


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    hosts = [host for host in summary.host_activity if host.window_duration is not None]
    if not hosts:
        reasons = sorted({host.reason for host in summary.host_activity if host.reason})
        because = f": {'; '.join(reasons)}" if reasons else ""
        return CannotAnswer(
            f"Compilations are events of the host, and this capture does not show them{because}.",
            "Capture with the host tracer on (JAX's default), or run with jax_log_compiles.",
        )
    wanted = fold_program(parameters.program) if parameters.program else None
    found = {
        host.host: [
            one
            for one in host.compilations
            if wanted is None or fold_program(one.function or "") == wanted
        ]
        for host in hosts
    }
    rows = sorted(
        (CompilationRow.of(one, host=host) for host, compiled in found.items() for one in compiled),
        key=_longest_first,
    )
    totals = [
        HostRow(host=host, compilations=len(compiled), duration=sum(c.duration for c in compiled))
        for host, compiled in sorted(found.items())
    ]
    return listing(
        basis_of(summary, "host_activity"),
        totals,
        rows,
        limit=parameters.limit,
        note=hosts_left_out(summary) or None
        if rows
        else "Nothing was compiled in this window, on any host's main thread.",
    )


QUERY = Query(
    name="compilations",
    description="What was compiled during the capture: how often, how long, in which step.",
    example="Did anything recompile?",
    run=run,
    rows=(HostRow, CompilationRow),
    parameters=("limit", "program"),
    intents=(intent(10, "compile", unless=("region",)),),
)
