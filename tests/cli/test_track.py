"""`marin-profile track`: the verdict as JSON, its sentence, its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders_verdict import capture, noisy
from marin_profile.base.storage import write_file
from marin_profile.history import append, read, record_of
from marin_profile.schema import load_summary
from marin_profile.verdict import Thresholds, assess

Call = Callable[..., Any]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    summaries = {
        "before": capture(noisy(1, 25)),
        "same": capture(noisy(3, 25)),
        "slower": capture(noisy(2, 25, typical=1100.0)),
        "short": capture(noisy(2, 3)),
    }
    for name, summary in summaries.items():
        (tmp_path / f"{name}.json").write_text(summary.to_json())
    return {name: tmp_path / f"{name}.json" for name in summaries}


@pytest.mark.parametrize(
    ("after", "options", "status", "exit_code"),
    [
        ("same", [], "pass", 0),
        ("slower", [], "likely_fail", 0),
        ("slower", ["--fail-on-likely"], "likely_fail", 7),
        ("same", ["--fail-on-likely"], "pass", 0),
        ("slower", ["--max-step-median-regression-pct", "20"], "warn", 0),
        ("short", [], "inconclusive", 1),
        ("short", ["--allow-inconclusive"], "inconclusive", 0),
    ],
)
def test_status_and_exit_code(
    call: Call,
    paths: dict[str, Path],
    after: str,
    options: list[str],
    status: str,
    exit_code: int,
) -> None:
    result = call("track", "--before", paths["before"], "--after", paths[after], *options)
    written = json.loads(result.stdout)
    assert (written["status"], result.exit_code) == (status, exit_code)
    assert result.stderr.startswith(f"note: {written['sentence']}\n")


def test_several_captures_a_side_fail(call: Call, paths: dict[str, Path], tmp_path: Path) -> None:
    """Also as pairs, and where one looks after each pair."""
    arguments: list[object] = ["track"]
    for at, typical in enumerate((1000.0, 1530.0, 1010.0, 1500.0, 990.0, 1500.0)):
        path = tmp_path / f"{at}.json"
        path.write_text(capture(noisy(at, 25, typical=typical, variation=0.005)).to_json())
        arguments += [("--before", "--after")[at % 2], path]
    for options, error_from in (
        ([], "captures"),
        (["--pair"], "pairs"),
        (["--sequential"], "pairs"),
    ):
        result = call(*arguments, *options, "--fail-on-likely")
        written = json.loads(result.stdout)
        assert (written["status"], written["confidence"]) == ("fail", "confirmed")
        assert (result.exit_code, written["error_from"]) == (1, error_from)
        assert (written["sequential"] is None) == (options != ["--sequential"])


def test_a_stamp_without_a_history_is_refused(call: Call, paths: dict[str, Path]) -> None:
    result = call("track", "--before", paths["before"], "--after", paths["same"], "--stamp")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name one with --history" in result.stderr


def test_options_reach_the_verdict(call: Call, paths: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "out/track.json"
    result = call(
        *("track", "--before", paths["before"], "--before", paths["same"]),
        *("--after", paths["slower"], "--label", "pull 7", "--output", target),
        *("--max-step-median-regression-pct", "1", "--max-step-p90-regression-pct", "2"),
        *("--max-communication-share-regression-abs", "0.3"),
        *("--max-stall-share-regression-abs", "0.4"),
    )
    assert result.stdout == f"{target}\n"
    expected = assess(
        [load_summary(paths[name]) for name in ("before", "same")],
        [load_summary(paths["slower"])],
        Thresholds(
            max_step_median_regression_pct=1,
            max_step_p90_regression_pct=2,
            max_communication_share_regression_abs=0.3,
            max_stall_share_regression_abs=0.4,
        ),
    ).model_copy(update={"label": "pull 7"})
    assert target.read_text() == expected.to_json()


def test_usage(call: Call, paths: dict[str, Path], tmp_path: Path) -> None:
    assert call("track", "--before", paths["before"]).exit_code == 2
    negative = ("--max-step-p90-regression-pct", "-1")
    both = ("--before", paths["before"], "--after", paths["same"])
    assert call("track", *both, *negative).exit_code == 2
    assert call("track", "--before", paths["before"], "--after", tmp_path / "no").exit_code == 3


def test_summaries_and_history_may_be_urls(call: Call, paths: dict[str, Path]) -> None:
    for name in ("before", "slower"):
        write_file(f"memory://track/{name}.json", paths[name].read_bytes())
    named = {
        "memory://track/{}.json": "memory://track/history",
        f"file://{paths['before'].parent}/{{}}.json": f"file://{paths['before'].parent}/h.jsonl",
    }
    expected = call("track", "--before", paths["before"], "--after", paths["slower"])
    for form, history in named.items():
        sides = ("--before", form.format("before"), "--after", form.format("slower"))
        result = call("track", *sides, "--history", history)
        assert (result.stdout, result.exit_code) == (expected.stdout, 0)
        [record] = read(history).records
        assert (record.status, record.confidence) == ("likely_fail", "likely")


def test_what_differs_too_much_is_inconclusive(call: Call, paths: dict[str, Path]) -> None:
    other = load_summary(paths["same"])
    run = other.run_metadata.model_copy(update={"hardware_type": "TPU v4", "num_hosts": 2})
    paths["same"].write_text(other.model_copy(update={"run_metadata": run}).to_json())
    sides = ("--before", paths["before"], "--after", paths["same"])
    result = call("track", *sides)
    sentence = (
        "Helped: cannot tell. Inconclusive: Hardware differs: TPU v6 Lite before, TPU v4 after."
    )
    assert json.loads(result.stdout)["sentence"] == sentence
    assert result.exit_code == 1
    assert result.stderr == (
        f"note: {sentence}\nnote: Number of hosts differs: 1 before, 2 after.\n"
    )
    assert call("track", *sides, "--allow-inconclusive").exit_code == 0


def test_the_history_gives_the_noise_floor_and_takes_the_capture(
    call: Call, paths: dict[str, Path], tmp_path: Path
) -> None:
    history = tmp_path / "h.jsonl"
    for seed in (31, 32, 33):
        repeat = capture(noisy(seed, 25))
        record = record_of(repeat, label="pull", status="pass")
        # The builder's statistics are the same for all; a capture's own median would vary.
        median = {"median": 1000.0 + seed, "git_sha": "a" * 40}
        append(str(history), record.model_copy(update=median))
    with history.open("ab") as stream:
        stream.write(b'{"torn')
    options = ("--history", history, "--label", "pull", "--allow-inconclusive")
    sides = ("--before", paths["before"], "--after", paths["same"])
    first = call("track", *sides, *options)
    found = json.loads(first.stdout)
    assert (found["status"], found["confidence"]) == ("pass", "confirmed")
    assert found["noise_floor"]["num_repeats"] == 3
    notes = first.stderr.splitlines()
    assert notes[0] == f"note: {found['sentence']}"
    assert notes[1] == (
        f"note: {history}, line 4 (the last; its writer was stopped) is left out: it is torn or "
        "damaged, not JSON (line 1, column 2)."
    )
    assert notes[2] == (
        "note: The noise floor is 0.1 % from run to run, that of the mean 0.1 %, by 3 repeats of "
        "1 commit in the history."
    )
    assert notes[3] == f"note: {history}: 1 capture after the change appended."

    again = call("track", *sides, *options, "--stamp")
    assert again.stdout == first.stdout
    assert f"note: {history}: 0 captures after the change appended; 1 were there." in again.stderr
    records = read(str(history)).records
    assert [one.status for one in records] == ["pass"] * 4
    assert [one.recorded_at_utc for one in records] == [None] * 4

    call("track", "--before", paths["before"], "--after", paths["slower"], *options, "--stamp")
    stamps = [one.recorded_at_utc for one in read(str(history)).records]
    [stamp] = [one for one in stamps if one is not None]
    assert (len(stamps), stamp[-1]) == (5, "Z")


def test_a_history_that_cannot_be_read_is_reported_before_anything_is_written(
    call: Call, paths: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    sides = ("--before", paths["before"], "--after", paths["same"])
    result = call("track", *sides, "--history", tmp_path / "file/h.jsonl")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"error: {tmp_path}/file/h.jsonl ")
