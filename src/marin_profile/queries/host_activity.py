"""What a host did while all of its devices idled, what it compiled and what it launched.

The hosts whose devices idle longest come first, and of each the cause that costs most.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share, Steps
from marin_profile.facts.device_time import basis_of, hosts_left_out
from marin_profile.facts.rows import Row
from marin_profile.queries.compilations import CompilationRow
from marin_profile.queries.launches import LaunchRow
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import HostActivity, ProfileSummary


class CauseRow(Row, frozen=True, kw_only=True, tag_field="record", tag="cause"):
    host: str
    cause: str
    name: str | None = None
    place: str | None = None
    idle_per_step: Microseconds | None = None
    idle_duration: Microseconds
    share_of_window: Share
    count: Count
    step_count: Steps | None = None
    steps: list[int]
    periodicity: Steps | None = None


class ReadsRow(Row, frozen=True, kw_only=True, tag_field="record", tag="device_reads"):
    host: str
    count: Count
    per_step: Ratio | None = None


def known_hosts(summary: ProfileSummary) -> list[HostActivity]:
    """Those with an account, the longest idle first."""
    known = [host for host in summary.host_activity if host.window_duration is not None]
    return sorted(known, key=lambda host: (-(host.idle_duration or 0.0), host.host))


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    hosts = known_hosts(summary)
    if not hosts:
        reasons = sorted({host.reason for host in summary.host_activity if host.reason})
        return CannotAnswer(
            "; ".join(reasons).capitalize() + "."
            if reasons
            else "The summary does not say what hosts did.",
            "Capture with the host tracer on (JAX's default), and summarize with this version.",
        )
    if parameters.span is not None:
        causes = [
            CauseRow.of(row, host=host.host)
            for host in hosts
            for row in host.causes
            if row.name == parameters.span
        ]
        return listing(
            basis_of(summary, "host_activity"),
            causes,
            limit=parameters.limit,
            note="Time in which the devices idle for it, not all that it takes on the host."
            if causes
            else "No idle time of the devices is put down to it.",
        )
    reads = [
        ReadsRow(
            host=host.host,
            count=host.device_reads or 0,
            per_step=(host.device_reads or 0) / host.whole_periods if host.whole_periods else None,
        )
        for host in hosts
    ]
    return listing(
        basis_of(summary, "host_activity"),
        [CauseRow.of(row, host=host.host) for host in hosts for row in host.causes],
        [CompilationRow.of(row, host=host.host) for host in hosts for row in host.compilations],
        [LaunchRow.of(row, host=host.host) for host in hosts for row in host.launches],
        reads,
        limit=parameters.limit,
        note=hosts_left_out(summary) or None,
    )


QUERY = Query(
    name="host_activity",
    description="What the host did while all devices idled; compilations, launches, reads.",
    example="What does the host do while the devices are idle?",
    run=run,
    rows=(CauseRow, CompilationRow, LaunchRow, ReadsRow),
    parameters=("limit", "span"),
    gives={"share": ("share_of_window",), "step": ("idle_per_step", "per_step")},
    intents=(
        intent(10, "host", "idle|activity|do", unless=("transfer",)),
        intent(12, "launch", "idle|why|wait"),
        intent(11, "@span"),
        intent(9, "host", "time|cost|long", unless=("transfer", "wait", "late", "top", "region")),
        intent(10, "host", "bound|bottleneck", unless=("memory", "communication")),
        intent(13, "device", "wait", "host", unless=("transfer", "collective", "top")),
        intent(9, "checkpoint|python"),
        intent(10, "input", "bound|bottleneck|wait|top|time|cost|take"),
        intent(9, "starve"),
        intent(10, "idle", "why"),
    ),
)
