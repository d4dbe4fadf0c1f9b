"""How much of the device time the summary can speak for, and which ops it cannot place."""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, ShareOfOpTime
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import CAPTURE, ProfileSummary


class DroppedRow(Row, frozen=True, kw_only=True):
    reason: str
    events: Count


class CoverageRow(Row, frozen=True, kw_only=True, tag_field="record", tag="coverage"):
    hlo_attributed_share: ShareOfOpTime | None = None
    scope_attributed_share: ShareOfOpTime | None = None
    overlapping_events: Count
    events_dropped: list[DroppedRow]
    lines_not_analysed: list[str]
    empty_devices: list[str]
    format_lacks: list[str]


class UnattributedRow(Row, frozen=True, kw_only=True, tag_field="record", tag="unattributed_op"):
    name: str
    count: Count
    exclusive_duration: Microseconds
    reason: str


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    coverage = summary.coverage
    if coverage is None:
        return CannotAnswer(
            "The summary does not state how much of the device time has an HLO attribution.",
            "Summarize the profile again with this tool.",
        )
    row = CoverageRow.of(
        coverage,
        events_dropped=[
            DroppedRow(reason=reason, events=number)
            for reason, number in sorted(coverage.events_dropped.items())
        ],
    )
    ops = [
        UnattributedRow.of(op)
        for op in sorted(
            coverage.unattributed_ops, key=lambda op: (-op.exclusive_duration, op.name)
        )
    ]
    return listing(
        summary.list_basis.get("unattributed_ops", CAPTURE),
        [row],
        ops,
        limit=parameters.limit,
        note=None if ops else "No op lacks its attribution.",
    )


QUERY = Query(
    name="attribution",
    description="How much device time has an HLO op and a scope, and which ops have none.",
    example="Which ops lack attribution?",
    run=run,
    rows=(CoverageRow, DroppedRow, UnattributedRow),
    parameters=("limit",),
    gives={"share": ("hlo_attributed_share", "scope_attributed_share")},
    intents=(
        intent(14, "attribution"),
        intent(9, "coverage"),
    ),
)
