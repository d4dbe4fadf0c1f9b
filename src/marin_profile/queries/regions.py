"""Which regions of the program (scope paths) the time belongs to.

Inclusive and exclusive durations are sums of self time over devices. Shares are of the self time
of all ops in the same window; summaries without `op_groups` give them of the time breakdown.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.facts.device_time import basis_of, op_time, ratio
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary


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


def region_time(summary: ProfileSummary) -> float | None:
    """What region shares are shares of."""
    if not summary.op_groups:
        return summary.time_breakdown.total_duration or None
    return op_time(summary, "hierarchical_regions")


def region_rows(summary: ProfileSummary, pass_: str | None = None) -> list[RegionRow]:
    whole = region_time(summary)
    rows = [
        RegionRow.of(
            region,
            inclusive_share_of_total=ratio(region.inclusive_duration, whole),
            exclusive_share_of_total=ratio(region.exclusive_duration, whole),
            inclusive_by_pass=_by_pass(region.inclusive_by_pass or {}),
        )
        for region in summary.hierarchical_regions
        if pass_ is None or (region.inclusive_by_pass or {}).get(pass_, 0.0) > 0
    ]
    return sorted(rows, key=lambda row: (-row.inclusive_duration, row.path))


def _by_pass(durations: dict[str, float]) -> list[PassPart]:
    ordered = sorted(durations.items(), key=lambda item: (-item[1], item[0]))
    return [PassPart(pass_=name, inclusive_duration=value) for name, value in ordered]


def run(summary: ProfileSummary, parameters: Parameters) -> Answer:
    rows = region_rows(summary, parameters.pass_)
    return listing(
        basis_of(summary, "hierarchical_regions"),
        rows,
        limit=parameters.limit,
        note=None if rows else "No op carries a scope path, so there are no regions.",
    )


QUERY = Query(
    name="hierarchical_regions",
    description="Regions of the program by scope path: inclusive and exclusive time, by pass.",
    example="Show the hierarchical regions",
    run=run,
    rows=(RegionRow, PassPart),
    parameters=("limit", "pass"),
    intents=(
        intent(9, "region", "time|take|top|cost|share|show|list|what|which|break|breakdown|tree"),
        intent(7, "region"),
    ),
)
