"""Everything that the summary knows of one op: its time, where it stands, the gaps before it."""

from __future__ import annotations

from marin_profile.events.scopes import SEPARATOR
from marin_profile.facts.device_time import basis_of, op_time
from marin_profile.queries.gap_before import (
    GapContextRow,
    GapRow,
    context_rows,
    gap_rows,
)
from marin_profile.queries.model import SUBJECTS, Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import find_op, known_ops, no_such_op
from marin_profile.queries.parameters import Parameters
from marin_profile.queries.regions import RegionRow, region_rows
from marin_profile.queries.top_ops import OpRow, by_time, group_row, hot_op_row
from marin_profile.schema import ProfileSummary


class ContextOpRow(OpRow, frozen=True, kw_only=True, tag_field="record", tag="op"):
    """The op itself."""


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if parameters.op is None:
        rows = context_rows(summary)
        return listing(
            basis_of(summary, "gap_region_contexts"),
            rows,
            limit=parameters.limit,
            note=None if rows else "No gap could be tied to a region.",
        )
    match = find_op(parameters.op, known_ops(summary), summary)
    if match.name is None:
        return no_such_op(parameters.op, match)
    contexts = context_rows(summary, match.name)
    ops, scopes = _ops(summary, match.name)
    paths = {context.region_path for context in contexts} | {
        SEPARATOR.join(scope.strip(":").split("/")) for scope in scopes
    }
    regions = [row for row in region_rows(summary) if row.path in paths]
    return listing(
        basis_of(
            summary, "hot_ops", "gap_before_ops", "gap_region_contexts", "hierarchical_regions"
        ),
        ops,
        contexts,
        gap_rows(summary, match.name),
        regions,
        limit=parameters.limit,
    )


def _ops(summary: ProfileSummary, name: str) -> tuple[list[ContextOpRow], list[str]]:
    """The op's own rows, else the groups that hold it; and its scope paths."""
    whole = op_time(summary, "hot_ops")
    found = [hot_op_row(op, whole) for op in summary.hot_ops if op.name == name]
    if not found:
        from marin_profile.events.classify import canonical_name

        groups = [group for group in summary.op_groups if name in group.names] or [
            group
            for group in summary.op_groups
            if group.canonical_name == canonical_name(name) and group.num_names > len(group.names)
        ]
        found = [group_row(group, whole) for group in groups]
    rows = [ContextOpRow.of(row) for row in sorted(found, key=by_time)]
    return rows, [row.tf_op_path for row in rows if row.tf_op_path]


QUERY = Query(
    name="gap_region_context",
    description="What is known of one op: time, scope, regions, gaps; or gaps by region.",
    example="Show the context for op `copy.1`",
    run=run,
    rows=(ContextOpRow, GapContextRow, GapRow, RegionRow),
    parameters=("limit", "op"),
    gives={
        "call": ("avg_duration",),
        "step": ("per_step_duration",),
        "share": ("share_of_op_time",),
    },
    intents=(
        intent(12, "context", "@op|op|gap"),
        intent(9, "gap", "region", unless=("before",)),
        intent(
            10,
            "@op",
            "where|region|about|explain|tell|come|what|why|long|much|time|source",
            unless=tuple(word for word in SUBJECTS if word != "op"),
        ),
        intent(8, "context"),
        intent(4, "@op"),
    ),
)
