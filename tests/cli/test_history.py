"""`marin-profile history`: adding captures, the baseline, what fails a job; the recipe."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders_verdict import capture, noisy
from marin_profile.history import HistoryRecord, append, read
from marin_profile.schema import CaptureDetails, DurationStats, ProfileSummary

Call = Callable[..., Any]
LABEL = ("--label", "small")


def of_run(seed: int, typical: float) -> ProfileSummary:
    """A capture of 25 steps of 1 % variation, with the statistics and mean that go with them."""
    periods = noisy(seed, 25, typical=typical, variation=0.01)
    made = capture(periods, name=f"run {seed}")
    stats = DurationStats(
        count=25,
        mean=float(np.mean(periods)),
        median=float(np.median(periods)),
        p90=float(np.quantile(periods, 0.9)),
        min=min(periods),
        max=max(periods),
    )
    changes = {"period": stats, "mean_period": stats.mean, "whole_periods": 25}
    start = f"2026-01-01T{seed // 60:02}:{seed % 60:02}:00+00:00"
    return made.model_copy(
        update={
            "step_time": made.step_time.model_copy(update=changes),
            "capture": CaptureDetails(start=start),
        }
    )


def written(folder: Path, seed: int, typical: float) -> Path:
    path = folder / f"{seed}.json"
    path.write_text(of_run(seed, typical).to_json())
    return path


def added(call: Call, history: Path, paths: Sequence[Path], commit: str, *options: str) -> Any:
    named = [part for path in paths for part in ("--add", path)]
    return call("history", "--history", history, *named, *LABEL, "--commit", commit, *options)


def test_the_recipe_with_an_optimisation_in_the_middle(call: Call, tmp_path: Path) -> None:
    """Main's commits are added apart from the pull requests, which leave the history as it is. Main
    gets 26 % faster in its third commit; a later pull request of +6.7 % is confirmed by one capture
    a side, with the noise floor of all five commits."""
    history = tmp_path / "h.jsonl"
    rng = np.random.default_rng(8)
    seed = 100
    for number, typical in enumerate((1000.0, 1000.0, 740.0, 740.0, 740.0)):
        levels = typical * np.exp(rng.normal(0, 0.01, 3))
        paths = [written(tmp_path, seed + at, float(level)) for at, level in enumerate(levels)]
        seed += 10
        result = added(call, history, paths, f"{number}" * 40)
        assert result.exit_code == 0
        assert result.stderr == f"note: {history}: 3 captures appended.\n"
    before = written(tmp_path, 201, 740.0)
    for typical, status in ((740.0 * 1.067, "fail"), (740.0, "pass")):
        after = written(tmp_path, 202, typical)
        result = call(
            *("track", "--before", before, "--after", after, "--history", history, *LABEL),
            "--no-append",
        )
        found = json.loads(result.stdout)
        assert (found["status"], found["confidence"]) == (status, "confirmed")
        low, high = found["interval_pct"]
        assert high - low < 8
        assert found["noise_floor"]["num_repeats"] == 15
        assert found["noise_floor"]["log_sd"] == pytest.approx(0.01, rel=0.5)
        assert "by 15 repeats of 5 commits in the history." in result.stderr
    assert len(read(str(history)).records) == 15

    # The history shows the optimisation, which is no reason to fail.
    result = call("history", "--history", history, "--fail-on-change", "--fail-on-drift")
    assert result.exit_code == 0
    assert "change: 2" in result.stdout
    assert "% faster from " in result.stdout


def test_what_was_added_is_not_added_again(call: Call, tmp_path: Path) -> None:
    history, path = tmp_path / "h.jsonl", written(tmp_path, 1, 1000.0)
    assert added(call, history, [path], "a" * 40, "--stamp").exit_code == 0
    again = added(call, history, [path], "a" * 40)
    assert again.stderr == f"note: {history}: 0 captures appended; 1 were there.\n"
    [one] = read(str(history)).records
    assert (one.label, one.git_sha, one.status) == ("small", "a" * 40, None)
    assert one.recorded_at_utc is not None
    assert one.mean_period == pytest.approx(1000.0, rel=0.01)


@pytest.mark.parametrize("option", [LABEL, ("--commit", "a"), ("--stamp",)])
def test_options_of_add_need_it(call: Call, tmp_path: Path, option: tuple[str, ...]) -> None:
    assert call("history", "--history", tmp_path, *option).exit_code == 2


@pytest.mark.parametrize("option", [("--commit", "a"), ("--no-append",), ("--stamp",)])
def test_options_of_a_history_need_one(call: Call, tmp_path: Path, option: tuple[str, ...]) -> None:
    path = written(tmp_path, 1, 1000.0)
    assert call("track", "--before", path, "--after", path, *option).exit_code == 2


def test_track_names_the_commit(call: Call, tmp_path: Path) -> None:
    sides = ("--before", written(tmp_path, 1, 1000.0), "--after", written(tmp_path, 2, 1000.0))
    history = tmp_path / "h.jsonl"
    call("track", *sides, "--history", history, "--commit", "c" * 40)
    [one] = read(str(history)).records
    assert one.git_sha == "c" * 40


# What fails a job


def level(values: Sequence[float], means: Sequence[float] | None = None) -> list[HistoryRecord]:
    return [
        HistoryRecord(
            time=f"2026-01-01T00:{at:02}:00.000000Z",
            time_source="capture",
            label="main",
            time_basis="period",
            git_sha=f"{at // 3:040}",
            trace_sha256=f"{at:064x}",
            median=value,
            mean_period=means[at] if means else None,
        )
        for at, value in enumerate(values)
    ]


FLAT, UP, DOWN = ([base + at % 2 for at in range(8)] for base in (1000.0, 1100.0, 900.0))
RISING = [1000.0 * 1.004**at for at in range(24)]


def exit_code(call: Call, folder: Path, records: Sequence[HistoryRecord], *options: str) -> Any:
    for one in records:
        append(str(folder / "h.jsonl"), one)
    return call("history", "--history", folder / "h.jsonl", *options)


@pytest.mark.parametrize(
    ("values", "options", "code"),
    [
        (FLAT + UP, [], 0),
        (FLAT + UP, ["--fail-on-change"], 1),
        (FLAT + UP, ["--fail-on-drift"], 0),
        (FLAT + DOWN, ["--fail-on-change"], 0),
        (FLAT + UP + FLAT, ["--fail-on-change"], 0),
        (FLAT + DOWN + FLAT, ["--fail-on-change"], 1),
        (FLAT + UP, ["--fail-on-change", "--baseline", "9..16"], 0),
        (FLAT + UP, ["--fail-on-change", "--baseline", "1..8"], 1),
        (FLAT + DOWN + FLAT, ["--fail-on-change", "--baseline", "1..8"], 0),
        (RISING, ["--fail-on-change"], 0),
        (RISING, ["--fail-on-drift"], 1),
        (RISING[::-1], ["--fail-on-drift"], 0),
    ],
)
def test_exit_codes(
    call: Call, tmp_path: Path, values: list[float], options: list[str], code: int
) -> None:
    assert exit_code(call, tmp_path, level(values), *options).exit_code == code


def test_a_slower_mean_fails_too_and_is_named(call: Call, tmp_path: Path) -> None:
    result = exit_code(call, tmp_path, level(FLAT + FLAT, FLAT + UP), "--fail-on-change")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("note: hardware not known, label main: the mean step is slower: 10.0 %")
    assert "mean step: change: 10.0 % slower" in result.stdout


def test_the_baseline_is_told(call: Call, tmp_path: Path) -> None:
    records = level(FLAT + UP)
    result = exit_code(call, tmp_path, records, "--baseline", "1..8", "--fail-on-change")
    assert "  10.0 % above the baseline 1..8 (8 records, 1.00 ms): the latest 8 records, 95 %" in (
        result.stdout
    )
    assert "the typical step is slower: 10.0 % above the baseline of 8 records." in result.stderr
    page, figures = tmp_path / "x.html", tmp_path / "x.json"
    for output in (page, figures):
        call("history", "--history", tmp_path / "h.jsonl", "--baseline", "1..8", "--output", output)
    assert "10.0 % above the baseline 1..8" in page.read_text()
    [group] = json.loads(figures.read_text())["groups"]
    assert (group["baseline"]["num_records"], group["is_slower"]) == (8, True)
    unknown = call("history", "--history", tmp_path / "h.jsonl", "--baseline", "nobody")
    assert (unknown.exit_code, unknown.stdout) == (3, "")


def test_a_drift_is_told(call: Call, tmp_path: Path) -> None:
    records = level(RISING)
    result = exit_code(call, tmp_path, records, "--fail-on-drift")
    # 23 x ln 1.004 = 9.18 %: 9.6 % up.
    drift = "a drift, not a change: +9.6 % since 2026-01-01T00:00:00, along a line"
    assert f"  {drift}\n" in result.stdout
    assert f"the typical step gets slower: {drift}." in result.stderr
    output = tmp_path / "x.json"
    call("history", "--history", tmp_path / "h.jsonl", "--output", output)
    [group] = json.loads(output.read_text())["groups"]
    assert (group["drift"]["kind"], group["drift"]["is_slower"]) == ("line", True)
    assert group["change_points"] == []


def test_any_order_of_arrival_shows_the_same(call: Call, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    values = 1000.0 * np.exp(rng.normal(0, 0.01, 60))
    values[35:] *= 1.06
    # Some captures of one time, whose order is that of their content.
    records = [
        one.model_copy(update={"time": f"2026-01-01T00:{at // 2:02}:00.000000Z"})
        for at, one in enumerate(level(values.tolist()))
    ]
    shown = set()
    for order in range(4):
        target = tmp_path / f"{order}.jsonl"
        random.Random(order).shuffle(records)
        target.write_bytes(b"".join(one.to_line() + b"\n" for one in records))
        shown.add(call("history", "--history", target, "--tail", "60").stdout)
    [text] = shown
    assert text.count("- change: ") == 1
