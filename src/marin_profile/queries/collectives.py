"""Which collectives run, how long, and how much of that nothing hides.

One row per (kind, group size) where the summary tells them apart, else one per kind; the most
exposed first. Bandwidths follow the nccl-tests convention.
"""

from __future__ import annotations

from marin_profile.base.units import (
    Bytes,
    BytesPerCall,
    BytesPerStep,
    Count,
    Devices,
    GigabytesPerSecond,
    Microseconds,
    Ratio,
)
from marin_profile.facts.device_time import basis_of, headline_time
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import is_of_kind
from marin_profile.queries.model import Answer, Query, in_order, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.per_step import in_a_step
from marin_profile.schema import STEADY, Collective, ProfileSummary


class CollectiveRow(Row, frozen=True, kw_only=True):
    """`wait_duration`: time spent waiting for the last device to arrive. `instances`: executions by
    a group over all hosts; `members_seen`: how many of a group were captured. `bytes`: of all
    devices; figures per step: of one device in a whole step, the mean."""

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
    per_step_duration: Microseconds | None = None
    exposed_per_step_duration: Microseconds | None = None
    count_per_step: Ratio | None = None
    bytes_per_step: BytesPerStep | None = None
    bytes_per_call: BytesPerCall | None = None


def collective_rows(summary: ProfileSummary, kind: str | None = None) -> list[CollectiveRow]:
    rows = [
        CollectiveRow.of(
            one,
            total_duration=one.duration,
            overlapped_duration=_overlapped(one),
            avg_duration=one.duration / one.count if one.count else None,
            bytes_per_call=one.bytes / one.count if one.bytes is not None and one.count else None,
            **_per_step(summary, one),
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


def _per_step(summary: ProfileSummary, one: Collective) -> dict[str, float | None]:
    """What a device does of it in a step, by the ops that start in whole steps."""
    unknown: dict[str, float | None] = {
        "per_step_duration": None,
        "count_per_step": None,
        "bytes_per_step": None,
        "exposed_per_step_duration": None,
    }
    found = in_a_step(summary, one.collective)
    alike = sum(other.collective == one.collective for other in summary.collectives) == 1
    if found is None or not alike:
        return unknown
    count = one.count * found.part
    return {
        "per_step_duration": found.duration,
        "count_per_step": count,
        "bytes_per_step": count * one.bytes / one.count
        if one.bytes is not None and one.count and found.is_even
        else None,
        "exposed_per_step_duration": _exposed(summary, one.collective),
    }


def _exposed(summary: ProfileSummary, kind: str) -> float | None:
    """Of one device in the mean step, where the ledger tells of whole steps."""
    time, step = headline_time(summary), summary.step_time.mean_period
    if time is None or step is None or time.window != STEADY or not time.window_duration:
        return None
    parts = time.exposed_communication_by_kind
    return sum(part.duration for part in parts if part.kind == kind) / time.window_duration * step


# Files tell times in whole picoseconds, or less exactly.
_RESOLUTION = 1e-6


def _overlapped(one: Collective) -> float:
    """Less than the files can tell, per execution, is rounding."""
    return one.overlapped_duration if one.overlapped_duration > one.count * _RESOLUTION else 0.0


def _worst_first(row: CollectiveRow) -> tuple[float, float, str, int]:
    exposed = row.total_duration if row.exposed_duration is None else row.exposed_duration
    return -exposed, -row.total_duration, row.collective, row.group_size or 0


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = collective_rows(summary, parameters.kind)
    source = "collectives" if summary.collectives else "communication_ops"
    return listing(
        basis_of(summary, source),
        in_order(rows, parameters.order),
        limit=parameters.limit,
        note=_note(rows),
    )


def _note(rows: list[CollectiveRow]) -> str | None:
    if not rows:
        return "No such collective was found among the device ops."
    if all(row.count_per_step == 0 for row in rows):
        return "None of them runs in a whole step: they stand before, between or after the steps."
    return None


QUERY = Query(
    name="collective_breakdown",
    description="Collectives by kind and group size: time, exposed time, wait, bandwidth.",
    example="Which collectives take the most time?",
    run=run,
    rows=(CollectiveRow,),
    parameters=("limit", "kind", "order"),
    gives={
        "step": (
            "bytes_per_step",
            "count_per_step",
            "exposed_per_step_duration",
            "per_step_duration",
        ),
        "call": ("bytes_per_call", "avg_duration"),
        "second": ("algorithm_gbps", "bus_gbps"),
    },
    intents=(
        intent(9, "collective", "bandwidth|wait|top|time|kind|size"),
        intent(9, "communication|@collective", "bandwidth|wait|kind"),
        intent(10, "byte", "@collective|collective"),
        intent(8, "collective"),
        intent(11, "collective", "expose|overlap|hide", "top|rank|list|each|show|sort"),
        intent(12, "communication", "expose|overlap|hide", "kind|each"),
        intent(5, "@collective", "is|are|any|there"),
        intent(11, "byte", "communication"),
        intent(7, "communication", "breakdown|time|cost|top|share|long|much|what|which|show|list"),
        intent(6, "@collective", "breakdown|time|cost|take|share|long|much|many|what|which|show"),
    ),
)
