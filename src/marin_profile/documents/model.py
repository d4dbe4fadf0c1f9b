"""The blocks of a document. All texts are rich text, see `documents.text`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marin_profile.base.text import plural, share


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


# Charts are drawn where there is room for them. A view in plain text leaves them out: what it shows
# beside them says the same. The exception is a series, which a terminal has a line for.


@dataclass(frozen=True, slots=True)
class Bars:
    """Of each row, (label, shares), the parts that make it up, one behind the other. `texts`: what
    to say of each part, where that is not its share in per cent. `of`: what a row is."""

    title: str
    parts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    texts: tuple[tuple[str, ...], ...] = ()
    of: str = "device"

    def text(self, row: int, part: int) -> str:
        return self.texts[row][part] if self.texts else share(self.rows[row][1][part])


@dataclass(frozen=True, slots=True)
class Level:
    """A value that holds from the first point to the one before `end`."""

    first: int
    end: int
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Values in order: (label, value, the value as text); `of` names labels and values. Bars from
    zero, or, with `from_zero` false, a line between the least and the largest value. `marked`: the
    points that stand out; `notes`: what else to say of each; `changes`: (the first point after it,
    in short, in full)."""

    title: str
    points: tuple[tuple[str, float, str], ...]
    of: tuple[str, str] = ("step", "period")
    from_zero: bool = True
    marked: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    changes: tuple[tuple[int, str, str], ...] = ()
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """`start` and `width` are shares of the whole; `depth` from 0; `text` says it in full."""

    name: str
    depth: int
    start: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Icicle:
    """Parts below the whole that they are parts of. A table beside it holds the figures."""

    title: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Changes, (label, change, the change as text), each from where the one before it ended; and
    `total`, which they sum to."""

    title: str
    rows: tuple[tuple[str, float, str], ...]
    total: tuple[str, float, str]
    of: tuple[str, str] = ("part", "change")


@dataclass(frozen=True, slots=True)
class Roofline:
    """Of each point, (label, intensity, rate, share of the whole, in full), how far it is from the
    roof: `peak` above the intensity `ridge`, in proportion to the intensity below it. `of` names
    labels, intensities and rates."""

    title: str
    points: tuple[tuple[str, float, float, float, str], ...]
    peak: float
    ridge: float
    of: tuple[str, str, str] = ("op", "FLOP/byte", "TFLOP/s")


@dataclass(frozen=True, slots=True)
class Switch:
    """One of several views of `title`, (name, chart), at a time: the reader's choice."""

    title: str
    views: tuple[tuple[str, Icicle], ...]


Chart = Bars | Series | Icicle | Waterfall | Roofline | Switch


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Bullets | Table | Chart | Section


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
