"""The first line of every view: where the step time goes.

Contract: words around the numbers of the `overview` query. It never states what the summary does
not hold: without steps it says so, one step gives no statistics, and without a device ledger the
shares are named after the breakdown that they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from marin_profile.base.text import duration, plural, share, visible
from marin_profile.facts.device_time import TERMS, DeviceTime, Part
from marin_profile.facts.step_time import why_they_differ
from marin_profile.facts.waits import communication_wait
from marin_profile.queries.overview import OverviewRow, overview
from marin_profile.schema import ProfileSummary

MOST_KINDS = 3
SMALLEST_KIND = 0.0005
WINDOWS = {
    "steady": "steady window",
    "capture": "whole capture",
    "whole_periods": "whole periods of the steady window",
}


def window_name(window: str | None) -> str:
    """ "steady" -> "steady window"; what is not known by name stays as it is."""
    return WINDOWS.get(window or "", window or "window not stated")


def headline(summary: ProfileSummary) -> str:
    """Plain text: what speaks against the steps, if anything does, the figures, who is late."""
    facts = overview(summary)
    doubt = _cut(summary) + _doubt(facts, len(summary.step_time.steps))
    if facts.step_median is None and not facts.kept_steps and summary.step_time.steps:
        step = "No step of the capture could be kept"
    else:
        step = _step(facts, summary.step_time.linked, why_they_differ(summary))
    return f"{doubt}{step}; {_device(facts, summary)}.{_stragglers(summary)}"


def in_short(summary: ProfileSummary) -> str:
    """The step and the largest part of device time, in a few words."""
    facts = overview(summary)
    step = f"step {duration(facts.step_median)}"
    if facts.step_median is None or math.isnan(facts.step_median):
        step = "step length not known" if facts.kept_steps else "no step length"
    cut = ", cut or damaged" if summary.trace_overview.suspected_truncation else ""
    return f"{step}, {_largest(facts)}{cut}"


def _largest(facts: OverviewRow) -> str:
    """Ties by the order of the ledger."""
    time = facts.device_time
    if time is not None:
        parts = [(name, getattr(time, f"{name}_share")) for name in TERMS]
    else:
        parts = [(part.kind, part.share) for part in facts.breakdown]
    known = [(name, value) for name, value in parts if value is not None and value > 0]
    if not known:
        return "device time not known"
    name, value = max(known, key=lambda part: part[1])
    return f"most in {name.replace('_', ' ')} ({share(value)})"


def _cut(summary: ProfileSummary) -> str:
    if not summary.trace_overview.suspected_truncation:
        return ""
    return "The capture is cut or damaged, and the figures are of what is left of it. "


def _doubt(facts: OverviewRow, with_work: int) -> str:
    """Where most steps show no device work, the rest says nothing about a step."""
    if facts.steps_without_work <= with_work:
        return ""
    text = f"Only {with_work:,} of {with_work + facts.steps_without_work:,} steps have device work"
    if facts.long_op is not None:
        text += (
            f", and {visible(facts.long_op.name)} runs longer than "
            f"{plural(facts.long_op.steps, 'typical step')}"
        )
    return f"{text}: check the capture before reading on. "


def _step(facts: OverviewRow, linked: bool | None, why: str) -> str:
    if facts.step_median is None:
        if facts.kept_steps:
            return f"{plural(facts.kept_steps, 'step')} found, but the length is not known"
        return "No steps were found"
    length = duration(facts.step_median)
    if facts.kept_steps == 1:
        return f"Step {length} ({facts.step_measure} of the one step kept: no statistics)"
    loose = "" if linked is not False else ", device work not tied to the steps"
    steps = plural(facts.kept_steps, "kept step")
    if not facts.step_lengths_differ:
        return f"Step {length} (median {facts.step_measure}, {steps}{loose})"
    return (
        f"Step: typical {length}, mean {duration(facts.step_mean)} (median and mean "
        f"{facts.step_measure}, {steps}{loose}): {why}"
    )


def _device(facts: OverviewRow, summary: ProfileSummary) -> str:
    time = facts.device_time
    if time is not None:
        note = " of the leading device kind" if facts.other_devices else ""
        of_mean = ": shares of the mean step" if facts.step_lengths_differ else ""
        return (
            f"device time: {device_shares(time)} ({plural(time.devices, 'device')}{note}, "
            f"{window_name(time.window)}{of_mean})"
        )
    if summary.time_breakdown.total_duration > 0:
        parts = ", ".join(f"{share(part.share)} {part.kind}" for part in facts.breakdown)
        return f"time by the {summary.time_breakdown.duration_basis} breakdown: {parts}"
    return "no device time was recorded"


def _stragglers(summary: ProfileSummary) -> str:
    wait = communication_wait(summary)
    if wait is None or not wait.stragglers:
        return ""
    names = ", ".join(wait.stragglers)
    return f" {share(wait.wait_for_stragglers_share)} is waiting in collectives for {names}."


def device_shares(time: DeviceTime) -> str:
    """The ledger terms; together they are the whole window."""
    terms = [
        f"{share(time.compute_share)} compute",
        f"{share(time.exposed_communication_share)} exposed communication"
        + _kinds(time.exposed_communication_by_kind, time.exposed_communication_duration),
        f"{share(time.exposed_transfer_share)} exposed transfer"
        + _kinds(time.exposed_transfer_by_kind, time.exposed_transfer_duration),
    ]
    if time.unattributed_duration > 0:
        terms.append(f"{share(time.unattributed_share)} unattributed")
    return ", ".join([*terms, f"{share(time.idle_share)} idle"])


def do_overlap(parts: Iterable[Part], whole: float) -> bool:
    """Whether kinds ran beside each other, so that together they exceed their union."""
    return sum(part.duration for part in parts) > whole * (1 + 1e-6) + 1e-3


def _kinds(parts: Sequence[Part], whole: float) -> str:
    named = [part for part in parts if (part.share or 0.0) >= SMALLEST_KIND]
    if not named:
        return ""
    shown = [f"{part.kind} {100 * (part.share or 0.0):.1f}" for part in named[:MOST_KINDS]]
    if len(named) > MOST_KINDS:
        shown.append(f"{len(named) - MOST_KINDS} more")
    beside = ", partly at the same time" if do_overlap(parts, whole) else ""
    return f" ({', '.join(shown)}{beside})"
