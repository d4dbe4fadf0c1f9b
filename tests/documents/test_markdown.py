"""A document as Markdown: blocks, and names that stay text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_profile.documents.markdown import inline, render
from marin_profile.documents.model import (
    Bullets,
    Document,
    Paragraph,
    Section,
    bullets,
    facts,
    left_out,
    sections,
    table,
)
from marin_profile.documents.text import INDENT, code, plain, strong, unmarked


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("fusion.7", "`fusion.7`"),
        ("jit(step)=>mlp", "`jit(step)=>mlp`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`b", "<code>a&#96;b</code>"),
        ("f<float>", "<code>f&lt;float&gt;</code>"),
        ("<script>", "<code>&lt;script&gt;</code>"),
        ("a\\|b", "<code>a&#92;&#124;b</code>"),
        ("a\x12b", "`a\\x12b`"),
        ("****", "`****`"),
        ("", "`(empty)`"),
        ("  ", "`(empty)`"),
    ],
)
def test_code(name: str, shown: str) -> None:
    assert inline(code(name)) == shown


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_name_escapes_its_cell(name: str) -> None:
    for shown in (inline(code(name)), inline(code(name, None))):
        assert "|" not in shown
        assert "\n" not in shown
        assert shown.isprintable()
        inner = shown.removeprefix("<code>").removesuffix("</code>")
        assert "<" not in inner
        assert inner.strip("`").count("`") == 0


@given(st.text(max_size=50), st.text(max_size=50))
def test_no_text_marks_what_stands_behind_it(one: str, other: str) -> None:
    """Each is escaped by itself: marks in it are none."""
    text = plain(one, None) + code(other, None) + strong(plain(one, None))
    assert unmarked(plain(one, None)) == plain(one, None)
    assert inline(text).startswith(inline(plain(one, None)) + inline(code(other, None)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 20.0 %", "plain words, 20.0 %"),
        ("host_to_device and _x_", "host_to_device and \\_x\\_"),
        ("`copy.1` | <b> & [a](b)", "\\`copy.1\\` \\| \\<b\\> &amp; \\[a\\](b)"),
        ("# title\nnext", "\\# title next"),
        ("- item", "\\- item"),
        ("+5 us", "\\+5 us"),
        ("1. item", "1\\. item"),
        ("12) item", "12\\) item"),
        ("1.5 us", "1.5 us"),
        ("a - b", "a - b"),
    ],
)
def test_text_at_the_start_of_a_block(text: str, shown: str) -> None:
    assert inline(plain(text), opens=True) == shown


def test_strong_words_with_a_name_among_them() -> None:
    assert inline(strong(f"slow: {code('a*b')} is")) == "**slow: `a*b` is**"
    assert inline(f"a {strong('b')} c{INDENT}") == "a **b** c&nbsp;&nbsp;"


def test_a_document() -> None:
    made = Document(
        "A title",
        (Paragraph("The answer."), *bullets(["one", "two"], numbered=True)),
        sections(
            [
                ("First", [table(["name", "n"], [[code("a"), "1"]]), *left_out(4, 3, "op")]),
                ("Empty", []),
                ("Second", [*facts([("k", "v")]), Section("Below", (Paragraph("text"),))]),
                ("Third", [Bullets((("item", ("below", "too")),))]),
            ]
        ),
    )
    assert render(made).split("\n\n") == [
        "# A title",
        "The answer.",
        "1. one\n2. two",
        "## First",
        "| name | n |\n| --- | ---: |\n| `a` | 1 |",
        "1 op left out.",
        "## Second",
        "- k: v",
        "### Below",
        "text",
        "## Third",
        "- item\n  - below\n  - too\n",
    ]


def test_columns_are_left_or_right() -> None:
    made = Document("t", (table(["n", "name", "more"], [], "rl"),), ())
    assert "| ---: | --- | ---: |" in render(made)


def test_nothing_is_left_out_of_a_whole_list() -> None:
    assert left_out(3, 3, "op") == []
    assert left_out(5, 3, "family", "families") == [Paragraph("2 families left out.")]
    assert bullets([]) == []
