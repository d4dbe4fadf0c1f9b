"""A history as one web page: a plot and a table per configuration.

Contract: one file, no script, nothing fetched: it works offline and as an attachment. All text is
escaped. Colours follow the reader's light or dark setting; no fact is shown by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from marin_profile.base.text import duration, plural
from marin_profile.history import words
from marin_profile.history.findings import Findings, GroupFindings, TrendFindings
from marin_profile.history.record import TYPICAL
from marin_profile.history.repeats import FAILED
from marin_profile.history.trends import Trend

WIDTH, HEIGHT, MARGIN, LEFT = 720, 200, 14, 84

STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #6a737d;
  --line: #d0d7de; --mark: #0b62c4; --change: #b3400a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #15181c; --faint: #9aa4af;
  --line: #3a424b; --mark: #6cb0ff; --change: #ff9a5c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
p { margin: 0.3rem 0; } .faint { color: var(--faint); }
svg { width: 100%; height: auto; margin: 0.5rem 0; }
svg text { fill: var(--faint); font-size: 11px; } .axis { stroke: var(--line); }
.path { fill: none; stroke: var(--mark); stroke-width: 1.5; } .point { fill: var(--mark); }
.fail { fill: var(--paper); stroke: var(--change); stroke-width: 2; }
.change { stroke: var(--change); stroke-dasharray: 4 3; } .level { stroke: var(--change); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: 0.2rem 0.7rem 0.2rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def render_page(findings: Findings, *, tail: int = 20) -> str:
    """`tail`: how many of the last captures each table lists; plots show all."""
    groups = findings.groups
    total = f"{plural(findings.num_records, 'record')} of {plural(len(groups), 'configuration')}"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Step time history</title>",
        f"<style>\n{STYLE}</style>",
        "</head>",
        "<body>",
        "<h1>Step time history</h1>",
        f"<p>{total}.</p>",
        *(f'<p class="faint">Not read: {escape(problem)}</p>' for problem in findings.problems),
        *(line for one in groups for line in _section(one, tail, findings.baseline)),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _section(one: GroupFindings, tail: int, baseline: str | None) -> Iterator[str]:
    group = one.group
    yield "<section>"
    yield f"<h2>{escape(words.title(group.configuration))}</h2>"
    yield f"<p>{escape(words.counts(group))}</p>"
    yield f'<p class="faint">{escape(words.measure(group.configuration))}</p>'
    for found in one.trends:
        yield from _trend(one, found, baseline)
    if group.typical.points:
        yield from _table(group.typical, tail)
    yield "</section>"


def _trend(one: GroupFindings, found: TrendFindings, baseline: str | None) -> Iterator[str]:
    trend = found.trend
    about = "" if trend.estimand == TYPICAL else f"{words.STEPS[trend.estimand]}: "
    for text in (words.trend(trend), words.noise(one.group, trend)):
        yield f"<p>{escape(about + text)}</p>"
    if trend.estimand == TYPICAL and trend.points:
        yield from _plot(trend)
    for change, cause in zip(trend.changes, found.causes, strict=True):
        yield f"<p><strong>Change</strong>: {escape(about + words.change(trend, change))}</p>"
        yield f'<p class="faint">{escape(words.cause(trend, change, cause))}</p>'
    if trend.drift is not None:
        yield f"<p><strong>Drift</strong>: {escape(about + words.drift(trend))}</p>"
    if baseline is not None and found.baseline is not None:
        yield f"<p>{escape(about + words.baseline(found.baseline, baseline))}</p>"


def _plot(trend: Trend) -> Iterator[str]:
    values = trend.lengths
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or high * 0.01
    bottom, top = low - room, high + room

    def x(at: float) -> str:
        return f"{LEFT + (at + 0.5) * (WIDTH - LEFT - MARGIN) / len(values):.2f}"

    def y(value: float) -> str:
        return f"{MARGIN + (top - value) / (top - bottom) * (HEIGHT - 2 * MARGIN):.2f}"

    label = escape(f"Median step time of {plural(len(values), 'capture')}, in order of time")
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    for value in sorted({low, high}):
        yield (
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - MARGIN}" y1="{y(value)}"'
            f' y2="{y(value)}"/>'
            f'<text x="{LEFT - 6}" y="{y(value)}" text-anchor="end" dominant-baseline="middle">'
            f"{escape(duration(value))}</text>"
        )
    yield from _levels(trend, x, y)
    path = " ".join(f"{x(at)},{y(value)}" for at, value in enumerate(values))
    yield f'<polyline class="path" points="{path}"/>'
    for at, (point, value) in enumerate(zip(trend.points, values, strict=True)):
        kind = "point fail" if point.status in FAILED else "point"
        facts = (duration(value), words.verdict(point), words.name(point))
        text = f"{words.when(point)}: {', '.join(facts)}"
        yield (
            f'<circle class="{kind}" cx="{x(at)}" cy="{y(value)}" r="3.5">'
            f"<title>{escape(text)}</title></circle>"
        )
    yield "</svg>"


def _levels(trend: Trend, x: Callable[[float], str], y: Callable[[float], str]) -> Iterator[str]:
    """The mean level between changes, and a dashed line at each change."""
    changes = trend.changes
    starts = [0, *(change.index for change in changes), len(trend.points)]
    levels = [change.level_after for change in changes]
    if changes:
        levels.insert(0, changes[0].level_before)
    for at, level in enumerate(levels):
        height = y(math.exp(level))
        left, right = x(starts[at] - 0.5), x(starts[at + 1] - 0.5)
        yield f'<line class="level" x1="{left}" x2="{right}" y1="{height}" y2="{height}"/>'
    for change in changes:
        place = x(change.index - 0.5)
        yield f'<line class="change" x1="{place}" x2="{place}" y1="0" y2="{HEIGHT}"/>'


def _table(trend: Trend, tail: int) -> Iterator[str]:
    marks = {change.index: change for change in trend.changes}
    start = max(0, len(trend.points) - tail)
    yield '<div class="scroll"><table>'
    yield _row(("time", "median", "p90", "verdict", "capture", "change"), "th")
    for at in range(start, len(trend.points)):
        point = trend.points[at]
        mark = f"{100 * (marks[at].ratio - 1):+.1f} %" if at in marks else ""
        cells = (
            words.when(point),
            duration(point.median),
            duration(point.p90),
            words.verdict(point),
            words.name(point),
            mark,
        )
        yield _row(cells, "td")
    yield "</table></div>"
    if start:
        yield f'<p class="faint">{plural(start, "earlier capture")} not listed.</p>'


def _row(cells: Sequence[str], tag: str) -> str:
    kinds = ["", ' class="number"', ' class="number"', "", "", ""]
    inner = "".join(
        f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
    )
    return f"<tr>{inner}</tr>"
