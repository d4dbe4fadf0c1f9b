"""A history as plain text for a terminal: one block per configuration.

Contract: `render_text` gives the same text for the same history. The plot is one line of eighths
of a block per group, its lowest the fastest capture shown, with a bar before each change of level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_profile.base.text import duration, plural
from marin_profile.history import words
from marin_profile.history.store import History
from marin_profile.history.trends import Group, groups_of

BLOCKS = "▁▂▃▄▅▆▇█"
CHANGE = "|"
WIDEST_PLOT = 80


def render_text(history: History, *, tail: int = 20) -> str:
    """`tail`: how many of the last captures each group lists."""
    groups = groups_of(history)
    lines = [
        f"{plural(len(history.records), 'record')} of {plural(len(groups), 'configuration')}",
        *(line for group in groups for line in ("", *_block(group, tail))),
    ]
    return "\n".join(lines) + "\n"


def _block(group: Group, tail: int) -> Iterator[str]:
    yield words.title(group.configuration)
    yield f"  {words.counts(group)}"
    yield f"  {words.measure(group.configuration)}"
    yield f"  {words.trend(group)}"
    yield f"  {words.noise(group)}"
    if not group.points:
        return
    marks = {change.index for change in group.changes}
    yield f"  {plot(group.medians, marks)}"
    for change in group.changes:
        yield f"  change: {words.change(group, change)}"
    listed = range(max(0, len(group.points) - tail), len(group.points))
    for at in listed:
        point = group.points[at]
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
