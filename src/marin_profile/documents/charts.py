"""Charts of a document as SVG, drawn here and not in the reader's browser.

Contract: no script and no style attribute; colours come from classes of the page. Every figure has
a caption and a text for screen readers, each part of it its value on hover. No fact is told by
colour alone: parts stand in the order of the legend, which names them.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from marin_profile.base.text import share
from marin_profile.documents.model import Bars, Series
from marin_profile.documents.text import unmarked

WIDTH, LABEL, ROW, BAR = 800, 150, 22, 16
HEIGHT, MARGIN = 140, 24
COLOURS = 5


def drawn(one: Bars | Series) -> Markup:
    """A chart as a figure."""
    if isinstance(one, Series):
        return _figure(one.title, _svg(_columns(one), HEIGHT, one.title))
    chart = _svg(_bar_rows(one), ROW * len(one.rows), one.title)
    return _figure(one.title, _legend(one) + chart)


def _figure(title: str, inner: Markup) -> Markup:
    caption = Markup("<figcaption>{}</figcaption>").format(unmarked(title))
    return Markup("<figure>{}{}</figure>").format(caption, inner)


def _svg(parts: Iterator[Markup], height: int, label: str) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, height, unmarked(label), Markup("").join(parts)
    )


def _legend(one: Bars) -> Markup:
    used = [at for at in range(len(one.parts)) if any(values[at] for _, values in one.rows)]
    items = Markup("").join(
        Markup(
            '<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="c{}" width="10" '
            'height="10"/></svg> {}</li>'
        ).format(at % COLOURS, one.parts[at])
        for at in used
    )
    return Markup('<ul class="legend">{}</ul>').format(items)


def _bar_rows(one: Bars) -> Iterator[Markup]:
    for at, (label, values) in enumerate(one.rows):
        top = ROW * at + (ROW - BAR) / 2
        name = unmarked(label)
        yield Markup('<text x="{}" y="{:g}" text-anchor="end">{}<title>{}</title></text>').format(
            LABEL - 8, top + BAR - 4, name if len(name) <= 24 else f"{name[:10]}…{name[-12:]}", name
        )
        left = float(LABEL)
        for part, value in enumerate(values):
            width = (WIDTH - LABEL) * value
            if width > 0:
                told = f"{name}: {one.parts[part]} {share(value)}"
                yield Markup(
                    '<rect class="c{}" x="{:.2f}" y="{:g}" width="{:.2f}" height="{}">'
                    "<title>{}</title></rect>"
                ).format(part % COLOURS, left, top, width, BAR, told)
            left += width


def _columns(one: Series) -> Iterator[Markup]:
    """Bars from zero, so that their heights compare as their values do."""
    high = max(value for _, value, _ in one.points) or 1.0
    slot = (WIDTH - LABEL) / len(one.points)
    base = HEIGHT - MARGIN
    yield Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        LABEL, WIDTH, base, base
    )
    top = max(one.points, key=lambda point: point[1])
    yield Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(LABEL - 8, 14, top[2])
    yield Markup('<text x="{}" y="{}" text-anchor="end">0</text>').format(LABEL - 8, base)
    for at, (label, value, text) in enumerate(one.points):
        height = (base - 6) * value / high
        yield Markup(
            '<rect class="step" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}">'
            "<title>{}</title></rect>"
        ).format(LABEL + slot * (at + 0.1), base - height, slot * 0.8, height, f"{label}: {text}")
    first, last = one.points[0][0], one.points[-1][0]
    for place, anchor, label in ((LABEL, "start", first), (WIDTH, "end", last)):
        yield Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
            place, HEIGHT - 8, anchor, label
        )
