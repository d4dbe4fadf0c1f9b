"""What a verdict needs of a summary: step lengths and device time per step, and objections.

Contract
* Only kept steps whose length is known and positive count, in their order.
* The basis is the period where every capture has one, else the duration where every capture has
  one (a capture of one step has no period).
* Device time is per step and device, from a step's start to the next one's: the devices' idle time
  between steps belongs to the step before. On the basis of durations it is the step's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.facts.device_time import SPARSE_CORE, headline_window, ledger_rows
from marin_profile.facts.step_time import DURATION, PERIOD, outlier_costs, why_they_differ
from marin_profile.schema import ProfileSummary, Step
from marin_profile.verdict.series import StepSeries
from marin_profile.verdict.student import Floats

HEAVY = "heavy"


@dataclass(frozen=True)
class CaptureSeries:
    """One capture: its step lengths, exposed communication and idle time in microseconds per step
    and device (None: no ledger), and which outliers make mean and typical step differ ("" if none
    do)."""

    lengths: StepSeries
    communication: Floats | None
    idle: Floats | None
    why: str


def objections(before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]) -> list[str]:
    """Why these captures cannot be judged; empty if they can."""
    found = []
    digests: dict[str, str] = {}
    for name, summary in _named(before, "before") + _named(after, "after"):
        if problem := _problem(summary):
            found.append(f"{name} {problem}")
        digest = summary.trace_provenance.trace_sha256
        if digest is not None and digest in digests:
            found.append(f"{name} is the same capture as {digests[digest]}")
        elif digest is not None:
            digests[digest] = name
    return found


def _named(summaries: Sequence[ProfileSummary], side: str) -> list[tuple[str, ProfileSummary]]:
    if len(summaries) == 1:
        return [(side, summaries[0])]
    return [(f"{side} {index}", summary) for index, summary in enumerate(summaries, 1)]


def _problem(summary: ProfileSummary) -> str | None:
    step_time = summary.step_time
    if summary.trace_overview.suspected_truncation:
        return "may be truncated"
    if not step_time.steps and max(step_time.all_steps.count, step_time.steady_state_steps.count):
        return "was written without its step vector (summarize the profile again)"
    if not summary.device_ledger:
        return "holds no device time (host only)"
    if not any(step.kept for step in step_time.steps):
        return "holds no steps"
    return None


def shared_basis(summaries: Sequence[ProfileSummary]) -> str | None:
    """The kind of step length that every capture has; None if there is none."""
    for basis in (PERIOD, DURATION):
        if all(_usable(summary, basis) for summary in summaries):
            return basis
    return None


def capture_series(summary: ProfileSummary, basis: str) -> CaptureSeries:
    steps = _usable(summary, basis)
    numbered = all(step.step_num is not None for step in steps)
    lengths = StepSeries.of(
        [_length(step, basis) or 0.0 for step in steps],
        [(step.step_num if numbered else None) or step.index for step in steps],
        [step.step_class == HEAVY for step in steps],
    )
    why = why_they_differ(summary) if outlier_costs(summary) else ""
    window = ledger_rows(summary, headline_window(summary))
    devices = sum(row.devices for row in window if row.kind != SPARSE_CORE)
    rows = [_device_time(step, basis, devices) for step in steps if step.ledger and devices]
    if not rows:
        return CaptureSeries(lengths, None, None, why)
    communication, idle = np.array(rows).T
    return CaptureSeries(lengths, communication, idle, why)


def _usable(summary: ProfileSummary, basis: str) -> list[Step]:
    return [
        step for step in summary.step_time.steps if step.kept and (_length(step, basis) or 0.0) > 0
    ]


def _length(step: Step, basis: str) -> float | None:
    return step.period if basis == PERIOD else step.duration


def _device_time(step: Step, basis: str, devices: int) -> tuple[float, float]:
    """Exposed communication and idle time."""
    ledger = step.ledger
    assert ledger is not None
    whole = ledger.window_duration
    if basis == PERIOD and step.period is not None:
        whole = max(whole, devices * step.period)
    idle = ledger.idle_duration + whole - ledger.window_duration
    return ledger.exposed_communication_duration / devices, idle / devices
