"""`marin-profile track`: the verdict as JSON, its sentence, its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders_verdict import capture, noisy
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
        ("slower", [], "fail", 1),
        ("slower", ["--allow-inconclusive"], "fail", 1),
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
    assert result.stderr.endswith(f"note: {written['sentence']}\n")


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
