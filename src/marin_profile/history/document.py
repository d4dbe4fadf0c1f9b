"""A history as a document: a section, a series and a table for each configuration.

Contract: the lead says which slowdowns and drifts stand. All series together show the last
MOST_POINTS captures, but each at least FEWEST_POINTS, with the level before and after each change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from marin_profile.base.text import NOT_KNOWN, duration, plural
from marin_profile.documents.model import (
    Block,
    Bullets,
    Document,
    Level,
    Paragraph,
    Series,
    bullets,
    sections,
    table,
)
from marin_profile.documents.text import plain
from marin_profile.history import words
from marin_profile.history.findings import Findings, GroupFindings, TrendFindings
from marin_profile.history.gate import objections
from marin_profile.history.record import TYPICAL, HistoryRecord
from marin_profile.history.repeats import FAILED
from marin_profile.history.trends import Trend

MOST_POINTS, FEWEST_POINTS = 1000, 80


def history_document(findings: Findings, *, tail: int = 20) -> Document:
    """`tail`: how many of the last captures each table lists."""
    groups = findings.groups
    total = f"{plural(findings.num_records, 'record')} of {plural(len(groups), 'configuration')}"
    most = max(MOST_POINTS // max(len(groups), 1), FEWEST_POINTS)
    stands = objections(findings, on_change=True, on_drift=True)
    return Document(
        title="Step time history",
        lead=(
            Paragraph(total),
            *bullets(plain(one, None) for one in stands),
            *bullets(f"Not read: {plain(problem, None)}" for problem in findings.problems),
        ),
        sections=sections(
            (
                plain(words.title(one.group.configuration), None),
                list(_group(one, tail, most, findings.baseline)),
            )
            for one in groups
        ),
    )


def _group(one: GroupFindings, tail: int, most: int, baseline: str | None) -> Iterator[Block]:
    group = one.group
    yield _said(words.counts(group))
    yield _said(words.measure(group.configuration))
    for found in one.trends:
        yield from _trend(one, found, most, baseline)
    if group.typical.points:
        yield from _captures(group.typical, tail)


def _said(text: str) -> Paragraph:
    return Paragraph(plain(text, None))


def _trend(
    one: GroupFindings, found: TrendFindings, most: int, baseline: str | None
) -> Iterator[Block]:
    trend = found.trend
    about = "" if trend.estimand == TYPICAL else f"{words.STEPS[trend.estimand]}: "
    yield _said(about + words.trend(trend))
    yield _said(about + words.noise(one.group, trend))
    if trend.estimand == TYPICAL and trend.points:
        yield _series(trend, most)
    changes = tuple(
        (
            plain(f"{about}change: {words.change(trend, change)}", None),
            (plain(words.cause(trend, change, cause), None),),
        )
        for change, cause in zip(trend.changes, found.causes, strict=True)
    )
    if changes:
        yield Bullets(changes)
    if trend.drift is not None:
        yield _said(about + words.drift(trend))
    if baseline is not None and found.baseline is not None:
        yield _said(about + words.baseline(found.baseline, baseline))


def _series(trend: Trend, most: int) -> Series:
    """The last points; changes and levels by their places among these."""
    start = max(0, len(trend.points) - most)
    shown, count = trend.points[start:], len(trend.points) - start
    changes = [change for change in trend.changes if change.index > start]
    bounds = [0, *(change.index - start for change in changes), count]
    levels = [change.level_after for change in changes]
    if changes:
        levels.insert(0, changes[0].level_before)
    more = f", the last of {len(trend.points):,}" if start else ""
    return Series(
        title=f"Median step time of {plural(count, 'capture')}{more}, in order of time",
        points=tuple(
            (plain(words.when(point)), length, duration(length))
            for point, length in zip(shown, trend.lengths[start:], strict=True)
        ),
        of=("capture", "median"),
        from_zero=False,
        marked=frozenset(at for at, point in enumerate(shown) if point.status in FAILED),
        notes=tuple(_note(point) for point in shown),
        changes=tuple(
            (change.index - start, words.ratio(change), plain(words.change(trend, change), None))
            for change in changes
        ),
        levels=tuple(
            Level(first, end, math.exp(level), f"level: {duration(math.exp(level))}")
            for first, end, level in zip(bounds, bounds[1:], levels, strict=False)
        ),
    )


def _note(point: HistoryRecord) -> str:
    known = [one for one in (words.verdict(point), words.name(point)) if one != NOT_KNOWN]
    return plain(", ".join(known), None)


def _captures(trend: Trend, tail: int) -> Iterator[Block]:
    """A line for each of the last ones."""
    ratios = {change.index: words.ratio(change) for change in trend.changes}
    start = max(0, len(trend.points) - tail)
    rows = [
        [
            plain(words.when(point)),
            duration(point.median),
            duration(point.p90),
            plain(words.verdict(point)),
            plain(words.name(point)),
            ratios.get(at, ""),
        ]
        for at, point in enumerate(trend.points[start:], start)
    ]
    if rows:
        headers = ["time", "median", "p90", "verdict", "capture", "change"]
        yield table(headers, rows, "lrrlll")
    if start:
        yield Paragraph(f"{plural(start, 'earlier capture')} not listed.")
