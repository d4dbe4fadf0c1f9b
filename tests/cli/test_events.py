"""`marin-profile events`: what it writes, says and refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders_capture import context, leave_capture

Call = Callable[..., Any]


def test_the_path_is_printed_and_the_count_said(call: Call, tmp_path: Path) -> None:
    leave_capture(tmp_path / "run")
    target = tmp_path / "events.csv"
    result = call("events", tmp_path / "run", "-o", target)
    assert (result.exit_code, result.stdout) == (0, f"{target}\n")
    assert result.stderr == "note: 4 events of plugins/profile/2026_01_02_03_04_05.\n"
    assert len(target.read_text().splitlines()) == 5


def test_the_newest_of_several_captures(call: Call, tmp_path: Path) -> None:
    leave_capture(tmp_path, step_us=70)
    later = context(after_seconds=3600)
    leave_capture(tmp_path, stamp="2026_01_02_09_00_00", step_us=60, note=later)
    result = call("events", tmp_path, "-o", tmp_path / "x.jsonl")
    assert "the newest, 2026_01_02_09_00_00, was taken" in result.stderr
    assert '"duration_ps":60000000,' in (tmp_path / "x.jsonl").read_text()


@pytest.mark.parametrize(
    ("output", "exit_code", "told"),
    [
        (None, 2, "Missing option '-o'"),
        ("x.xlsx", 2, ".parquet, .csv or .jsonl file"),
    ],
)
def test_where_to(
    call: Call, tmp_path: Path, output: str | None, exit_code: int, told: str
) -> None:
    leave_capture(tmp_path)
    options = () if output is None else ("-o", tmp_path / output)
    result = call("events", tmp_path, *options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert told in result.stderr


def test_a_summary_holds_no_events(call: Call, summary_path: Path, tmp_path: Path) -> None:
    result = call("events", summary_path, "-o", tmp_path / "x.csv")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "is a summary, which holds no single events" in result.stderr
    assert not (tmp_path / "x.csv").exists()


def test_what_is_not_there(call: Call, tmp_path: Path) -> None:
    assert call("events", tmp_path / "none", "-o", tmp_path / "x.csv").exit_code == 3
