"""A verdict and a comparison as one page: the answer first, what to do next, then the evidence.

Contract: deterministic; every number is the assessment's or the comparison's own.
"""

from __future__ import annotations

from marin_profile.comparison.model import Comparison
from marin_profile.reports.comparison import render_comparison
from marin_profile.reports.text import NOT_KNOWN, duration, plural, prose, table
from marin_profile.schema import ProfileSummary
from marin_profile.verdict.model import Assessment, Check

MOST_ADVICE = 3


def render_change(assessment: Assessment, comparison: Comparison, after: ProfileSummary) -> str:
    """The whole page; `after` is the capture that the advice is for."""
    lines = ["# Before and after", "", *_verdict(assessment), ""]
    advice = _advice(after)
    if advice:
        lines += ["## What to try next", "", *advice, ""]
    if assessment.checks:
        lines += ["## Checks", "", *_checks(assessment), ""]
    return "\n".join(lines) + "\n" + _below(render_comparison(comparison))


def _verdict(assessment: Assessment) -> list[str]:
    lines = [f"**{prose(assessment.sentence, None)}**"]
    lines += ["", *(f"- {prose(reason, None)}" for reason in assessment.reasons)]
    return lines


def _advice(after: ProfileSummary) -> list[str]:
    lines = []
    for candidate in after.optimization_candidates[:MOST_ADVICE]:
        lines.append(f"- **{prose(candidate.title)}**: {prose('; '.join(candidate.evidence))}")
        lines += [f"  - {prose(suggestion)}" for suggestion in candidate.suggestions]
    return lines


def _checks(assessment: Assessment) -> list[str]:
    one, two = assessment.before, assessment.after
    sides = [
        f"{plural(side.captures, 'capture')}, {plural(side.steps, 'step')}" for side in (one, two)
    ]
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
    return [f"Before: {sides[0]}; after: {sides[1]}.", "", *table(headers, rows, "llrrrrr")]


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


def _below(report: str) -> str:
    """The comparison's own page as a part of this one: each heading one level down."""
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in report.split("\n"))
