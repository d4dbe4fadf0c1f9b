"""Patches and commits as arms, of a toy repository whose one file says how long steps are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builders_experiment import captures, plan, plan_file
from marin_profile.base.errors import UsageError
from marin_profile.experiment.report import JSON_FILE, write_report
from marin_profile.experiment.runner import conduct
from patience import running_with, wait_until

FACTORS = {"now": 1, "old": 1.2, "fast": 0.8, "bad": 1}


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=n", "-c", "user.email=e@x")
    done = subprocess.run(
        ["git", *names, "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """`code/which` names the captures that a run leaves: "old" first, now "now"; and a patch that
    makes it "fast"."""
    top = tmp_path / "checkout"
    (top / "code").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", str(top))
    for text in ("old\n", "now\n"):
        (top / "code" / "which").write_text(text)
        git(top, "add", ".")
        git(top, "commit", "-q", "-m", text.strip())
    (top / "code" / "which").write_text("fast\n")
    (tmp_path / "fast.patch").write_text(git(top, "diff") + "\n")
    git(top, "checkout", "-q", "code/which")
    return top


def of(checkout: Path, scripted: Path, **facts):
    arms = {
        "old": {"commit": "main~1"},
        "fast": {"patch": str(checkout.parent / "fast.patch")},
    }
    read = {"arguments": ["--read"]}
    arms = {"control": read, **{name: {**arm, **read} for name, arm in arms.items()}}
    return plan(scripted, arms, folder=checkout / "code", **facts)


def test_patches_and_commits(checkout: Path, tmp_path: Path) -> None:
    scripted, output = captures(tmp_path / "s", FACTORS), tmp_path / "o"
    before = [git(checkout, *what.split()) for what in ("status --porcelain", "worktree list")]
    the_plan = of(checkout, scripted)
    write_report(the_plan, conduct(the_plan, output), output)
    found = {arm["arm"]: arm for arm in json.loads((output / JSON_FILE).read_text())["arms"]}
    assert {name: arm["standing"] for name, arm in found.items()} == {
        "fast": "wins",
        "old": "slower",
    }
    assert found["fast"]["effect"] == pytest.approx(-20, abs=0.5)
    assert found["old"]["effect"] == pytest.approx(20, abs=0.5)
    assert found["old"]["commit"] == git(checkout, "rev-parse", "main~1")
    assert found["fast"]["commit"] == git(checkout, "rev-parse", "main")
    after = [git(checkout, *what.split()) for what in ("status --porcelain", "worktree list")]
    assert after == before
    assert not (output / "worktrees").exists()
    # What is said to run an arm again makes the same tree.
    command = found["fast"]["command"].partition(" && cd ")[0]
    command = command.replace("/tmp/marin-profile-worktree-fast", str(tmp_path / "again"))
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert (tmp_path / "again" / "code" / "which").read_text() == "fast\n"


def test_what_no_commit_holds_is_asked_about(checkout: Path, tmp_path: Path) -> None:
    scripted, output = captures(tmp_path / "s", FACTORS), tmp_path / "o"
    (checkout / "code" / "which").write_text("mine\n")
    with pytest.raises(UsageError, match=r"changes that no commit holds \(code/which\)"):
        conduct(of(checkout, scripted), output)
    assert not output.exists()
    # Named, the base is what is compared with, whatever the checkout has.
    the_plan = of(checkout, scripted, base="main", rounds="3")
    write_report(the_plan, conduct(the_plan, output), output)
    found = json.loads((output / JSON_FILE).read_text())
    assert [arm["arm"] for arm in found["arms"]] == ["fast", "old"]
    assert (checkout / "code" / "which").read_text() == "mine\n"


def test_a_patch_that_does_not_apply_starts_nothing(checkout: Path, tmp_path: Path) -> None:
    scripted, output = captures(tmp_path / "s", FACTORS), tmp_path / "o"
    patch = tmp_path / "fast.patch"
    patch.write_text(patch.read_text().replace("-now", "-then"))
    with pytest.raises(UsageError, match="patch does not apply"):
        conduct(of(checkout, scripted), output)
    assert not (scripted / "times").exists()
    assert not (output / "journal.jsonl").exists()
    patch.write_text(patch.read_text().replace("-then", "-now"))
    conduct(of(checkout, scripted, rounds="3"), output)


def test_a_base_that_moved_is_another_plan(checkout: Path, tmp_path: Path) -> None:
    scripted, output = captures(tmp_path / "s", FACTORS), tmp_path / "o"
    conduct(of(checkout, scripted, rounds="3"), output)
    git(checkout, "commit", "-q", "--allow-empty", "-m", "later")
    with pytest.raises(UsageError, match=r"commits\.control, commits\.fast"):
        conduct(of(checkout, scripted, rounds="3"), output)


def test_a_runner_that_is_told_to_end_leaves_no_worktree(checkout: Path, tmp_path: Path) -> None:
    scripted, output = captures(tmp_path / "s", FACTORS), tmp_path / "o"
    arms = {"control": {"arguments": ["--read", "--wait"]}, "old": {"commit": "main~1"}}
    file = plan_file(tmp_path / "plan.yaml", scripted, arms, folder=str(checkout / "code"))
    line = [sys.executable, "-m", "marin_profile", "experiment", str(file), "-o", str(output)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as runner:
        wait_until(lambda: running_with(str(scripted), "--wait", "experiment_arm.py"))
        assert sorted(path.name for path in (output / "worktrees").iterdir()) == ["control", "old"]
        runner.terminate()
        assert runner.stderr is not None
        assert runner.stderr.read().endswith("interrupted\n")
    assert runner.returncode == 130
    assert not (output / "worktrees").exists()
    assert running_with(str(scripted), "--wait", "experiment_arm.py") == []
    assert git(checkout, "worktree", "list").count("\n") == 0
