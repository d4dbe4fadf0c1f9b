"""What to try first, a line each, and what has no costs: the words that the report and the terminal
share."""

from __future__ import annotations

from dataclasses import dataclass

from marin_profile.base.text import duration, share, visible
from marin_profile.facts.costs import without_costs
from marin_profile.schema import OptimizationCandidate, ProfileSummary

MOST = 3  # families


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


def uncosted(summary: ProfileSummary) -> str:
    """How much compute has no known costs, where, and how a kernel gets some; or ""."""
    found = without_costs(summary)
    if found is None:
        return ""
    largest = found.families[:MOST]
    families = ", ".join(f"{visible(name)} {share(part)}" for name, part in largest)
    then = "so there are no rates and no MFU" if found.share > 0.5 else "so MFU is a lower bound"
    return (
        f"No costs are known for {share(found.share)} of compute time"
        f"{f' ({families})' if families else ''}, {then}; pallas_call(cost_estimate=...) states a "
        "kernel's"
    )
