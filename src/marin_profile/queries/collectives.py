"""Which collectives run, how long, and how much of that nothing hides.

One row per (kind, group size) where the summary tells them apart, else one per kind; the most
exposed first. Bandwidths follow the nccl-tests convention.
"""

from __future__ import annotations

from marin_profile.base.units import Bytes, Count, Devices, GigabytesPerSecond, Microseconds
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import is_of_kind
from marin_profile.queries.model import Answer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary


class CollectiveRow(Row, frozen=True, kw_only=True):
    """`wait_duration`: time spent waiting for the last device to arrive. `instances`: executions by
    a group over all hosts; `members_seen`: how many of a group were captured."""

    collective: str
    group_size: Devices | None = None
    count: Count
    instances: Count | None = None
    members_seen: Devices | None = None
    total_duration: Microseconds
    avg_duration: Microseconds | None = None
    exposed_duration: Microseconds | None = None
    overlapped_duration: Microseconds | None = None
    wait_duration: Microseconds | None = None
    wait_is_lower_bound: bool = False
    bytes: Bytes | None = None
    algorithm_gbps: GigabytesPerSecond | None = None
    bus_gbps: GigabytesPerSecond | None = None
    bandwidth_is_lower_bound: bool = False


def collective_rows(summary: ProfileSummary, kind: str | None = None) -> list[CollectiveRow]:
    rows = [
        CollectiveRow.of(
            one,
            total_duration=one.duration,
            avg_duration=one.duration / one.count if one.count else None,
        )
        for one in summary.collectives
    ] or [
        CollectiveRow(
            collective=one.collective,
            count=one.count,
            total_duration=one.total_duration,
            avg_duration=one.avg_duration,
            exposed_duration=one.exposed_duration,
            overlapped_duration=one.overlapped_duration,
        )
        for one in summary.communication_ops
    ]
    chosen = [row for row in rows if kind is None or is_of_kind(row.collective, kind)]
    return sorted(chosen, key=_worst_first)


def _worst_first(row: CollectiveRow) -> tuple[float, float, str, int]:
    exposed = row.total_duration if row.exposed_duration is None else row.exposed_duration
    return -exposed, -row.total_duration, row.collective, row.group_size or 0


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = collective_rows(summary, parameters.kind)
    source = "collectives" if summary.collectives else "communication_ops"
    return listing(
        basis_of(summary, source),
        rows,
        limit=parameters.limit,
        note=None if rows else "No such collective was found among the device ops.",
    )


QUERY = Query(
    name="collective_breakdown",
    description="Collectives by kind and group size: time, exposed time, wait, bandwidth.",
    example="Which collectives take the most time?",
    run=run,
    rows=(CollectiveRow,),
    parameters=("limit", "kind"),
    intents=(
        intent(9, "collective", "bandwidth|wait|top|time|kind|size"),
        intent(9, "communication|@collective", "bandwidth|wait|kind"),
        intent(10, "byte", "@collective|collective"),
        intent(8, "collective"),
        intent(7, "communication", "breakdown|time|cost|top|share|long|much|what|which|show|list"),
        intent(6, "@collective", "breakdown|time|cost|take|share|long|much|many|what|which|show"),
    ),
)
