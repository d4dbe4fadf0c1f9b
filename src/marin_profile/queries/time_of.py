"""How much time belongs to a kind, pass, scope or family together, or to all others.

One row. Of terms of the ledger alone (communication, compute, transfer, idle) it is device time,
else self time of ops, over all devices. `without`: of everything else.
"""

from __future__ import annotations

from collections.abc import Callable

from marin_profile.base.units import Count, Microseconds, Ratio, Share, ShareOfOpTime
from marin_profile.facts.device_time import (
    Part,
    basis_of,
    device_times,
    headline_window,
    op_time,
    ratio,
)
from marin_profile.facts.rows import Row
from marin_profile.queries.kinds import COMMUNICATION, TRANSFER, is_of_kind
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent
from marin_profile.queries.names import path_of, within
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import CAPTURE, REMAINDER, STEADY, OpGroup, ProfileSummary

UNKNOWN_PASS = "unknown"
_TERM_OF = {
    COMMUNICATION: "exposed_communication",
    TRANSFER: "exposed_transfer",
    "compute": "compute",
    "idle": "idle",
}
_TERMS = ("compute", "exposed_communication", "exposed_transfer", "unattributed", "idle")


class DeviceTimeRow(Row, frozen=True, kw_only=True, tag_field="record", tag="device_time"):
    """`parts`: what it is the sum of; `per_step_duration`: of the mean step, on one device."""

    what: str
    duration: Microseconds
    share_of_device_time: Share | None
    per_step_duration: Microseconds | None
    parts: list[Part]


class OpTimeRow(Row, frozen=True, kw_only=True, tag_field="record", tag="op_time"):
    """`per_step_duration`: self time in a kept step on one device, the mean; so is
    `count_per_step`, where it is known."""

    what: str
    count: Count
    exclusive_duration: Microseconds
    share_of_op_time: ShareOfOpTime | None
    exposed_duration: Microseconds
    per_step_duration: Microseconds | None
    is_lower_bound: bool
    count_per_step: Ratio | None = None


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    of_ops = (parameters.pass_, parameters.scope, parameters.family)
    term = parameters.kind or parameters.by
    if of_ops == (None, None, None) and term in _TERM_OF:
        return _of_ledger(summary, _TERM_OF[term], parameters.without)
    if parameters.family is not None:
        return _of_family(summary, parameters)
    if of_ops == (None, None, None) and parameters.kind is None and term is not None:
        return CannotAnswer(
            "It is not said of what the time is asked for.",
            "Name a kind, a pass, a scope or a family.",
        )
    return _of_groups(summary, parameters)


def _of_ledger(summary: ProfileSummary, term: str, without: bool) -> Answer | CannotAnswer:
    window = headline_window(summary)
    time = next(iter(device_times(summary, window)), None)
    if time is None or window is None or not time.window_duration:
        return CannotAnswer(
            "The summary holds no device ledger.",
            "Summarize the profile again with this tool, from a capture that holds device ops.",
        )
    parts = {
        name: getattr(time, f"{name}_duration") for name in _TERMS if (name == term) is not without
    }
    duration = sum(parts.values())
    step = summary.step_time.mean_period
    row = DeviceTimeRow(
        what=f"all but {term}" if without else term,
        duration=duration,
        share_of_device_time=ratio(duration, time.window_duration),
        per_step_duration=duration / time.window_duration * step
        if step is not None and window == STEADY
        else None,
        parts=[
            Part(kind=name, duration=value, share=ratio(value, time.window_duration))
            for name, value in parts.items()
        ],
    )
    return Answer(window, (row,), 1, "Communication beside compute is compute here.")


