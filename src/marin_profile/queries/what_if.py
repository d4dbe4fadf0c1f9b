"""What the step would take if one thing were different: a device, communication, an op, the gaps.

The step as it is and the error of its replay first, then the changes asked for, the largest saving
first.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share
from marin_profile.facts.device_time import basis_of
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import COMMUNICATION, is_of_kind
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.schema import ProfileSummary, WhatIfChange

_NOT_REPLAYED = "Capture two or more whole steps, and summarize with this version."


class StepRow(Row, frozen=True, kw_only=True, tag_field="record", tag="step"):
    step_now: Microseconds
    replayed_step: Microseconds
    replay_error: Share
    whole_periods: Count


class ChangeRow(Row, frozen=True, kw_only=True, tag_field="record", tag="change"):
    """`saving` is at most, `saving_at_least` at least what the change saves."""

    change: str
    target: str
    name: str | None
    host: str | None
    factor: Ratio
    step_then: Microseconds
    saving: Microseconds
    saving_at_least: Microseconds
    saving_share: Share
    certainty: str


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    found = summary.what_if
    if found is None or found.step_now is None:
        reason = found.reason if found is not None else None
        return CannotAnswer(
            f"The capture cannot be replayed: {reason}."
            if reason
            else "The summary holds no replay of the capture.",
            _NOT_REPLAYED,
        )
    changes = [row for row in found.changes if _is_meant(row, parameters)]
    if not changes:
        return CannotAnswer(
            "That change was not replayed.",
            "Ask for one of the candidates, or for the query what_if without a name.",
            tuple(dict.fromkeys(_called(row) for row in found.changes))[:10],
        )
    return listing(
        basis_of(summary, "what_if"),
        [StepRow.of(found)],
        [ChangeRow.of(row) for row in changes],
        limit=parameters.limit,
        note="Removing one thing changes nothing else here; savings do not add up.",
    )


def _called(row: WhatIfChange) -> str:
    return row.name or row.change


def _is_meant(row: WhatIfChange, asked: Parameters) -> bool:
    if asked.device is not None:
        return row.change == "device" and (row.name or "").endswith(f":{asked.device}")
    if asked.gaps:
        return row.change == "host_gaps"
    if asked.pass_ is not None:
        return row.change == "pass" and row.name == asked.pass_
    if asked.op is not None:
        return row.change in ("op", "scope") and _is_part(asked.op, row.name or "")
    if asked.kind is not None:
        return row.change == "communication" and (
            asked.kind == COMMUNICATION or is_of_kind(row.name or "", asked.kind)
        )
    return True


def _is_part(asked: str, name: str) -> bool:
    """Of an op the name without its number, of a scope any part of the path."""
    return asked == name or asked.rsplit(".", 1)[0] == name or asked in name.split("/")


QUERY = Query(
    name="what_if",
    description="What the step would take without communication, gaps, a slow device, half an op.",
    example="What if communication were free?",
    run=run,
    rows=(StepRow, ChangeRow),
    parameters=("limit", "op", "kind", "pass", "device", "gaps"),
    intents=(
        intent(20, "what|how", "if"),
        intent(15, "without", "device|gap|idle|communication|@collective|@pass|@op"),
    ),
)
