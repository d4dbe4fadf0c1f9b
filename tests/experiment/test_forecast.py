"""What is said before an experiment: who runs when, and what a gain costs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from marin_profile.cli import run
from marin_profile.experiment.forecast import measured_costs
from marin_profile.experiment.outcome import Outcome, Run
from marin_profile.experiment.plan import plan_of
from marin_profile.experiment.progress import progress_of

LINE = ["experiment", "--arm", "a=--x", "--arm", "b", "--dry-run"]


def said(arguments: list[str], capfd) -> list[str]:
    assert run([*LINE, *arguments, "--", "prog", "a b"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out.splitlines()


def test_schedule_power_and_cost(tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = said(["--minutes", "2", "--spread", "1"], capfd)
    assert lines[1:5] == [
        "  warm-up 1: a, control, b",
        "  round 1: control, a, b",
        "  round 2: b, a, control",
        "  round 3: a, b, control",
    ]
    assert f"  a: MARIN_PROFILE_OUT={tmp_path}/D/runs/round01-a/out prog 'a b' --x" in lines
    # 3 arms in one round to warm up and 20 more.
    assert "At most 63 runs, 126 minutes." in lines
    needs = {line.split(" %")[0]: line for line in lines if line.startswith("-")}
    assert list(needs) == ["-1", "-2", "-3", "-5", "-10"]
    rounds = int(needs["-3"].split("about ")[1].split()[0])
    assert needs["-3"].endswith(f": {3 * (rounds + 1)} runs, {6 * (rounds + 1)} minutes.")
    # More than the difference of two runs scatters by, less than what one round takes of it.
    assert 3 <= rounds <= 12
    assert "found in" in needs["-1"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_known_is_said(tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(said([], capfd))
    assert "At most 63 runs." in text
    assert "say with --spread" in text
    assert "say it with --minutes" in text
    assert "needs about" not in text


def test_costs_as_measured(tmp_path: Path) -> None:
    texts = {"command": ["x"], "arms": {"a": {}, "b": {}}, "warmup": "0"}
    the_plan = plan_of(texts, named="plan", files_from=tmp_path, folder=tmp_path)
    times = {"control": [1, 1, 1], "a": [1, 1.1, 1.21], "b": [2, 2, 2]}
    outcomes = [
        Outcome(run=Run(at, name), seconds=30.0 + at, measure="period", typical=value, mean=value)
        for name, values in times.items()
        for at, value in enumerate(values)
    ]
    costs = measured_costs(progress_of(the_plan, outcomes))
    assert costs.minutes == pytest.approx(31 / 60)
    # Effects 0, d, 2d have the variance d^2, those of b none: pooled d^2 / 2, of one run d^2 / 4.
    assert costs.spread == pytest.approx(100 * math.log(1.1) / 2)
