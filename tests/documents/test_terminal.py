"""A document as text for a terminal."""

from __future__ import annotations

import pytest

from marin_profile.documents.model import (
    Bars,
    Bullets,
    Document,
    Paragraph,
    Section,
    Series,
    bullets,
    sections,
    table,
)
from marin_profile.documents.terminal import render, series
from marin_profile.documents.text import code, strong


def of(*values: float, changes: tuple[int, ...] = ()) -> Series:
    points = tuple((f"point {at}", value, f"{value:g} us") for at, value in enumerate(values))
    return Series("t", points, changes=tuple((at, "+1 %", "in full") for at in changes))


def test_a_document() -> None:
    made = Document(
        "A title",
        (Paragraph(strong("The answer.")), *bullets(["one", "two"], numbered=True)),
        sections(
            [
                ("First", [table(["name", "n"], [[code("a"), "1"], ["long name", "12"]])]),
                ("Second", [Bullets((("item", ("below",)),)), Bars("t", ("a",), ())]),
                ("Third", [of(1.0, 8.0), Section("Below", (Paragraph("text"),))]),
            ]
        ),
    )
    assert render(made).splitlines() == [
        "The answer.",
        "1. one",
        "2. two",
        "",
        "First",
        "  name        n",
        "  a           1",
        "  long name  12",
        "",
        "Second",
        "  - item",
        "    below",
        "",
        "Third",
        "  ▁█  1 us .. 8 us",
        "  Below",
        "    text",
    ]


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (of(1000.0, 1700.0, 1100.0, changes=(1,)), "▁|█▂  1000 us .. 1700 us"),
        (of(5.0, 5.0), "▁▁  5 us .. 5 us"),
        # The first of 81 is not shown.
        (of(9000.0, *[1.0] * 79, 8.0, changes=(80,)), "▁" * 79 + "|█  1 us .. 8 us"),
    ],
)
def test_a_series_is_a_line(shown: Series, line: str) -> None:
    assert series(shown) == line
