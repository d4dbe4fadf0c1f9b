"""How long the device idles before an op, or which ops it idles before.

A gap is idle time on one device between the running end and the next op's start. It is booked on
the payload (the first op of real work behind it); `marker_op` is the op that ended it.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import find_op, gap_ops, known_ops, no_such_op
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


class GapRow(Row, frozen=True, kw_only=True, tag_field="record", tag="gap"):
    name: str
    count: Count
    total_gap_duration: Microseconds
    max_gap_duration: Microseconds
    avg_gap_duration: Microseconds
    payload_op: str | None = None
    marker_op: str | None = None


class GapContextRow(Row, frozen=True, kw_only=True, tag_field="record", tag="gap_context"):
    op_name: str
    region_path: str
    count: Count
    total_gap_duration: Microseconds
    avg_gap_duration: Microseconds


def gap_rows(
    summary: ProfileSummary, op: str | None = None, *, single: bool = False
) -> list[GapRow]:
    """All gaps, or those that end at `op` (as payload or as marker); the largest first."""
    gaps = [
        gap
        for gap in summary.gap_before_ops
        if op is None or op in (gap.name, gap.payload_op, gap.marker_op)
    ]
    ordered = sorted(
        gaps,
        key=lambda gap: (
            -(gap.max_gap_duration if single else gap.total_gap_duration),
            gap.name,
        ),
    )
    return [GapRow.of(gap) for gap in ordered]


def context_rows(summary: ProfileSummary, op: str | None = None) -> list[GapContextRow]:
    """The regions that gaps fall in, of all ops or of one; the largest first."""
    contexts = [one for one in summary.gap_region_contexts if op is None or one.op_name == op]
    ordered = sorted(
        contexts, key=lambda one: (-one.total_gap_duration, one.op_name, one.region_path)
    )
    return [GapContextRow.of(context) for context in ordered]


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if parameters.op is None:
        rows = gap_rows(summary, single=parameters.single)
        return listing(
            basis_of(summary, "gap_before_ops"),
            rows,
            limit=parameters.limit,
            note=None if rows else "No device idled before any op.",
        )
    match = find_op(parameters.op, gap_ops(summary), summary)
    if match.name is None:
        elsewhere = find_op(parameters.op, known_ops(summary), summary)
        if match.is_ambiguous or elsewhere.name is None:
            return no_such_op(parameters.op, match if match.is_ambiguous else elsewhere)
        return Answer(
            basis_of(summary, "gap_before_ops"), (), 0, f"No gap ends at '{elsewhere.name}'."
        )
    return listing(
        basis_of(summary, "gap_before_ops", "gap_region_contexts"),
        gap_rows(summary, match.name),
        context_rows(summary, match.name),
        limit=parameters.limit,
    )


QUERY = Query(
    name="pre_op_gap",
    description="Idle time that ends at an op: of one op, or the ops with the most of it.",
    example="What is the gap before `copy.1`?",
    run=run,
    rows=(GapRow, GapContextRow),
    parameters=("limit", "op", "single"),
    intents=(
        intent(13, "gap|idle|wait", "before"),
        intent(
            9, "gap", "@op|op|top|what|which|show|list|where|long|time|many", unless=("context",)
        ),
        intent(7, "device", "wait"),
        intent(6, "gap"),
    ),
)
