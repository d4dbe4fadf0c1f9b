"""`marin-profile bundle`: from what a user names to the folder, its notes and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders_capture import leave_capture
from builders_verdict import capture, noisy
from marin_profile.base.storage import write_file
from marin_profile.bundle import make_bundle
from marin_profile.history import read
from marin_profile.pipeline import SummarizeOptions, summarize
from marin_profile.schema import load_summary
from marin_profile.verdict import Thresholds

Call = Callable[..., Any]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    summaries = {
        "before": capture(noisy(1, 25)),
        "before2": capture(noisy(5, 25)),
        "same": capture(noisy(3, 25)),
        "slower": capture(noisy(2, 25, typical=1100.0)),
        "slower2": capture(noisy(4, 25, typical=1100.0)),
        "much": capture(noisy(2, 25, typical=1500.0)),
        "much2": capture(noisy(4, 25, typical=1500.0)),
        "short": capture(noisy(2, 3)),
    }
    for name, summary in summaries.items():
        (tmp_path / f"{name}.json").write_text(summary.to_json())
    return {name: tmp_path / f"{name}.json" for name in summaries}


def written(folder: Path, name: str = "track.json") -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize(
    ("after", "options", "status", "exit_code"),
    [
        ("same", [], "pass", 0),
        ("same", ["--strict-provenance"], "pass", 0),
        ("slower", [], "likely_fail", 0),
        ("slower", ["--fail-on-likely"], "likely_fail", 7),
        ("slower", ["--max-step-median-regression-pct", "20"], "warn", 0),
        ("short", [], "inconclusive", 1),
        ("short", ["--allow-inconclusive"], "inconclusive", 0),
        ("before", [], "inconclusive", 1),
        ("before", ["--allow-inconclusive"], "inconclusive", 0),
        ("before", ["--allow-inconclusive", "--strict-provenance"], "inconclusive", 1),
    ],
)
def test_status_and_exit_code(
    call: Call,
    paths: dict[str, Path],
    tmp_path: Path,
    after: str,
    options: list[str],
    status: str,
    exit_code: int,
) -> None:
    out = tmp_path / "out"
    sides = ("--before-summary", paths["before"], "--after-summary", paths[after])
    result = call("bundle", *sides, "--output-dir", out, *options)
    assert (written(out)["status"], result.exit_code) == (status, exit_code)
    assert result.stdout == f"{out}/compare_report.md\n"
    assert f"note: {written(out)['sentence']}\n" in result.stderr


def test_a_caveat_is_noted_and_exits_1_only_where_provenance_is_strict(
    call: Call, paths: dict[str, Path], tmp_path: Path
) -> None:
    other = load_summary(paths["same"])
    run = other.run_metadata.model_copy(update={"num_hosts": 2})
    paths["same"].write_text(other.model_copy(update={"run_metadata": run}).to_json())
    sides = ("--before-summary", paths["before"], "--after-summary", paths["same"])
    for options, exit_code in ((), 0), (("--strict-provenance",), 1):
        result = call("bundle", *sides, "--output-dir", tmp_path / "out", *options)
        assert result.exit_code == exit_code
        assert "note: Number of hosts differs: 1 before, 2 after.\n" in result.stderr
    caveats = written(tmp_path / "out", "manifest.json")["doubts"]
    assert caveats == ["Number of hosts differs: 1 before, 2 after."]


def test_options_reach_the_bundle(call: Call, paths: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    call(
        *("bundle", "--before-summary", paths["before"], "--before-summary", paths["before2"]),
        *("--after-summary", paths["slower"], "--label", "pull 7", "--output-dir", out),
        *("--max-step-median-regression-pct", "1", "--max-step-p90-regression-pct", "2"),
        *("--max-communication-share-regression-abs", "0.3"),
        *("--max-stall-share-regression-abs", "0.4", "--top-k", "3"),
    )
    expected = make_bundle(
        [load_summary(paths[name]) for name in ("before", "before2")],
        [load_summary(paths["slower"])],
        Thresholds(
            max_step_median_regression_pct=1,
            max_step_p90_regression_pct=2,
            max_communication_share_regression_abs=0.3,
            max_stall_share_regression_abs=0.4,
        ),
        label="pull 7",
        top_k=3,
    )
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == set(expected.files)
    for name, text in expected.files.items():
        assert (out / name).read_text() == text, name


def test_profile_folders_and_summaries_may_be_mixed_and_be_urls(call: Call, tmp_path: Path) -> None:
    leave_capture(tmp_path / "one", step_us=80)
    leave_capture(tmp_path / "two", step_us=85)
    options = SummarizeOptions(warmup_steps=0)
    summary = summarize(tmp_path / "one", options)
    write_file("memory://bundle/one.json", summary.to_json().encode())
    result = call(
        *("bundle", "--before-summary", "memory://bundle/one.json", "--warmup-steps", "0"),
        *("--after-profile-dir", f"file://{tmp_path}/two"),
        *("--output-dir", f"file://{tmp_path}/out"),
    )
    assert result.exit_code == 1
    assert result.stdout == f"{tmp_path}/out/compare_report.md\n"
    assert "note: before: reading memory://bundle/one.json\n" in result.stderr
    assert f"note: after: reading file://{tmp_path}/two\n" in result.stderr
    before, after = (
        (tmp_path / f"out/{side}/profile_summary.json").read_text() for side in ("before", "after")
    )
    assert before == summary.to_json()
    assert after == summarize(tmp_path / "two", options).to_json()
    compared = written(tmp_path / "out", "compare.json")
    assert {one["kept_steps"] for one in (*compared["before"], *compared["after"])} == {4}


@pytest.mark.parametrize("name", ["h.jsonl", "history/", "file", "memory"])
def test_captures_are_appended_once_and_the_bundle_stays_the_same(
    call: Call, paths: dict[str, Path], tmp_path: Path, name: str
) -> None:
    forms = {"file": f"file://{tmp_path}/f.jsonl", "memory": "memory://bundle/history"}
    history = forms.get(name, f"{tmp_path}/{name}")
    arguments = (
        *("bundle", "--before-summary", paths["before"], "--before-summary", paths["before2"]),
        *("--after-summary", paths["much"], "--after-summary", paths["much2"]),
        *("--history", history, "--label", "small"),
    )
    first = call(*arguments, "--output-dir", tmp_path / "one")
    second = call(*arguments, "--output-dir", tmp_path / "two")
    assert first.exit_code == second.exit_code == 1
    assert f"note: {history}: 2 captures after the change appended.\n" in first.stderr
    assert "0 captures after the change appended; 2 were there.\n" in second.stderr
    records = read(history).records
    assert [(one.label, one.status, one.confidence) for one in records] == [
        ("small", "fail", "confirmed")
    ] * 2
    for path in (tmp_path / "one").rglob("*.*"):
        same = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == same.read_bytes()


def test_a_torn_line_of_the_history_is_reported(
    call: Call, paths: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "h.jsonl").write_bytes(b'{"torn')
    sides = ("--before-summary", paths["before"], "--after-summary", paths["same"])
    options = ("--history", tmp_path / "h.jsonl", "--label", "x", "--output-dir", tmp_path / "out")
    result = call("bundle", *sides, *options)
    assert result.exit_code == 0
    torn = f"note: {tmp_path}/h.jsonl, line 1 (the last; its writer was stopped) is left out: "
    assert torn in result.stderr
    assert len(read(str(tmp_path / "h.jsonl")).records) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--before-summary", "b"], "Name at least one capture before and one after the change"),
        (["--before-summary", "b", "--after-summary", "a"], "with --output-dir"),
        (
            ["--before-summary", "b", "--after-summary", "a", "--output-dir", "gs://bucket/out"],
            "gs://bucket/out is a URL",
        ),
        (
            ["--before-summary", "b", "--after-summary", "a", "--output-dir", "{}"],
            "is no part of a bundle; name another folder",
        ),
        (
            ["--before-artifact", "b", "--after-run-target", "a", "--output-dir", "{}/out"],
            "The artifact 'b' names no project",
        ),
    ],
    ids=["a side", "a place", "a URL", "a foreign folder", "no project"],
)
def test_usage(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    """Said before anything is read: the summaries do not exist."""
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    (tmp_path / "mine.txt").write_text("")
    result = call("bundle", *(argument.format(tmp_path) for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert words in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert not Path("gs:").exists()


def test_what_is_not_there_exits_3_and_leaves_nothing(
    call: Call, paths: dict[str, Path], tmp_path: Path
) -> None:
    for kind in ("summary", "profile-dir"):
        sides = ("--before-summary", paths["before"], f"--after-{kind}", tmp_path / "no")
        result = call(
            "bundle", *sides, "--output-dir", tmp_path / "out", "--history", tmp_path / "h"
        )
        assert result.exit_code == 3
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "h").exists()
