"""Charts of a document as SVG, drawn here and not in the reader's browser.

Contract
* No script and no style attribute; colours come from classes of the page. Widths are per cent of
  the room there is, and letters keep their size: a chart fits a phone as it fits a screen.
* Every part is a mark with a title, its value in full: shown on hover, and named to a screen
  reader. The page's script also shows it on focus. No fact is told by colour alone.
* `figures` gives the table of a chart's figures, None where one stands beside it anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup

from marin_profile.documents.model import (
    Bars,
    Chart,
    Icicle,
    Roofline,
    Series,
    Switch,
    Table,
    Waterfall,
    table,
)
from marin_profile.documents.text import unmarked

ROW, BAR = 22, 16
HEIGHT, ROOFLINE_HEIGHT, ROOM = 140, 260, 8
COLOURS = 5
SMALLEST_POINT, LARGEST_POINT = 3.0, 12.0
# The line of a chart lies in units of its own, which are stretched to the room there is.
LINE = 1000

_Height = Callable[[float], float]


def drawn(one: Chart) -> Markup:
    """A chart as the inside of a figure."""
    match one:
        case Bars():
            return _legend(one) + _rows([label for label, _ in one.rows], _bars(one), one.title)
        case Waterfall():
            return _waterfall(one)
        case Icicle():
            depth = max((cell.depth for cell in one.cells), default=-1) + 1
            return tag("div", _svg(_cells(one), ROW * depth, one.title), class_="plot whole")
        case Series():
            return _series(one)
        case Roofline():
            return _roofline(one)
        case Switch():
            raise TypeError("a switch has no figure of its own")


def figures(one: Chart) -> Table | None:
    match one:
        case Bars():
            cells = [
                [label, *(one.text(row, part) for part in range(len(one.parts)))]
                for row, (label, _) in enumerate(one.rows)
            ]
            return table([one.of, *one.parts], cells)
        case Waterfall():
            return table(one.of, [[label, text] for label, _, text in (*one.rows, one.total)])
        case Series():
            changes = {at: text for at, _, text in one.changes}
            notes = [one.notes[at] if one.notes else "" for at in range(len(one.points))]
            rows = [
                [label, text, *([notes[at]] if one.notes else []), changes.get(at, "")]
                for at, (label, _, text) in enumerate(one.points)
            ]
            headers = [*one.of, *(["note"] if one.notes else []), "change"]
            shown = len(headers) if changes else -1
            return table(headers[:shown], [row[:shown] for row in rows], "lrll")
        case Roofline():
            points = [[label, f"{x:.4g}", f"{y:.4g}"] for label, x, y, _, _ in one.points]
            return table(one.of, points)
        case Icicle() | Switch():
            return None


def tag(name: str, inner: str = "", /, **attributes: object) -> Markup:
    """An element; text in it is escaped, `class_` is class."""
    shown = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, shown, inner)


def _share(value: float) -> str:
    return f"{round(100 * value, 3):g}%"


def _mark(shape: Markup, told: str) -> Markup:
    """A part of a chart that says its value."""
    title = tag("title", unmarked(told))
    return tag("g", title + shape, class_="m", role="img", tabindex="-1")


def _svg(parts: Iterable[Markup], height: int, label: str) -> Markup:
    name = unmarked(label)
    inner = Markup("").join(parts)
    return tag("svg", inner, width="100%", height=height, role="group", aria_label=name)


def _text(x: float, y: float, anchor: str, text: str) -> Markup:
    return tag("text", text, x=_share(x), y=f"{y:g}", text_anchor=anchor)


def _rows(
    labels: Sequence[str], marks: Iterable[Markup], title: str, texts: Sequence[str] = ()
) -> Markup:
    """A chart of a bar a row, with the names before the bars and, where given, texts behind."""

    def column(kind: str, lines: Iterable[str]) -> Markup:
        inner = Markup("").join(tag("div", unmarked(line), title=unmarked(line)) for line in lines)
        return tag("div", inner, class_=kind)

    shown = column("names", labels) + _svg(marks, ROW * len(labels), title)
    if not texts:
        return tag("div", shown, class_="plot")
    return tag("div", shown + column("texts", texts), class_="plot texted")


def _legend(one: Bars) -> Markup:
    if len(one.parts) == 1:
        return Markup()
    used = [at for at in range(len(one.parts)) if any(values[at] for _, values in one.rows)]
    items = Markup("").join(
        tag(
            "li",
            tag(
                "svg",
                tag("rect", class_=f"c{at % COLOURS}", width="10", height="10"),
                viewBox="0 0 10 10",
                aria_hidden="true",
            )
            + Markup(" {}").format(unmarked(one.parts[at])),
        )
        for at in used
    )
    return tag("ul", items, class_="legend")


def _bar(row: int, left: float, width: float, kind: str) -> Markup:
    return tag(
        "rect",
        class_=kind,
        x=_share(left),
        y=f"{ROW * row + (ROW - BAR) / 2:g}",
        width=_share(width),
        height=BAR,
    )


def _bars(one: Bars) -> Iterator[Markup]:
    for row, (label, values) in enumerate(one.rows):
        left = 0.0
        for part, value in enumerate(values):
            if value > 0:
                told = f"{label}: {one.parts[part]} {one.text(row, part)}"
                yield _mark(_bar(row, left, value, f"c{part % COLOURS}"), told)
            left += value


def _waterfall(one: Waterfall) -> Markup:
    """Every row begins where the one before it ends; the last goes from zero to the sum."""
    ends = [0.0]
    for _, change, _ in one.rows:
        ends.append(ends[-1] + change)
    low, high = min(0.0, one.total[1], *ends), max(0.0, one.total[1], *ends)
    scale = (high - low) or 1.0
    spans = [*pairwise(ends), (0.0, one.total[1])]
    rows = (*one.rows, one.total)

    def marks() -> Iterator[Markup]:
        zero = _share((0.0 - low) / scale)
        yield tag("line", class_="axis", x1=zero, x2=zero, y1="0", y2=ROW * len(rows))
        for row, ((label, _, text), (start, end)) in enumerate(zip(rows, spans, strict=True)):
            left, width = (min(start, end) - low) / scale, abs(end - start) / scale
            kind = "total" if row == len(one.rows) else "longer" if end > start else "less"
            yield _mark(_bar(row, left, width, kind), f"{label}: {text}")

    return _rows([label for label, _, _ in rows], marks(), one.title, [row[2] for row in rows])


def _cells(one: Icicle) -> Iterator[Markup]:
    """The names are cut where their cells end."""
    for cell in one.cells:
        inner = tag("rect", class_=f"i{cell.depth % 2}", width="100%", height=ROW) + tag(
            "text", unmarked(cell.name), x="4", y="15"
        )
        place = {"x": _share(cell.start), "y": ROW * cell.depth, "width": _share(cell.width)}
        yield _mark(tag("svg", inner, height=ROW, **place), cell.text)


def _framed(inner: Markup, left: tuple[str, str], below: tuple[str, ...]) -> Markup:
    """A plot with the ends of its upright axis beside it, and labels below it."""

    def ends(kind: str, texts: Iterable[str]) -> Markup:
        return tag("div", Markup("").join(tag("span", text) for text in texts), class_=kind)

    return tag("div", ends("up", left) + inner + ends("along", below), class_="plot")


def _line(points: Iterable[tuple[float, float]], height: int, kind: str) -> Markup:
    """x from 0 to 1, y from the top in pixels."""
    shown = " ".join(f"{round(LINE * x, 2):g},{round(y, 2):g}" for x, y in points)
    line = tag("polyline", class_=kind, points=shown, vector_effect="non-scaling-stroke")
    return tag(
        "svg",
        line,
        width="100%",
        height=height,
        viewBox=f"0 0 {LINE} {height}",
        preserveAspectRatio="none",
    )


def _series(one: Series) -> Markup:
    values = [value for _, value, _ in one.points]
    texts = {value: text for _, value, text in one.points}
    low, high = (0.0 if one.from_zero else min(values)), max(values)
    extent = (high - low) or 1.0
    room = HEIGHT - 2 * ROOM

    def y(value: float) -> float:
        return HEIGHT - ROOM - room * (value - low) / extent

    bottom = "0" if one.from_zero else texts[low]
    parts = [*_values(one, y), *_changes(one, y)]
    return _framed(
        _svg(parts, HEIGHT, one.title),
        (texts[high], bottom),
        (unmarked(one.points[0][0]), unmarked(one.points[-1][0])),
    )


def _values(one: Series, y: _Height) -> Iterator[Markup]:
    slot = 1 / len(one.points)
    for height in sorted({HEIGHT - ROOM, ROOM}):
        yield tag("line", class_="axis", x1="0", x2="100%", y1=height, y2=height)
    if not one.from_zero:
        middles = [((at + 0.5) * slot, y(point[1])) for at, point in enumerate(one.points)]
        yield _line(middles, HEIGHT, "path")
    for at, (label, value, text) in enumerate(one.points):
        kind = "step marked" if at in one.marked else "step"
        top = y(value)
        if one.from_zero:
            shape = tag(
                "rect",
                class_=kind,
                x=_share((at + 0.1) * slot),
                y=f"{top:.2f}",
                width=_share(0.8 * slot),
                height=f"{HEIGHT - ROOM - top:.2f}",
            )
        else:
            shape = tag("circle", class_=kind, cx=_share((at + 0.5) * slot), cy=f"{top:.2f}", r="4")
        note = one.notes[at] if one.notes else ""
        yield _mark(shape, f"{label}: {text}{f', {note}' if note else ''}")


def _changes(one: Series, y: _Height) -> Iterator[Markup]:
    slot = 1 / len(one.points)
    for level in one.levels:
        ends = {"x1": _share(level.first * slot), "x2": _share(level.end * slot)}
        height = f"{y(level.value):.2f}"
        yield _mark(tag("line", class_="level", y1=height, y2=height, **ends), level.text)
    for at, short, text in one.changes:
        place = at * slot
        line = tag("line", class_="change", x1=_share(place), x2=_share(place), y1="0", y2=HEIGHT)
        anchor = "end" if place > 0.5 else "start"
        yield _mark(line + _text(place, 12, anchor, f" {short} "), text)


def _roofline(one: Roofline) -> Markup:
    """Both axes are logarithmic, by whole decades."""
    xs = [x for _, x, *_ in one.points] + [one.ridge]
    ys = [y for _, _, y, *_ in one.points] + [one.peak]
    left, right = _decades(xs)
    bottom, top = _decades(ys)

    def along(x: float) -> float:
        return (math.log10(x) - left) / (right - left)

    def down(y: float) -> float:
        return ROOM + (ROOFLINE_HEIGHT - 2 * ROOM) * (top - math.log10(y)) / (top - bottom)

    def parts() -> Iterator[Markup]:
        for decade in range(left, right + 1):
            at = _share(along(10.0**decade))
            yield tag("line", class_="axis", x1=at, x2=at, y1="0", y2=ROOFLINE_HEIGHT)
        for decade in range(bottom, top + 1):
            at = f"{down(10.0**decade):.2f}"
            yield tag("line", class_="axis", x1="0", x2="100%", y1=at, y2=at)
        slope = one.peak / one.ridge
        # The roof begins where it enters the plot: at the left, or at the bottom.
        start = max(10.0**left, 10.0**bottom / slope)
        roof = [(start, start * slope), (one.ridge, one.peak), (10.0**right, one.peak)]
        ends = [(along(x), down(y)) for x, y in roof]
        yield _line(ends, ROOFLINE_HEIGHT, "roof")
        for _, x, y, share, told in one.points:
            radius = max(SMALLEST_POINT, LARGEST_POINT * math.sqrt(share))
            place = {"cx": _share(along(x)), "cy": f"{down(y):.2f}", "r": f"{radius:.1f}"}
            yield _mark(tag("circle", class_="point", **place), told)

    named = [f"{10.0**decade:g}" for decade in (left, right)]
    return _framed(
        _svg(parts(), ROOFLINE_HEIGHT, one.title),
        (f"{10.0**top:g} {one.of[2]}", f"{10.0**bottom:g}"),
        (named[0], f"{named[1]} {one.of[1]}"),
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The whole powers of ten around the values, at least one apart."""
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)
