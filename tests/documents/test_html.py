"""A document as a page: what stands in the file, without a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from builders_summary import build_summary, hot_op
from marin_profile.documents.html import render
from marin_profile.documents.model import (
    Bars,
    Document,
    Paragraph,
    Section,
    Series,
    bullets,
    sections,
    table,
)
from marin_profile.documents.text import code, plain, strong
from marin_profile.reports.headline import headline
from marin_profile.reports.report import render_html

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><b>bold</b>',
    "\x1b[31mred",
    "\u202egnp.exe",
    "=HYPERLINK(1)",
    "{{ 7 * 7 }}",
    "</style><style>*{display:none}",
    "a\x11b\x12c\x13d\x14",
]


class Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def document(*blocks) -> Document:
    return Document("A title", (Paragraph("The answer."),), sections([("One", list(blocks))]))


def test_the_policy_allows_the_pages_own_style_and_script_alone():
    page = render(document())
    policy = next(
        attributes["content"] or ""
        for tag, attributes in Seen(page).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    for kind in ("style", "script"):
        (content,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_is_loaded_and_nothing_is_inline():
    for tag, attributes in Seen(render_html(build_summary())).tags:
        assert tag not in ("link", "img", "iframe", "object")
        assert not any(name == "style" or name.startswith("on") for name in attributes)
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_text_everywhere(name):
    blocks = [
        Paragraph(code(name) + strong(plain(name))),
        *bullets([plain(name)]),
        table([plain(name)], [[code(name)], [plain(name)]]),
        Bars(plain(name), (plain(name), "other"), ((plain(name), (0.5, 0.5)),)),
        Series(plain(name), ((plain(name), 1.0, plain(name)), ("b", 2.0, "2"))),
        Section(plain(name), (Paragraph("x"),)),
    ]
    expected = {tag for tag, _ in Seen(render(document(*_like(blocks)))).tags}
    page = render(document(*blocks))
    assert {tag for tag, _ in Seen(page).tags} == expected
    assert "\x1b" not in page
    assert "\u202e" not in page


def _like(blocks):
    """The same blocks with a harmless name."""
    name = "name"
    return [
        Paragraph(code(name) + strong(plain(name))),
        *bullets([plain(name)]),
        table([plain(name)], [[code(name)], [plain(name)]]),
        Bars(plain(name), (plain(name), "other"), ((plain(name), (0.5, 0.5)),)),
        Series(plain(name), ((plain(name), 1.0, plain(name)), ("b", 2.0, "2"))),
        Section(plain(name), (Paragraph("x"),)),
    ]


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        ("1.50 ms", "1500"),
        ("999 ps", "0.000999"),
        ("2.00 s", "2000000"),
        ("12.5 %", "12.5"),
        ("1,234", "1234"),
        ("at least 3.00 us", "3"),
        ("+1.00 ms", "1000"),
        ("-2.0 %", "-2"),
        ("3.4 GB", "3.4e+09"),
        ("fusion.7", None),
        ("2 of 4 seen", None),
        ("n/a", None),
    ],
)
def test_cells_that_read_as_numbers_sort_as_numbers(cell, key):
    page = render(document(table(["name", "n"], [["a", cell]])))
    found = [attributes for tag, attributes in Seen(page).tags if tag == "td"]
    assert found[1].get("data-v") == key


def test_a_bar_is_as_long_as_its_parts():
    """Of 650 units: a quarter, then three."""
    page = render(document(Bars("t", ("a", "b"), (("row", (0.25, 0.75)),))))
    rects = [
        (float(attributes["x"] or 0), float(attributes["width"] or 0))
        for tag, attributes in Seen(page).tags
        if tag == "rect" and "x" in attributes
    ]
    assert rects == [(150.0, 162.5), (312.5, 487.5)]


def test_the_page_of_a_summary_begins_with_the_reports_answer():
    seen = Seen(render_html(build_summary()))
    text = " ".join("".join(seen.text).split())
    assert f"Profile report {headline(build_summary())}" in text
    assert text.index("Where device time goes") < text.index("What to try first")


def test_many_rows_stay_within_the_size_of_an_attachment():
    ops = [hot_op(f"fusion.{at}", 1.0) for at in range(5000)]
    page = render_html(build_summary(hot_ops=ops))
    assert page.count("fusion.") >= 5000
    assert len(page.encode()) <= 1_500_000
