"""Which regions of the program (scope paths) the time belongs to.

Regions that repeat, as unrolled layers do, come first, folded into one, then the plain ones.
Inclusive and exclusive durations are sums of self time over devices. Shares are of the self time
of all ops in the same window; summaries without `op_groups` give them of the time breakdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from marin_profile.base.units import Count, Microseconds, Share
from marin_profile.events.scopes import SEPARATOR
from marin_profile.facts.device_time import basis_of, op_time, ratio
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
from marin_profile.queries.names import path_of, within
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.time_of import UNKNOWN_PASS, nothing_of
from marin_profile.schema import REMAINDER, ProfileSummary, Region


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


class ScopeRow(Row, frozen=True, kw_only=True, tag_field="record", tag="scope"):
    """All ops in a scope, wherever it stands in a path: self time over devices;
    `per_step_duration`: in a kept step on one device, the mean."""

    scope: str
    paths: list[str]
    count: Count
    inclusive_duration: Microseconds
    share_of_op_time: Share | None
    per_step_duration: Microseconds | None
    by_pass: dict[str, Microseconds]
    is_lower_bound: bool


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


MOST_PATHS = 8


def _outermost(
    paths: Iterable[tuple[str, ...]], is_within: Callable[[Sequence[str]], bool]
) -> list[str]:
    """Where the scope ends in each path."""
    ends = set()
    for path in paths:
        length = next(size for size in range(1, len(path) + 1) if is_within(path[:size]))
        ends.add(SEPARATOR.join(path[:length]))
    return sorted(ends)


def scope_row(summary: ProfileSummary, scope: str, pass_: str | None) -> ScopeRow | None:
    """None where no op is known to be in the scope."""
    is_within = within(scope)
    groups = [
        group
        for group in summary.op_groups
        if group.scope
        and is_within(path_of(group.scope))
        and (pass_ is None or group.pass_ == pass_)
    ]
    if not groups:
        return None
    by_pass: dict[str, float] = {}
    for group in groups:
        name = group.pass_ or UNKNOWN_PASS
        by_pass[name] = by_pass.get(name, 0.0) + group.exclusive_duration
    duration = sum(group.exclusive_duration for group in groups)
    steps = [group.per_step_duration for group in groups if group.per_step_duration is not None]
    return ScopeRow(
        scope=scope,
        paths=_outermost((path_of(group.scope or "") for group in groups), is_within)[:MOST_PATHS],
        count=sum(group.count for group in groups),
        inclusive_duration=duration,
        share_of_op_time=ratio(duration, op_time(summary)),
        per_step_duration=sum(steps) if steps else None,
        by_pass=by_pass,
        is_lower_bound=any(group.canonical_name == REMAINDER for group in summary.op_groups),
    )


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    rows = region_rows(summary, parameters.pass_)
    repeated = repeated_rows(summary, parameters.pass_)
    whole: list[ScopeRow] = []
    if parameters.scope is not None:
        is_within = within(parameters.scope)
        rows = [row for row in rows if is_within(row.path.split(SEPARATOR))]
        repeated = [row for row in repeated if is_within(row.path.split(SEPARATOR))]
        one = scope_row(summary, parameters.scope, parameters.pass_)
        if one is None and not rows and not repeated:
            return nothing_of(summary, parameters)
        whole = [one] if one else []
    elif parameters.pass_ is not None and not rows and summary.hierarchical_regions:
        return nothing_of(summary, parameters)
    return listing(
        basis_of(summary, "hierarchical_regions"),
        whole,
        in_order(repeated, parameters.order),
        in_order(rows, parameters.order),
        limit=parameters.limit,
        note=None if rows else "No op carries a scope path, so there are no regions.",
    )


QUERY = Query(
    name="hierarchical_regions",
    description="Regions of the program by scope path: inclusive and exclusive time, by pass.",
    example="Show the hierarchical regions",
    run=run,
    rows=(ScopeRow, RegionRow, RepeatedRegionRow, PassPart),
    parameters=("limit", "scope", "pass", "order"),
    gives={
        "share": ("share_of_op_time", "inclusive_share_of_total"),
        "step": ("per_step_duration",),
    },
    intents=(
        intent(9, "region", "time|take|top|cost|share|show|list|what|which|break|breakdown|tree"),
        intent(7, "region"),
        intent(11, "@scope", unless=SUBJECTS),
    ),
)
