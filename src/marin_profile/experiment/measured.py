"""What a run left -> the summary of its last capture and how long its steps are, or why not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from marin_profile.base.errors import NotFoundError, ProfileError
from marin_profile.base.text import visible
from marin_profile.capture.sources import find_captures
from marin_profile.facts.step_time import StepLength, typical_and_mean
from marin_profile.schema import ProfileSummary


@dataclass(frozen=True)
class Left:
    """`problem` follows the run's name in a sentence; without one, `summary` and `length` are
    there. `captures`: how many there are, the last of which counts."""

    captures: int
    problem: str | None = None
    summary: ProfileSummary | None = None
    length: StepLength | None = None


def left_in(out: str, *, warmup_steps: int) -> Left:
    """`out`: a folder or a URL."""
    from marin_profile.pipeline import SummarizeOptions, summarize_capture
    from marin_profile.verdict.inputs import objections

    captures = []
    try:
        with suppress(NotFoundError):
            captures = find_captures(out)
        if not captures:
            return Left(0, "left no profile")
        summary = summarize_capture(captures[-1], SummarizeOptions(warmup_steps=warmup_steps))
    except ProfileError as error:
        problem = f"left a profile that cannot be used: {visible(str(error), 500)}"
        return Left(len(captures), problem)
    length = typical_and_mean(summary)
    wrong = [one.removeprefix("before ") for one in objections([summary], [])]
    if length is None or wrong:
        why = wrong[0] if wrong else "holds no step's length"
        return Left(len(captures), f"left a profile that {why}")
    return Left(len(captures), None, summary, length)
