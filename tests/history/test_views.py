"""What the document and the JSON show; the verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.cli import run
from marin_profile.documents import html, markdown, terminal
from marin_profile.documents.model import Series
from marin_profile.history import History, HistoryRecord, append, record_of
from marin_profile.history.document import MOST_POINTS, history_document
from marin_profile.history.figures import history_figures
from marin_profile.history.findings import Findings, findings_of
from marin_profile.schema import canonical_json

LABEL = "<script>alert('x')</script> & \x1b[31m"
SHOWN = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; \\x1b[31m"


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


def text_of(found: Findings, tail: int = 20) -> str:
    return terminal.render(history_document(found, tail=tail))


class Checker(HTMLParser):
    """Fails on a tag that is closed out of turn; gathers tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.values: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.values += [f"{name}={value}" for name, value in attrs]
        if tag not in ("meta", "td", "tr") or self.open[-1] == "thead":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    page = html.render(history_document(FOUND, tail=4))
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert {"link", "img", "iframe"}.isdisjoint(checker.tags)
    assert not [value for value in checker.values if value.startswith(("src=", "on"))]
    assert "url(" not in page
    assert SHOWN in page
    assert "line 3 is &lt;torn&gt;" in page
    assert checker.tags.count("circle") == 10
    # The captures, and the figures of the series.
    assert checker.tags.count("tr") == 1 + 4 + 1 + 10
    assert "6 earlier captures not listed." in checker.text
    assert "prefers-color-scheme: dark" in page
    assert "first bad record: run7, git bbbbbbbbbbbb, trace 000000000006" in checker.text


def test_an_empty_history_and_one_without_points() -> None:
    for history in (History(), History((HistoryRecord(),))):
        found = findings_of(history)
        Checker().feed(html.render(history_document(found)))
        assert text_of(found).startswith(f"{len(history.records)} record")
        assert history_figures(found)["num_records"] == len(history.records)


def test_the_text() -> None:
    lines = text_of(FOUND, tail=2).splitlines()
    slower = (
        "6.0 % slower from 2026-01-07T00:00:00 on: 1.00 ms -> 1.06 ms, p < 1e-6; first bad record: "
        f"run7, git {'b' * 12}, trace 000000000006"
    )
    title = lines[4]
    assert title.startswith("TPU v6 Lite, 2 devices, 1 host, label <script>")
    assert "\\x1b[31m" in title
    assert lines[:4] == [
        "10 records of 1 configuration",
        f"- {title}: the typical step is slower: {slower}.",
        "- Not read: line 3 is <torn>",
        "",
    ]
    assert lines[5:] == [
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
        f"  - change: {slower}",
        f"    {TO_SEE_THE_CAUSE}",
        "  time                  median      p90  verdict  "
        "capture                                     change",
        "  2026-01-09T00:00:00  1.06 ms  1.06 ms  pass     "
        "run7, git bbbbbbbbbbbb, trace 000000000008",
        "  2026-01-10T00:00:00  1.06 ms  1.06 ms  pass     "
        "run7, git bbbbbbbbbbbb, trace 000000000009",
        "  8 earlier captures not listed.",
    ]


def test_the_series():
    """Of ten captures the seventh failed and is the first of a new level."""
    [section] = history_document(FOUND).sections
    [series] = [block for block in section.blocks if isinstance(block, Series)]
    assert [value for _, value, _ in series.points] == [
        *[1000.0, 1001.0] * 3,
        *[1060.0, 1061.0] * 2,
    ]
    assert series.marked == {6}
    [(at, short, _)] = series.changes
    assert (at, short) == (6, "+6.0 %")
    assert [(one.first, one.end, round(one.value)) for one in series.levels] == [
        (0, 6, 1000),
        (6, 10, 1060),
    ]
    assert series.notes[6] == f"fail, run7, git {'b' * 12}, trace 000000000006"


def test_a_long_history_shows_its_end():
    records = tuple(record(0, 1000.0) for _ in range(MOST_POINTS + 5))
    times = (f"2026-01-01T00:00:00.{at:06}Z" for at in range(len(records)))
    days = tuple(
        one.model_copy(update={"time": time, "trace_sha256": time})
        for one, time in zip(records, times, strict=True)
    )
    [section] = history_document(findings_of(History(days, ()))).sections
    [series] = [block for block in section.blocks if isinstance(block, Series)]
    assert len(series.points) == MOST_POINTS
    assert f", the last of {MOST_POINTS + 5:,}," in series.title
    # A configuration more halves that.
    other = record(1, 900.0).model_copy(update={"label": "other"})
    one, two = history_document(findings_of(History((*days, other), ()))).sections
    shown = [
        len(block.points)
        for side in (one, two)
        for block in side.blocks
        if isinstance(block, Series)
    ]
    assert sorted(shown) == [1, MOST_POINTS // 2]


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
    one, two = (findings_of(history) for history in (History(SHIFTED.records), again))
    assert history_document(one) == history_document(two)


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
    expected = (0, text_of(history, tail=3), f"note: {problem}\n")
    assert call("history", "--history", target, "--tail", "3") == expected
    for name, text in (
        ("x.json", canonical_json(history_figures(history))),
        ("x.HTML", html.render(history_document(history))),
        ("x.md", markdown.render(history_document(history))),
        ("x.txt", text_of(history)),
    ):
        output = tmp_path / name
        assert call("history", "--history", target, "--output", output)[:2] == (0, f"{output}\n")
        assert output.read_text(encoding="utf-8") == text


def test_the_verb_without_a_history(call: Callable[..., Any], tmp_path: Path) -> None:
    assert call("history")[0] == 2
    assert call("history", "--history", tmp_path / "no.jsonl")[0] == 3
    assert call("history", "--history", tmp_path, "--tail", "-1")[0] == 2
