"""What the step would take if one thing were different: a device, communication, an op, the gaps.

The step as it is and the error of its replay first, then the changes asked for, the largest saving
first.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Ratio, Share
from marin_profile.events.classify import COMPUTE
from marin_profile.facts.device_time import basis_of, headline_time, headline_window
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import COMMUNICATION, TRANSFER, is_of_kind
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent, listing
from marin_profile.queries.names import path_of, within
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary, WhatIfChange

_NOT_REPLAYED = "Capture two or more whole steps, and summarize with this version."


class StepRow(Row, frozen=True, kw_only=True, tag_field="record", tag="step"):
    """`chance`: what two captures of it differ by with nothing changed (95 %)."""

    step_now: Microseconds
    replayed_step: Microseconds
    replay_error: Share
    whole_periods: Count
    chance: Microseconds | None


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
        ceiling = _ceiling(summary, parameters)
        if ceiling is not None:
            return ceiling
        return CannotAnswer(
            f"The capture cannot be replayed: {reason}."
            if reason
            else "The summary holds no replay of the capture.",
            _NOT_REPLAYED,
        )
    changes = [row for row in found.changes if _is_meant(row, parameters)]
    if not changes:
        ceiling = _ceiling(summary, parameters)
        if ceiling is not None:
            return ceiling
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
        note="Removing one thing changes nothing else here; savings do not add up."
        + (" Ops and scopes are halved, not removed." if parameters.op or parameters.scope else ""),
    )


class CeilingRow(Row, frozen=True, kw_only=True, tag_field="record", tag="ceiling"):
    """At most this is saved of device time: `share_of_device_time` of the window, and so much of
    the mean step where it is known."""

    change: str
    name: str | None
    duration: Microseconds
    share_of_device_time: Share
    saving_at_most: Microseconds | None
    step_now: Microseconds | None
    certainty: str


def _ceiling(summary: ProfileSummary, asked: Parameters) -> Answer | None:
    """What the ledger says that a change can save at most, where it was not replayed."""
    time, window = headline_time(summary), headline_window(summary)
    others = (asked.op, asked.scope, asked.device, asked.pass_, asked.program, asked.family)
    if (
        time is None
        or asked.straggler
        or window is None
        or not time.window_duration
        or any(one is not None for one in others)
    ):
        return None
    if asked.gaps:
        change, name, duration = "host_gaps", None, time.idle_duration
    elif asked.kind == COMMUNICATION:
        change, name, duration = "communication", None, time.exposed_communication_duration
    elif asked.kind == TRANSFER:
        change, name, duration = "transfer", None, time.exposed_transfer_duration
    elif asked.kind is not None and asked.kind != COMPUTE:
        parts = (*time.exposed_communication_by_kind, *time.exposed_transfer_by_kind)
        change, name = "communication", asked.kind
        duration = sum(part.duration for part in parts if part.kind == asked.kind)
    else:
        return None
    share = duration / time.window_duration
    step = summary.step_time.mean_period
    row = CeilingRow(
        change=change,
        name=name,
        duration=duration,
        share_of_device_time=share,
        saving_at_most=share * step if step is not None else None,
        step_now=step,
        certainty="at_most",
    )
    reason = summary.what_if.reason if summary.what_if else None
    because = reason or "the replay leaves out what is hardly exposed"
    return Answer(
        window,
        (row,),
        1,
        f"At most this is saved: it is the time that no compute covers. Not replayed: {because}.",
    )


def _called(row: WhatIfChange) -> str:
    return row.name or row.change


def _is_meant(row: WhatIfChange, asked: Parameters) -> bool:
    if asked.device is not None:
        return row.change == "device" and (row.name or "").endswith(f":{asked.device}")
    if asked.straggler:
        return row.change == "device"
    if asked.gaps:
        return row.change == "host_gaps"
    if asked.pass_ is not None:
        return row.change == "pass" and row.name == asked.pass_
    if asked.scope is not None:
        return row.change == "scope" and within(asked.scope)(path_of(row.name or ""))
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
    rows=(StepRow, ChangeRow, CeilingRow),
    parameters=("limit", "op", "scope", "kind", "pass", "device", "gaps", "straggler"),
    gives={
        "step": ("step_then", "saving_at_most"),
        "share": ("saving_share", "share_of_device_time"),
    },
    intents=(
        intent(20, "what|how", "if"),
        intent(
            14,
            "would",
            unless=(
                "suggest",
                "try",
                "fix",
                "improve",
                "optimize",
                "next",
                "i",
                "you",
                "memory",
                "free",
            ),
        ),
        intent(15, "without", "device|gap|idle|communication|transfer|@kind|@pass|@op|@scope"),
    ),
)
