"""The page in a real browser: it runs under its own policy; tables sort, search, page and copy,
charts tell their values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary, hot_op
from marin_profile.documents import html
from marin_profile.documents.model import Document, Series, Waterfall, sections, table
from marin_profile.documents.text import code
from marin_profile.reports.report import render_html

OPS = 300


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def page(browser: Any, tmp_path: Path, said: list[str]) -> Iterator[Any]:
    """A report with many ops, the n-th of which takes n us."""
    ops = [hot_op(f"fusion.{at}", float(at)) for at in range(1, OPS + 1)]
    hostile = hot_op("<img src=x onerror=alert(1)>", 0.5)
    path = tmp_path / "report.html"
    path.write_text(render_html(build_summary(hot_ops=[*ops, hostile])), encoding="utf-8")
    opened = browser.new_page()
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.on("request", lambda request: said.append(request.url))
    opened.goto(path.as_uri())
    yield opened
    opened.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a document as a page."""
    tab = browser.new_page()

    def open_document(document: Document) -> Any:
        path = tmp_path / "page.html"
        path.write_text(html.render(document), encoding="utf-8")
        tab.goto(path.as_uri())
        return tab

    yield open_document
    tab.close()


def ops_table(page: Any) -> Any:
    heading = page.get_by_role("heading", name="Top ops")
    return page.locator("section", has=heading).locator(".table")


def names(page: Any) -> list[str]:
    found: list[str] = ops_table(page).locator("tbody tr td:first-child").all_inner_texts()
    return found


def test_it_loads_itself_alone_and_says_nothing(page, said):
    assert [url for url in said if not url.endswith("report.html")] == []
    assert len(said) == 1


def test_a_hostile_name_is_text(page, said):
    ops_table(page).get_by_role("searchbox").fill("onerror")
    assert names(page) == ["<img src=x onerror=alert(1)>"]
    assert page.locator("img").count() == 0
    assert len(said) == 1


def test_a_click_sorts_and_another_turns_it(page):
    head = ops_table(page).get_by_role("columnheader", name="self time")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names(page)[:2] == [f"fusion.{OPS}", f"fusion.{OPS - 1}"]
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(page)[:3] == ["<img src=x onerror=alert(1)>", "fusion.1", "fusion.2"]


def test_search_is_over_all_rows_and_pages_go_on(page):
    assert len(names(page)) == 50
    status = ops_table(page).get_by_role("status")
    assert status.inner_text() == f"1 to 50 of {OPS + 1}"
    ops_table(page).get_by_role("button", name="Later rows").click()
    assert status.inner_text() == f"51 to 100 of {OPS + 1}"
    ops_table(page).get_by_role("searchbox").fill("fusion.29")
    assert sorted(names(page)) == sorted(["fusion.29", *(f"fusion.29{at}" for at in range(10))])


def test_the_keyboard_reaches_a_header(page):
    button = ops_table(page).get_by_role("columnheader", name="count").get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    head = ops_table(page).get_by_role("columnheader", name="count")
    assert head.get_attribute("aria-sort") == "descending"


@pytest.mark.parametrize(
    "ascending",
    [
        ["-2.00 us", "999 ps", "at least 3.00 us", "1.50 ms", "+2.00 ms", "2.00 s"],
        ["8", "1,234", "12,345"],
        ["-2.0 %", "0.0 %", "12.5 %"],
        ["999 B", "1.0 kB", "3.4 GB"],
        ["99.50 GB/s", "1,200.00 GB/s"],
        ["3.00 us", "2 of 4 seen", "fusion.7", "n/a"],
    ],
)
def test_cells_that_read_as_numbers_sort_as_numbers(opened, ascending):
    rows = [["a", cell] for cell in reversed(ascending)]
    page = opened(Document("t", (table(["name", "n"], rows, "ll"),), ()))
    page.get_by_role("button", name="n", exact=True).click()
    assert page.locator("tbody td:nth-child(2)").all_inner_texts() == ascending


COPIED = """
    window.copied = [];
    navigator.clipboard.writeText = async (text) => { copied.push(text); };
    null
"""