def _of_family(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if parameters.kind or parameters.pass_ or parameters.scope:
        return CannotAnswer(
            "Families are not known by kind, pass or scope.", "Ask for the family alone."
        )
    whole = op_time(summary, "semantic_families")
    chosen = [
        one
        for one in summary.semantic_families
        if (one.family == parameters.family) is not parameters.without
    ]
    duration = sum(one.exclusive_duration for one in chosen)
    row = OpTimeRow(
        what=f"all but {parameters.family}" if parameters.without else str(parameters.family),
        count=sum(one.count for one in chosen),
        exclusive_duration=duration,
        share_of_op_time=ratio(duration, whole),
        exposed_duration=duration,
        per_step_duration=None,
        is_lower_bound=False,
    )
    return Answer(basis_of(summary, "semantic_families"), (row,), 1)


def _of_groups(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    if not summary.op_groups:
        return CannotAnswer(
            "The summary does not list all ops.", "Summarize the profile again with this version."
        )
    is_meant = _filter(parameters)
    groups = [one for one in summary.op_groups if one.canonical_name != REMAINDER]
    rest = len(groups) < len(summary.op_groups)
    chosen = [one for one in groups if is_meant(one) is not parameters.without]
    if not any(is_meant(one) for one in groups):
        return nothing_of(summary, parameters)
    per_step = [one.per_step_duration for one in chosen if one.per_step_duration is not None]
    duration = sum(one.exclusive_duration for one in chosen)
    row = OpTimeRow(
        what=("all but " if parameters.without else "") + described(parameters),
        count=sum(one.count for one in chosen),
        exclusive_duration=duration,
        share_of_op_time=ratio(duration, op_time(summary)),
        exposed_duration=sum(one.exposed_duration for one in chosen),
        per_step_duration=sum(per_step) if per_step else None,
        is_lower_bound=rest,
        count_per_step=_count_per_step(summary, chosen),
    )
    return Answer(basis_of(summary, "op_groups"), (row,), 1)


def _count_per_step(summary: ProfileSummary, groups: list[OpGroup]) -> float | None:
    steps = summary.step_time.whole_periods
    devices = max((time.devices for time in device_times(summary, CAPTURE)), default=0)
    inside = [one.account_count for one in groups if one.account_count is not None]
    if not (steps and devices and groups) or len(inside) < len(groups):
        return None
    return sum(inside) / (steps * devices)


def _filter(parameters: Parameters) -> Callable[[OpGroup], bool]:
    in_scope = within(parameters.scope) if parameters.scope else None

    def is_meant(group: OpGroup) -> bool:
        return (
            (parameters.kind is None or is_of_kind(group.category, parameters.kind))
            and (parameters.pass_ is None or group.pass_ == parameters.pass_)
            and (in_scope is None or (group.scope is not None and in_scope(path_of(group.scope))))
        )

    return is_meant


def described(parameters: Parameters) -> str:
    parts = [
        parameters.kind,
        f"the {parameters.pass_} pass" if parameters.pass_ else None,
        parameters.scope,
        parameters.program,
    ]
    return " in ".join(part for part in parts if part) or "all ops"


def nothing_of(summary: ProfileSummary, parameters: Parameters) -> CannotAnswer:
    """No op is of what was asked for: of which pass the ops are, where a pass was."""
    if parameters.pass_ is not None:
        known = sorted({group.pass_ for group in summary.op_groups if group.pass_})
        if parameters.pass_ not in known:
            return no_such_pass(parameters.pass_, known)
    return CannotAnswer(
        f"No op of this capture is of {described(parameters)}.",
        "Ask for one of these alone: top_ops, passes and hierarchical_regions list what there is.",
    )


def no_such_pass(asked: str, known: list[str]) -> CannotAnswer:
    if not known:
        return CannotAnswer(
            "No op of the summary carries its pass.",
            "Summarize an xplane.pb that holds the HLO protos: their op names show the pass.",
        )
    return CannotAnswer(
        f"No op of this capture is of the {asked} pass; their passes: {', '.join(known)}.",
        "Ops are of a pass where the program is differentiated (jax.grad), checkpointed, or has an "
        "optimizer scope: capture such a step, or ask for the time by pass.",
        tuple(known),
    )


QUERY = Query(
    name="time_of",
    description="Time of a kind, pass, scope or family together, or of all but these; of all ops.",
    example="How much time is not communication?",
    run=run,
    rows=(DeviceTimeRow, OpTimeRow, Part),
    parameters=("kind", "pass", "scope", "family", "by", "without"),
    gives={
        "step": ("per_step_duration", "count_per_step"),
        "share": ("share_of_device_time", "share_of_op_time"),
    },
    intents=(
        intent(
            6,
            "op",
            "many",
            unless=("@op", "@kind", "@collective", "collective", "transfer", "compare", "top"),
        ),
    ),
)
