"""A document as plain text for a terminal.

Contract: the same text for the same document. The title is left out: the reader has typed the
command. No line is wrapped. Of charts a series is shown, as one line of eighths of a block, its
lowest the least value shown, with a bar before each change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from marin_profile.documents.model import (
    Block,
    Bullets,
    Document,
    Paragraph,
    Section,
    Series,
    Table,
)
from marin_profile.documents.text import unmarked

BLOCKS = "▁▂▃▄▅▆▇█"
CHANGE = "|"
WIDEST_SERIES = 80


def render(document: Document) -> str:
    lines = [*_blocks(document.lead)]
    for section in document.sections:
        lines += ["", unmarked(section.title), *_indented(_blocks(section.blocks))]
    return "\n".join(lines) + "\n"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _lines(block)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text):
            yield unmarked(text)
        case Bullets(items, numbered):
            for at, (item, below) in enumerate(items, 1):
                yield f"{f'{at}.' if numbered else '-'} {unmarked(item)}"
                yield from _indented(map(unmarked, below))
        case Table():
            yield from _table(block)
        case Series():
            yield series(block)
        case Section(title, blocks):
            yield unmarked(title)
            yield from _indented(_blocks(blocks))


def _table(one: Table) -> Iterator[str]:
    rows = [[unmarked(cell) for cell in row] for row in (one.headers, *one.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            f"{cell:<{width}}" if one.is_left(at) else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def series(one: Series) -> str:
    """The last values as blocks, and the texts of the lowest and the highest block."""
    start = max(0, len(one.points) - WIDEST_SERIES)
    shown = one.points[start:]
    marks = {at for at, *_ in one.changes}
    low, high = (pick(shown, key=lambda point: point[1]) for pick in (min, max))
    scale = (len(BLOCKS) - 1) / (high[1] - low[1]) if high[1] > low[1] else 0.0
    line = "".join(
        (CHANGE if at in marks else "") + BLOCKS[round((value - low[1]) * scale)]
        for at, (_, value, _) in enumerate(shown, start=start)
    )
    return f"{line}  {low[2]} .. {high[2]}"
