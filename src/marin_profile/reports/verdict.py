"""A verdict and a comparison as one page: the answer first, what to do next, then the evidence.

Contract: deterministic; every number is the assessment's or the comparison's own.
"""

from __future__ import annotations

from marin_profile.base.text import NOT_KNOWN, duration, plural
from marin_profile.comparison.model import Comparison
from marin_profile.documents import markdown
from marin_profile.documents.model import (
    Block,
    Bullets,
    Document,
    Paragraph,
    bullets,
    sections,
    table,
)
from marin_profile.documents.text import plain, strong
from marin_profile.reports.comparison import (
    comparison_headline,
    comparison_sections,
    largest_parts,
)
from marin_profile.schema import ProfileSummary
from marin_profile.verdict.model import Assessment, Check, SideStepTimes
from marin_profile.verdict.rules import LIKELY_FAIL

MOST_ADVICE = 3
LEAST_APART = 0.5  # points between the changes of two means that call for a word


def render_change(
    assessment: Assessment,
    comparison: Comparison,
    after: ProfileSummary,
    *,
    note: str | None = None,
) -> str:
    """The whole page. `after` is the capture that the advice is for, `note` a sentence on which
    captures the comparison is of."""
    return markdown.render(change(assessment, comparison, after, note=note))


def change(
    assessment: Assessment,
    comparison: Comparison,
    after: ProfileSummary,
    *,
    note: str | None = None,
) -> Document:
    """The page as a document; see `render_change`."""
    headline = f"{comparison_headline(comparison)} {_reconciled(assessment, comparison)}".strip()
    lead: list[Block] = [Paragraph(strong(plain(assessment.sentence, None)))]
    if assessment.label is not None:
        lead.append(Paragraph(f"Label: {plain(assessment.label)}."))
    if note:
        lead.append(Paragraph(plain(note)))
    lead += [Paragraph(plain(headline, None)), *largest_parts(comparison), *_how_sure(assessment)]
    own = sections(
        (
            ("What to try next", _next(assessment, after)),
            ("Checks", _checks(assessment)),
            ("Deciles of the step time", _deciles(assessment)),
        )
    )
    return Document(
        "Before and after", tuple(lead), (*own, *sections(comparison_sections(comparison)))
    )


def _reconciled(assessment: Assessment, comparison: Comparison) -> str:
    """Why the verdict's change of the mean is another than that of the windows."""
    mean = assessment.check("mean_step_time")
    target = comparison.target
    if mean is None or mean.change is None or target is None or target.relative is None:
        return ""
    of_windows = 100.0 * target.relative
    if abs(of_windows - mean.change) < LEAST_APART:
        return ""
    return (
        f"This is the change of the windows as they are ({of_windows:+.1f} %); the verdict's "
        f"({mean.change:+.1f} %) counts steps that come back by how often they do, whatever part "
        "of a cycle a window holds, and captures alike by their logarithms."
    )


def _how_sure(assessment: Assessment) -> list[Block]:
    """How much was measured, and the reasons that the sentence does not give."""
    measured = f"Measured: {_size(assessment.before)} before, {_size(assessment.after)} after."
    noise = assessment.noise_floor
    if noise is not None:
        measured += (
            f" From run to run the step time varies by {100 * noise.log_sd:.1f} % "
            f"({noise.num_repeats} repeats in the history)."
        )
    # The sentence names what blocks, and the table of checks shows what they came to.
    listed = tuple(check.check for check in assessment.checks)
    reasons = [
        one
        for one in assessment.reasons
        if listed and not one.startswith(listed) and one not in assessment.sentence
    ]
    return [Paragraph(measured), *bullets(plain(one, None) for one in reasons)]


def _size(side: SideStepTimes) -> str:
    return f"{plural(side.captures, 'capture')} with {plural(side.steps, 'step')}"


def _next(assessment: Assessment, after: ProfileSummary) -> list[Block]:
    blocks: list[Block] = []
    if assessment.needed is not None:
        aim = "confirm" if assessment.status == LIKELY_FAIL else "settle"
        text = f"To {aim} the verdict: {plain(assessment.needed.sentence)}."
        blocks.append(Paragraph(text))
    candidates = after.optimization_candidates[:MOST_ADVICE]
    if candidates:
        lead = "Findings in the capture after the change, whether it caused them or not:"
        items = tuple(
            (
                f"{strong(plain(one.title))}: {plain('; '.join(one.evidence))}",
                tuple(map(plain, one.suggestions)),
            )
            for one in candidates
        )
        blocks += [Paragraph(lead), Bullets(items)]
    return blocks


def _checks(assessment: Assessment) -> list[Block]:
    if not assessment.checks:
        return []
    rows = [
        [
            check.check.replace("_", " "),
            check.result.replace("_", " "),
            _value(check, check.before),
            _value(check, check.after),
            _change(check, check.change),
            _interval(check.interval, check.unit),
            _change(check, check.threshold),
        ]
        for check in assessment.checks
    ]
    headers = ["check", "result", "before", "after", "change", "95 % interval", "threshold"]
    return [table(headers, rows, "ll")]


def _value(check: Check, value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return f"{value:.2f} {check.unit}" if check.unit == "% of a step" else duration(value)


def _change(check: Check, value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:+.2f} {check.unit}"


def _interval(interval: tuple[float, float] | None, unit: str) -> str:
    if interval is None:
        return NOT_KNOWN
    return f"{interval[0]:+.2f} to {interval[1]:+.2f} {unit}"


def _deciles(assessment: Assessment) -> list[Block]:
    """Those that moved: whose interval excludes 0."""
    rows = [
        [
            f"{10 * one.decile} %",
            duration(one.before),
            duration(one.after),
            f"{one.change:+.2f} %",
            _interval(one.interval, "%"),
        ]
        for one in assessment.deciles
        if one.interval is not None and not one.interval[0] <= 0 <= one.interval[1]
    ]
    if not rows:
        return []
    lead = "So many of the steps are shorter; left out is what did not certainly move."
    return [
        Paragraph(lead),
        table(["decile", "before", "after", "change", "95 % interval"], rows),
    ]
