"""A document as Markdown.

Contract: any text is safe anywhere: no name can end a table cell, open a code span or start a tag.
One blank line stands between blocks. Charts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from marin_profile.documents.model import (
    Block,
    Bullets,
    Document,
    Paragraph,
    Section,
    Table,
)
from marin_profile.documents.text import INDENT, runs

# What would begin a numbered list.
_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")


def render(document: Document) -> str:
    return f"# {inline(document.title)}\n\n" + render_blocks((*document.lead, *document.sections))


def render_blocks(blocks: Iterable[Block]) -> str:
    return "\n\n".join(part for block in blocks for part in _block(block, 2)) + "\n"


def _block(block: Block, depth: int) -> Iterator[str]:
    match block:
        case Paragraph(text):
            yield inline(text, opens=True)
        case Bullets(items, numbered):
            yield "\n".join(
                line
                for at, (item, below) in enumerate(items, 1)
                for line in (
                    f"{f'{at}.' if numbered else '-'} {inline(item, opens=True)}",
                    *(f"  - {inline(one, opens=True)}" for one in below),
                )
            )
        case Table():
            yield "\n".join(_table(block))
        case Section(title, blocks):
            yield f"{'#' * depth} {inline(title)}"
            for inner in blocks:
                yield from _block(inner, depth + 1)


def _table(one: Table) -> Iterator[str]:
    yield _line(map(inline, one.headers))
    yield _line("---" if one.is_left(at) else "---:" for at in range(len(one.headers)))
    for row in one.rows:
        yield _line(map(inline, row))


def _line(cells: Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def inline(text: str, *, opens: bool = False) -> str:
    """Rich text as Markdown; `opens`: at the start of a block."""
    made = []
    for is_strong, same in groupby(enumerate(runs(text)), key=lambda one: one[1].is_strong):
        shown = "".join(
            _code(run.text) if run.is_code else _escaped(run.text, opens=opens and at == 0)
            for at, run in same
        )
        made.append(f"**{shown}**" if is_strong else shown)
    return "".join(made)


def _code(text: str) -> str:
    """A backtick would end a code span, a bar a table cell; "<" would be a tag for readers that
    know no code spans. Such names become a <code> element of character references."""
    if not any(character in "`|<" for character in text):
        return f"`{text}`"
    return "<code>" + "".join(_reference(character) for character in text) + "</code>"


def _reference(character: str) -> str:
    if character.isalnum() or character in " -,/=()" or ord(character) > 127:
        return character
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(character) or f"&#{ord(character)};"


def _escaped(text: str, *, opens: bool) -> str:
    made = "".join(_character(text, at) for at in range(len(text)))
    if not opens:
        return made
    return "\\" + made if made[:1] in "-+=" else _NUMBER.sub(r"\1\\\2", made)


def _character(text: str, at: int) -> str:
    character = text[at]
    if character == "&":
        return "&amp;"
    if character == INDENT[0]:
        return "&nbsp;"
    is_emphasis = character == "_" and not _is_inside_word(text, at)
    return "\\" + character if character in "\\`*[]<>|#~" or is_emphasis else character


def _is_inside_word(text: str, at: int) -> bool:
    return text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum()
