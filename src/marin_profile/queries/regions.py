"""Which regions of the program (scope paths) the time belongs to.

Regions that repeat, as unrolled layers do, come first, folded into one, then the plain ones.
Inclusive and exclusive durations are sums of self time over devices. Shares are of the self time
of all ops in the same window; summaries without `op_groups` give them of the time breakdown.
"""

from __future__ import annotations

from typing import TypeVar

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.facts.device_time import basis_of, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary, Region


class PassPart(Row, frozen=True, kw_only=True):
    pass_: str
    inclusive_duration: Microseconds


class RegionRow(Row, frozen=True, kw_only=True, tag_field="record", tag="region"):
    path: str
    depth: Count
    count: Count
    inclusive_duration: Microseconds
    exclusive_duration: Microseconds
    inclusive_share_of_total: Share | None = None
    exclusive_share_of_total: Share | None = None
    inclusive_by_pass: list[PassPart]
    fused_with: dict[str, Microseconds]


class RepeatedRegionRow(RegionRow, frozen=True, kw_only=True, tag="repeated_region"):
    """The sum of `members` regions that are alike."""

    members: Count
    largest: str
    largest_duration: Microseconds
    smallest_duration: Microseconds


R = TypeVar("R", bound=RegionRow)


def region_time(summary: ProfileSummary) -> float | None:
    """What region shares are shares of."""
    if not summary.op_groups:
        return summary.time_breakdown.total_duration or None
    return op_time(summary, "hierarchical_regions")


def region_rows(summary: ProfileSummary, pass_: str | None = None) -> list[RegionRow]:
    whole = region_time(summary)
    rows = [_row(RegionRow, region, whole) for region in summary.hierarchical_regions]
    return _in_pass(rows, pass_)


def repeated_rows(summary: ProfileSummary, pass_: str | None = None) -> list[RepeatedRegionRow]:
    whole = region_time(summary)
    rows = [_row(RepeatedRegionRow, region, whole) for region in summary.repeated_regions]
    return _in_pass(rows, pass_)


def _row(kind: type[R], region: Region, whole: float | None) -> R:
    return kind.of(
        region,
        inclusive_share_of_total=ratio(region.inclusive_duration, whole),
        exclusive_share_of_total=ratio(region.exclusive_duration, whole),
        inclusive_by_pass=_by_pass(region.inclusive_by_pass or {}),
        fused_with=region.fused_with,
    )


def _in_pass(rows: list[R], pass_: str | None) -> list[R]:
    """The largest first."""
    chosen = [
        row
        for row in rows
        if pass_ is None
        or any(
            part.pass_ == pass_ and part.inclusive_duration > 0 for part in row.inclusive_by_pass
        )
    ]
    return sorted(chosen, key=lambda row: (-row.inclusive_duration, row.path))


def _by_pass(durations: dict[str, float]) -> list[PassPart]:
    ordered = sorted(durations.items(), key=lambda item: (-item[1], item[0]))
    return [PassPart(pass_=name, inclusive_duration=value) for name, value in ordered]


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = region_rows(summary, parameters.pass_)
    return listing(
        basis_of(summary, "hierarchical_regions"),
        repeated_rows(summary, parameters.pass_),
        rows,
        limit=parameters.limit,
        note=None if rows else "No op carries a scope path, so there are no regions.",
    )


QUERY = Query(
    name="hierarchical_regions",
    description="Regions of the program by scope path: inclusive and exclusive time, by pass.",
    example="Show the hierarchical regions",
    run=run,
    rows=(RegionRow, RepeatedRegionRow, PassPart),
    parameters=("limit", "pass"),
    intents=(
        intent(9, "region", "time|take|top|cost|share|show|list|what|which|break|breakdown|tree"),
        intent(7, "region"),
    ),
)
