"""What a run left -> the step times of its capture, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marin_profile.base.errors import CannotAnswerError, NotFoundError
from marin_profile.facts.step_time import typical_and_mean
from marin_profile.inputs import NO_HOOKS, Hooks, Input, Wandb, load_input


@dataclass(frozen=True)
class StepTimes:
    """Microseconds over `steps` kept steps; `length`: a step's period, or its duration."""

    length: str
    typical: float
    mean: float | None
    steps: int


def step_times_below(folder: Path, *, warmup_steps: int, hooks: Hooks = NO_HOOKS) -> StepTimes:
    """Of the newest capture below a folder. Raises what finding and reading it raises, and
    CannotAnswerError where it holds no whole step."""
    if not any(folder.iterdir()):
        raise NotFoundError(f"Nothing was left in {folder}.")
    given = Input("profile_dir", str(folder))
    summary = load_input(given, warmup_steps=warmup_steps, wandb=Wandb(), hooks=hooks)
    if summary.trace_overview.suspected_truncation:
        raise CannotAnswerError(f"The capture below {folder} may be truncated.")
    found = typical_and_mean(summary)
    if found is None or not found.typical > 0:
        raise CannotAnswerError(f"The capture below {folder} holds no whole step.")
    return StepTimes(found.measure, found.typical, found.mean, found.steps)
