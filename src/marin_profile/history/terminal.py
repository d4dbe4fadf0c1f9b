"""A history as plain text for a terminal: one block per configuration.

Contract: `render_text` gives the same text for the same findings. The plot is one line of eighths
of a block per group, its lowest the fastest capture shown, with a bar before each change of level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_profile.base.text import duration, plural
from marin_profile.history import words
from marin_profile.history.findings import Findings, GroupFindings, TrendFindings
from marin_profile.history.record import TYPICAL

BLOCKS = "▁▂▃▄▅▆▇█"
CHANGE = "|"
WIDEST_PLOT = 80


def render_text(findings: Findings, *, tail: int = 20) -> str:
    """`tail`: how many of the last captures each group lists."""
    groups = findings.groups
    lines = [
        f"{plural(findings.num_records, 'record')} of {plural(len(groups), 'configuration')}",
        *(line for one in groups for line in ("", *_block(one, tail, findings.baseline))),
    ]
    return "\n".join(lines) + "\n"


def _block(one: GroupFindings, tail: int, baseline: str | None) -> Iterator[str]:
    group = one.group
    yield words.title(group.configuration)
    yield f"  {words.counts(group)}"
    yield f"  {words.measure(group.configuration)}"
    for found in one.trends:
        yield from _trend(one, found, baseline)
    points = group.typical.points
    if not points:
        return
    marks = {change.index for change in group.typical.changes}
    listed = range(max(0, len(points) - tail), len(points))
    for at in listed:
        point = points[at]
        yield "  " + "  ".join(
            (
                CHANGE if at in marks else " ",
                words.when(point),
                f"{duration(point.median):>11}",
                f"p90 {duration(point.p90):>11}",
                words.verdict(point),
                words.name(point),
            )
        )
    if listed.start:
        yield f"  ({plural(listed.start, 'earlier capture')} not listed)"


def _trend(one: GroupFindings, found: TrendFindings, baseline: str | None) -> Iterator[str]:
    trend = found.trend
    about = "" if trend.estimand == TYPICAL else f"{words.STEPS[trend.estimand]}: "
    yield f"  {about}{words.trend(trend)}"
    yield f"  {about}{words.noise(one.group, trend)}"
    if trend.estimand == TYPICAL and trend.points:
        yield f"  {plot(trend.lengths, {change.index for change in trend.changes})}"
    for change, cause in zip(trend.changes, found.causes, strict=True):
        yield f"  {about}change: {words.change(trend, change)}"
        yield f"    {words.cause(trend, change, cause)}"
    if trend.drift is not None:
        yield f"  {about}{words.drift(trend)}"
    if baseline is not None and found.baseline is not None:
        yield f"  {about}{words.baseline(found.baseline, baseline)}"


def plot(values: Sequence[float], marks: set[int]) -> str:
    """The last values as blocks, and the values of the lowest and the highest block."""
    start = max(0, len(values) - WIDEST_PLOT)
    shown = values[start:]
    low, high = min(shown), max(shown)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    line = "".join(
        (CHANGE if at in marks else "") + BLOCKS[round((value - low) * scale)]
        for at, value in enumerate(shown, start=start)
    )
    return f"{line}  {duration(low)} .. {duration(high)}"