def test_all_rows_are_copied_as_they_are_sorted_and_none_as_a_formula(page):
    page.evaluate(COPIED)
    ops_table(page).get_by_role("columnheader", name="self time").get_by_role("button").click()
    ops_table(page).get_by_role("button", name="Copy all").click()
    assert ops_table(page).get_by_role("status").inner_text() == f"{OPS + 1} rows copied"
    [text] = page.evaluate("copied")
    lines = [line.split("\t") for line in text.split("\n")]
    assert lines[0][:3] == ["op", "kind", "pass"]
    assert [line[0] for line in lines[1:]] == [
        *(f"fusion.{at}" for at in range(OPS, 0, -1)),
        "<img src=x onerror=alert(1)>",
    ]


def test_what_a_spreadsheet_would_compute_is_copied_as_text(opened):
    rows = [[code(name), change] for name, change in (("=1+1", "+1.0 %"), ("@x", "-2.00 us"))]
    rows += [[code(f"op {at}"), "0 us"] for at in range(20)]
    page = opened(Document("t", (), sections([("s", [table(["op", "change"], rows)])])))
    page.evaluate(COPIED)
    page.get_by_role("button", name="Copy all").click()
    [text] = page.evaluate("copied")
    assert text.split("\n")[1:3] == ["'=1+1\t+1.0 %", "'@x\t-2.00 us"]


STEPS = Series("Periods", tuple((f"step {at}", float(at), f"{at} us") for at in range(1, 5)))


def test_a_chart_tells_its_values_to_the_keyboard(opened):
    page = opened(Document("t", (STEPS,), ()))
    marks, value = page.locator("figure .m"), page.locator("figure .value")
    assert [marks.nth(at).get_attribute("tabindex") for at in range(4)] == ["0", "-1", "-1", "-1"]
    marks.nth(0).focus()
    told = [value.inner_text()]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowDown", "Home"):
        page.keyboard.press(key)
        told.append(value.inner_text())
    assert [text.split(":")[0] for text in told] == [f"step {at}" for at in (1, 2, 3, 2, 4, 4, 1)]
    assert told[0] == "step 1: 1 us"
    # One stop for the whole chart: Tab leaves it, and comes back to where one was.
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Shift+Tab")
    assert value.inner_text() == "step 4: 4 us"


def test_a_chart_tells_its_values_under_the_pointer(opened):
    rows = (("slower", 30.0, "+30 us"), ("faster", -10.0, "-10 us"))
    page = opened(Document("t", (Waterfall("Parts", rows, ("change", 20.0, "+20 us")),), ()))
    page.locator("figure .m").nth(1).hover()
    assert page.locator("figure .value").inner_text() == "faster: -10 us"


def test_a_chart_has_its_figures_as_a_table(opened):
    page = opened(Document("t", (STEPS,), ()))
    assert not page.locator("figure table").is_visible()
    page.get_by_text("The figures as a table").click()
    assert page.locator("figure tbody tr").all_inner_texts() == [
        f"step {at}\t{at} us" for at in range(1, 5)
    ]


def test_the_icicle_shows_one_pass_at_a_time(page):
    choices = page.get_by_role("group", name="Pass").get_by_role("button")
    assert choices.all_inner_texts() == ["all passes", "backward", "forward", "other"]
    figures = page.locator(".switch figure")
    assert [one.is_visible() for one in figures.all()] == [True, False, False, False]
    choices.nth(2).click()
    assert [one.is_visible() for one in figures.all()] == [False, False, True, False]
    assert choices.nth(2).get_attribute("aria-pressed") == "true"
    assert choices.nth(0).get_attribute("aria-pressed") == "false"
    # mlp is 2,400 of 7,440 us, and all but 480 us of the forward pass.
    figures.nth(2).locator(".m").nth(1).hover()
    told = figures.nth(2).locator(".value").inner_text()
    assert told == "jit(step)=>mlp: 2.40 ms, 32.3 % of op time, forward pass"


def test_without_the_script_everything_is_there(browser, tmp_path):
    path = tmp_path / "report.html"
    ops = [hot_op(f"fusion.{at}", float(at)) for at in range(1, OPS + 1)]
    path.write_text(render_html(build_summary(hot_ops=ops)), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert ops_table(page).locator("tbody tr").count() == OPS
    assert [one.is_visible() for one in page.locator(".switch figure").all()] == [True] * 4
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_print_shows_all_rows(page):
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(names(page)) == OPS + 1
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert len(names(page)) == 50
