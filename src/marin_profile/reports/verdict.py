"""A verdict and a comparison as one page: the answer first, what to do next, then the evidence.

Contract: deterministic; every number is the assessment's or the comparison's own.
"""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration, plural, prose, table
from marin_profile.comparison.model import Comparison
from marin_profile.reports.comparison import (
    comparison_headline,
    comparison_sections,
    largest_parts,
)
from marin_profile.schema import ProfileSummary
from marin_profile.verdict.model import Assessment, Check, SideStepTimes

MOST_ADVICE = 3


def render_change(
    assessment: Assessment,
    comparison: Comparison,
    after: ProfileSummary,
    *,
    note: str | None = None,
) -> str:
    """The whole page. `after` is the capture that the advice is for, `note` a sentence on which
    captures the comparison is of."""
    lines = ["# Before and after", "", f"**{prose(assessment.sentence, None)}**", ""]
    if assessment.label is not None:
        lines += [f"Label: {prose(assessment.label)}.", ""]
    lines += [prose(note), ""] if note else []
    lines += [prose(comparison_headline(comparison), None), *largest_parts(comparison), ""]
    lines += [*_how_sure(assessment), ""]
    for title, body in (
        ("What to try next", _next(assessment, after)),
        ("Checks", _checks(assessment)),
    ):
        if body:
            lines += [f"## {title}", "", *body, ""]
    return "\n".join([*lines, *comparison_sections(comparison)])


def _how_sure(assessment: Assessment) -> list[str]:
    """How much was measured, and the reasons that the sentence does not give."""
    lines = [f"Measured: {_size(assessment.before)} before, {_size(assessment.after)} after."]
    noise = assessment.noise_floor
    if noise is not None:
        lines[0] += (
            f" From run to run the step time varies by {100 * noise.log_sd:.1f} % "
            f"({noise.num_repeats} repeats in the history)."
        )
    # The sentence names what blocks, and the table of checks shows what is beyond its
    # threshold.
    listed = tuple(check.check for check in assessment.checks)
    reasons = [one for one in assessment.reasons if listed and not one.startswith(listed)]
    return [*lines, *([""] if reasons else []), *(f"- {prose(one, None)}" for one in reasons)]


def _size(side: SideStepTimes) -> str:
    return f"{plural(side.captures, 'capture')} with {plural(side.steps, 'step')}"


def _next(assessment: Assessment, after: ProfileSummary) -> list[str]:
    lines = []
    if assessment.needed is not None:
        lines += [f"To settle the verdict: {prose(assessment.needed.sentence)}.", ""]
    if after.optimization_candidates:
        lines += ["Findings in the capture after the change, whether it caused them or not:", ""]
    for candidate in after.optimization_candidates[:MOST_ADVICE]:
        lines.append(f"- **{prose(candidate.title)}**: {prose('; '.join(candidate.evidence))}")
        lines += [f"  - {prose(suggestion)}" for suggestion in candidate.suggestions]
    return lines[:-1] if lines and not lines[-1] else lines


def _checks(assessment: Assessment) -> list[str]:
    if not assessment.checks:
        return []
    rows = [
        [
            check.check.replace("_", " "),
            check.result,
            _value(check, check.before),
            _value(check, check.after),
            _change(check, check.change),
            _interval(check),
            _change(check, check.threshold),
        ]
        for check in assessment.checks
    ]
    headers = ["check", "result", "before", "after", "change", "95 % interval", "threshold"]
    return table(headers, rows, "ll")


def _value(check: Check, value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return duration(value) if check.unit == "%" else f"{100 * value:.1f} %"


def _change(check: Check, value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return f"{value:+.2f} %" if check.unit == "%" else f"{100 * value:+.2f} points"


def _interval(check: Check) -> str:
    if check.interval is None:
        return NOT_KNOWN
    low, high = check.interval
    return f"{_change(check, low)} to {_change(check, high)}"
