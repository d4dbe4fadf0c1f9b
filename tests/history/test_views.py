"""What the terminal, the page and the JSON show; the verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.cli import run
from marin_profile.history import History, HistoryRecord, append, record_of
from marin_profile.history.figures import history_figures
from marin_profile.history.findings import findings_of
from marin_profile.history.page import render_page
from marin_profile.history.terminal import plot, render_text
from marin_profile.schema import canonical_json

LABEL = "<script>alert('x')</script> & \x1b[31m"
SHOWN = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; \\x1b[31m"


def record(number: int, median: float) -> HistoryRecord:
    values = {
        "time": f"2026-01-{number + 1:02}T00:00:00.000000Z",
        "trace_sha256": f"{number:012x}" + "0" * 52,
        "git_sha": ("a" if number < 6 else "b") * 40,
        "median": median,
        "p90": median,
        "status": "fail" if number == 6 else "pass",
    }
    return record_of(build_summary(), label=LABEL).model_copy(update=values)


SHIFTED = History(
    tuple(record(at, 1000.0 + at % 2 + (60.0 if at >= 6 else 0.0)) for at in range(10)),
    ("line 3 is <torn>",),
)
FOUND = findings_of(SHIFTED)
TO_SEE_THE_CAUSE = (
    "to see what accounts for it, name a folder with the summaries just before and after (trace "
    "000000000005 and 000000000006) with --summaries, or keep them in 'summaries' beside the "
    "history"
)


class Checker(HTMLParser):
    """Fails on a tag that is closed out of turn; gathers tags, attributes and text."""

    EMPTY = ("meta", "line", "polyline", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.values: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.values += [f"{name}={value}" for name, value in attrs]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    page = render_page(FOUND, tail=4)
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert {"script", "link", "img", "iframe"}.isdisjoint(checker.tags)
    assert not [value for value in checker.values if value.startswith(("src=", "href=", "on"))]
    assert "url(" not in page
    assert SHOWN in page
    assert "line 3 is &lt;torn&gt;" in page
    assert checker.tags.count("circle") == 10
    assert checker.tags.count("tr") == 1 + 4
    assert "6 earlier captures not listed." in checker.text
    assert "prefers-color-scheme: dark" in page
    assert "first bad record: run7, git bbbbbbbbbbbb, trace 000000000006" in checker.text


def test_an_empty_history_and_one_without_points() -> None:
    for history in (History(), History((HistoryRecord(),))):
        found = findings_of(history)
        Checker().feed(render_page(found))
        assert render_text(found).startswith(f"{len(history.records)} record")
        assert history_figures(found)["num_records"] == len(history.records)


def test_the_text() -> None:
    lines = render_text(FOUND, tail=2).splitlines()
    assert lines[:2] == ["10 records of 1 configuration", ""]
    assert lines[2].startswith("TPU v6 Lite, 2 devices, 1 host, label <script>")
    assert "\\x1b[31m" in lines[2]
    assert lines[3:] == [
        "  10 records: 1 fail, 9 pass",
        "  median step period; steps: annotation train",
        # Since the change 1060, 1061, 1060, 1061: slope (1.5 - 0.5) / 5 us; residuals -0.2, 0.6,
        # -0.6, 0.2, their squares 0.8 over two and over 5: 0.28 us of 1060.5.
        "  first 1.00 ms, median 1.00 ms, last 1.06 ms (10 captures); slope +0.02 % per capture "
        "since the last change (standard error 0.03 %)",
        # Commit a 1000, 1001, 1000 and 1001, 1000, 1001, b without the failed one 1061, 1060, 1061:
        # squares 6 x 0.25 us^2 and 2/3 us^2 over 5 + 2.
        "  noise floor 0.05 % (sd of 9 repeats of 2 commits)",
        "  ▁▁▁▁▁▁|████  1.00 ms .. 1.06 ms",
        "  change: 6.0 % slower from 2026-01-07T00:00:00 on: 1.00 ms -> 1.06 ms, p < 1e-6; "
        f"first bad record: run7, git {'b' * 12}, trace 000000000006",
        f"    {TO_SEE_THE_CAUSE}",
        "     2026-01-09T00:00:00      1.06 ms  p90     1.06 ms  pass  run7, git bbbbbbbbbbbb, "
        "trace 000000000008",
        "     2026-01-10T00:00:00      1.06 ms  p90     1.06 ms  pass  run7, git bbbbbbbbbbbb, "
        "trace 000000000009",
        "  (8 earlier captures not listed)",
    ]


def test_the_plot() -> None:
    assert plot([1000.0, 1700.0, 1100.0], {1}) == "▁|█▂  1.00 ms .. 1.70 ms"
    assert plot([5.0, 5.0], set()) == "▁▁  5.00 us .. 5.00 us"
    assert plot([9000.0, *[1.0] * 79, 8.0], {80}).startswith("▁" * 79 + "|█  1.00 us .. 8.00 us")


def test_the_figures() -> None:
    data = json.loads(canonical_json(history_figures(FOUND, tail=1)))
    assert data["schema_version"] == "profile_history_trends.v1"
    assert data["problems"] == ["line 3 is <torn>"]
    [group] = data["groups"]
    assert (group["label"], group["time_basis"]) == (LABEL, "period")
    assert group["status_counts"] == {"fail": 1, "pass": 9}
    assert (group["first_median"], group["median"], group["last_median"]) == (
        1000.0,
        1001.0,
        1061.0,
    )
    [change] = group["change_points"]
    assert (change["index"], change["is_slower"]) == (6, True)
    assert change["first_record"]["trace_sha256"].startswith("000000000006")
    assert [point["median"] for point in group["recent_points"]] == [1061.0]


def test_same_history_same_bytes() -> None:
    again = History(
        tuple(HistoryRecord.model_validate(one.model_dump()) for one in SHIFTED.records)
    )
    for render in (render_page, render_text):
        assert render(findings_of(History(SHIFTED.records))) == render(findings_of(again))


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call_with(*arguments: str | Path) -> tuple[int, str, str]:
        exit_code = run([str(argument) for argument in arguments])
        return (exit_code, *capfd.readouterr())

    return call_with


def test_the_verb(call: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    target = tmp_path / "h.jsonl"
    for one in SHIFTED.records:
        append(str(target), one)
    target.write_bytes(target.read_bytes() + b"{")
    torn = f"{target}, line 11 (the last; its writer was stopped)"
    problem = f"{torn} is left out: it is torn or damaged, not JSON (line 1, column 2)."
    history = findings_of(History(SHIFTED.records, (problem,)))
    expected = (0, render_text(history, tail=3), f"note: {problem}\n")
    assert call("history", "--history", target, "--tail", "3") == expected
    for name, text in (
        ("x.json", canonical_json(history_figures(history))),
        ("x.HTML", render_page(history)),
        ("x.txt", render_text(history)),
    ):
        output = tmp_path / name
        assert call("history", "--history", target, "--output", output)[:2] == (0, f"{output}\n")
        assert output.read_text(encoding="utf-8") == text


def test_the_verb_without_a_history(call: Callable[..., Any], tmp_path: Path) -> None:
    assert call("history")[0] == 2
    assert call("history", "--history", tmp_path / "no.jsonl")[0] == 3
    assert call("history", "--history", tmp_path, "--tail", "-1")[0] == 2
