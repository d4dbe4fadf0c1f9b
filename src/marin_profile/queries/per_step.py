"""What one device does of a kind of ops in a step, by the ops that start in whole steps."""

from __future__ import annotations

from dataclasses import dataclass

from marin_profile.facts.device_time import device_times
from marin_profile.schema import CAPTURE, ProfileSummary


@dataclass(frozen=True)
class InAStep:
    """`part`: the share of all executions that one device runs in one step, the mean; `is_even`:
    whether ops of every size run in steps as often as elsewhere, so that sums divide alike."""

    part: float
    is_even: bool
    duration: float | None


def in_a_step(summary: ProfileSummary, category: str | None) -> InAStep | None:
    """Of one kind of ops, or of all; None where it is not known."""
    groups = [group for group in summary.op_groups if category in (None, group.category)]
    steps = summary.step_time.whole_periods
    devices = max((time.devices for time in device_times(summary, CAPTURE)), default=0)
    executions = sum(group.count for group in groups)
    if not (steps and devices and executions):
        return None
    if any(group.account_count is None for group in groups):
        return None
    inside = sum(group.account_count or 0 for group in groups)
    # Ops of several sizes, of which some run in other steps than others, have no one size.
    is_even = all(
        (group.account_count or 0) * executions == group.count * inside for group in groups
    )
    durations = [group.per_step_duration for group in groups if group.per_step_duration is not None]
    return InAStep(
        part=inside / executions / (steps * devices),
        is_even=is_even,
        duration=sum(durations) if durations else None,
    )
