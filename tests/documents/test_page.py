"""The page in a real browser: it runs under its own policy, sorts, searches and pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary, hot_op
from marin_profile.reports.report import render_html

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OPS = 300


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium")
        pytest.skip("there is no Chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


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
