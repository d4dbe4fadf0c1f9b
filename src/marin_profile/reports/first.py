"""What to try first, a line each: the words that the report and the terminal share."""

from __future__ import annotations

from dataclasses import dataclass

from marin_profile.base.text import duration, share
from marin_profile.schema import OptimizationCandidate, ProfileSummary


@dataclass(frozen=True)
class FirstAdvice:
    """Plain text. saves: the ceiling, "" where there is none; why: what the advice rests on."""

    title: str
    saves: str
    why: str


def first_advice(summary: ProfileSummary, most: int) -> list[FirstAdvice]:
    return [
        FirstAdvice(one.title, ceiling(one), why(one))
        for one in summary.optimization_candidates[:most]
        if why(one)
    ]


def why(one: OptimizationCandidate) -> str:
    """Summaries of older tools do not say which line of the evidence to show."""
    return one.why or next(iter(one.evidence), "")


def ceiling(one: OptimizationCandidate) -> str:
    """Nothing in summaries of older tools, and where there is nothing to save."""
    if not one.ceiling_share:
        return ""
    saved = f"{share(one.ceiling_share)} of device time"
    if one.ceiling_per_step is not None:
        saved = f"{duration(one.ceiling_per_step)} a step ({share(one.ceiling_share)})"
    bound = saved if one.certainty == "known" else f"at most {saved}"
    return f"{bound}, one-off" if one.occurs == "one-off" else bound
