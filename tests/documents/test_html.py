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
    Block,
    Cell,
    Document,
    Icicle,
    Level,
    Paragraph,
    Roofline,
    Section,
    Series,
    Switch,
    Waterfall,
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
    expected = {tag for tag, _ in Seen(render(document(*blocks_that_name("name")))).tags}
    page = render(document(*blocks_that_name(name)))
    assert {tag for tag, _ in Seen(page).tags} == expected
    assert "\x1b" not in page
    assert "\u202e" not in page


def blocks_that_name(hostile: str) -> list[Block]:
    """Every kind of block, with this name wherever a name may stand."""
    name = plain(hostile)
    return [
        Paragraph(code(hostile) + strong(name)),
        *bullets([name]),
        table([name], [[code(hostile)], [name]]),
        Bars(name, (name, "other"), ((name, (0.5, 0.5)),), ((name, name),), name),
        Series(
            name,
            ((name, 1.0, name), ("b", 2.0, "2")),
            of=(name, name),
            marked=frozenset({0}),
            notes=(name, ""),
            changes=((1, name, name),),
            levels=(Level(0, 1, 1.0, name),),
        ),
        Switch(name, ((name, Icicle(name, (Cell(name, 0, 0.0, 1.0, name),))),) * 2),
        Waterfall(name, ((name, 1.0, name), ("b", -2.0, "-2")), (name, -1.0, name), (name, name)),
        Roofline(name, ((name, 10.0, 5.0, 0.5, name),), 100.0, 50.0, (name, name, name)),
        Section(name, (Paragraph("x"),)),
    ]


def test_a_bar_is_as_long_as_its_parts():
    """A quarter, then three."""
    page = render(document(Bars("t", ("a", "b"), (("row", (0.25, 0.75)),))))
    rects = [
        (attributes["x"], attributes["width"])
        for tag, attributes in Seen(page).tags
        if tag == "rect" and "x" in attributes
    ]
    assert rects == [("0%", "25%"), ("25%", "75%")]


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


def test_where_names_are_long_fewer_rows_keep_the_page_as_small():
    """5,000 ops whose names and scopes are as long as any is shown are too many, and it is said."""
    ops = [hot_op(f"fusion.{at}", 1.0, tf_op_path=f"{at}/" + "scope/" * 100) for at in range(5000)]
    ops = [one.model_copy(update={"name": one.name + "x" * 200}) for one in ops]
    page = render_html(build_summary(hot_ops=ops))
    assert len(page.encode()) <= 1_500_000
    left = re.search(r"([\d,]+) ops left out", page)
    assert left is not None
    assert page.count(f"{'x' * 18}</code>") == 5000 - int(left[1].replace(",", ""))
    assert "ops left out" not in render_html(build_summary(hot_ops=ops), top_k=5000)
