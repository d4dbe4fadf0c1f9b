"""The blocks of a document. All texts are rich text, see `documents.text`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marin_profile.base.text import plural


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; `numbered` from 1. An item is its text and what stands below it."""

    items: tuple[tuple[str, tuple[str, ...]], ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`align`: "l" or "r" for each column; columns beyond it are flush right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str = "l"

    def is_left(self, column: int) -> bool:
        return self.align[column : column + 1] == "l"


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart: of each row, (label, shares), the parts that make it up, one behind the other. Plain
    text leaves it out: a table holds its figures."""

    title: str
    parts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A chart of values in order: (label, value, the value as text). Left out like Bars."""

    title: str
    points: tuple[tuple[str, float, str], ...]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Bullets | Table | Bars | Series | Section


@dataclass(frozen=True, slots=True)
class Document:
    """`lead` answers the question; the sections are what it rests on."""

    title: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]


def bullets(items: Iterable[str], *, numbered: bool = False) -> list[Block]:
    """A list, or nothing if it has no items."""
    made = tuple((item, ()) for item in items)
    return [Bullets(made, numbered)] if made else []


def facts(named: Iterable[tuple[str, str]]) -> list[Block]:
    return bullets(f"{name}: {value}" for name, value in named)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l") -> Table:
    return Table(tuple(headers), tuple(map(tuple, rows)), align)


def left_out(total: int, shown: int, noun: str, nouns: str | None = None) -> list[Block]:
    """The line below a cut list; nothing if it is whole."""
    return [] if shown >= total else [Paragraph(f"{plural(total - shown, noun, nouns)} left out.")]


def sections(bodies: Iterable[tuple[str, Sequence[Block]]]) -> tuple[Section, ...]:
    """Those that have a body."""
    return tuple(Section(title, tuple(body)) for title, body in bodies if body)
