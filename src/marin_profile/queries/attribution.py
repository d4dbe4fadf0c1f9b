"""How much of the device time the summary can speak for, and which ops it cannot place."""

from __future__ import annotations

from marin_profile.facts.rows import Row, as_count, in_us, measured
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.schema import CAPTURE, ProfileSummary

OF_OP_TIME = "share of device op time"


class DroppedRow(Row):
    reason: str
    events: int = as_count()


class CoverageRow(Row):
    record: str = "coverage"
    hlo_attributed_share: float | None = measured(OF_OP_TIME, default=None)
    scope_attributed_share: float | None = measured(OF_OP_TIME, default=None)
    cost_share: float | None = measured(OF_OP_TIME, default=None)
    overlapping_events: int = as_count()
    events_dropped: tuple[DroppedRow, ...] = ()
    lines_not_analysed: tuple[str, ...] = ()
    empty_devices: tuple[str, ...] = ()
    format_lacks: tuple[str, ...] = ()


class UnattributedRow(Row):
    record: str = "unattributed_op"
    name: str
    count: int = as_count()
    exclusive_duration: float = in_us()
    reason: str


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    coverage = summary.coverage
    if coverage is None:
        return CannotAnswer(
            "The summary does not tell how much of the device time has an HLO attribution.",
            "Summarize the profile again with this tool.",
        )
    row = CoverageRow(
        hlo_attributed_share=coverage.hlo_attributed_share,
        scope_attributed_share=coverage.scope_attributed_share,
        cost_share=coverage.cost_share,
        overlapping_events=coverage.overlapping_events,
        events_dropped=tuple(
            DroppedRow(reason=reason, events=number)
            for reason, number in sorted(coverage.events_dropped.items())
        ),
        lines_not_analysed=tuple(coverage.lines_not_analysed),
        empty_devices=tuple(coverage.empty_devices),
        format_lacks=tuple(coverage.format_lacks),
    )
    ops = [
        UnattributedRow(
            name=op.name,
            count=op.count,
            exclusive_duration=op.exclusive_duration,
            reason=op.reason,
        )
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
    description="How much device time has an HLO op, a scope and costs, and which ops have none.",
    example="Which ops lack attribution?",
    run=run,
    rows=(CoverageRow, DroppedRow, UnattributedRow),
    parameters=("limit",),
    intents=(
        intent(14, "attribution"),
        intent(9, "coverage"),
    ),
)
