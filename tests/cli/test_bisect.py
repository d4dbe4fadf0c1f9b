"""`marin-profile bisect` on real repositories, worktrees and processes; captures are synthetic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builders_repository import git, slower_from, toy_repository
from marin_profile.cli import run
from marin_profile.experiment.commits import commit_range
from marin_profile.experiment.lock import only_runner
from marin_profile.experiment.trying import Commands, Trier
from marin_profile.experiment.worktrees import Repository, worktrees
from patience import PATIENCE, wait_until

SECRET = "hunter2-of-all"


def arguments(top: Path, out: Path, commits: int, *more: str) -> list[str]:
    return [
        *("bisect", "--repository", str(top), "--good", f"main~{commits}", "--bad", "main"),
        *("-o", str(out), *more, "--", sys.executable, "train.py", "{out}"),
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a checkout and of its .git, and every folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def dirty(top: Path) -> dict[str, bytes]:
    """A checkout with changes of all kinds; what it holds."""
    (top / "untracked").write_text("mine")
    (top / "staged").write_text("mine")
    git(top, "add", "staged")
    (top / "build.py").write_text("changed")
    os.utime(top / "train.py")
    return contents(top)


def journal(out: Path) -> list[dict[str, object]]:
    lines = (out / "journal.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, lines) if one.get("kind") == "tried"]


@pytest.mark.slow
def test_the_slower_commit_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    shas = toy_repository(top, slower_from(3, commits=5), spread=0.01)
    before = dirty(top)
    build = ("--build", f"{sys.executable} build.py")
    assert run(arguments(top, out, 4, *build)) == 0
    said = capsys.readouterr()
    first, second = said.out.splitlines()
    assert first.startswith(f"Commit {shas[3][:12]} 'Change 3' made the step ")
    assert " % slower (99 % sure, " in first
    assert second == str(out / "bisect.html")
    assert "2 files of the checkout with changes that no commit holds" in said.err
    assert (out / "bisect.md").read_text().startswith(f"# {first}\n")
    figures = json.loads((out / "bisect.json").read_text())
    assert (figures["found"], figures["sentence"]) == (3, first)
    assert 0.2 < figures["change"]["ratio"] < 0.4
    assert contents(top) == before

    files = {
        name: (out / name).read_bytes() for name in ("bisect.json", "bisect.md", "bisect.html")
    }
    tried = journal(out)
    assert run(arguments(top, out, 4, *build)) == 0
    assert journal(out) == tried
    assert files == {name: (out / name).read_bytes() for name in files}
    assert run(arguments(top, out, 4, *build, "--env", "A=b")) == 2
    assert "environment, environment_values changed since" in capsys.readouterr().err


@pytest.mark.slow
def test_a_kill_changes_nothing(tmp_path: Path) -> None:
    top, out, whole = tmp_path / "top", tmp_path / "out", tmp_path / "whole"
    toy_repository(top, slower_from(6, commits=9))
    before = dirty(top)
    command = [sys.executable, "-m", "marin_profile", *arguments(top, out, 8)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(
        lambda: (
            (out / "journal.jsonl").exists()
            and len(journal(out)) >= 3
            and (out / "worktrees" / "tree").exists()
        )
    )
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    done = len(journal(out))
    assert run(arguments(top, out, 8)) == 0
    assert contents(top) == before
    assert not (out / "worktrees").exists()

    assert run(arguments(top, whole, 8)) == 0
    assert [one["commit"] for one in journal(out)] == [one["commit"] for one in journal(whole)]
    assert len({one["capture"] for one in journal(out)}) == len(journal(out)) > done >= 3
    found, other = (json.loads((one / "bisect.json").read_text()) for one in (out, whole))
    assert (found["found"], found["sentence"]) == (6, other["sentence"])


@pytest.mark.slow
def test_what_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    shas = toy_repository(top, slower_from(2, commits=4), not_building={1}, failing={2})
    more = ("--build", f"{sys.executable} build.py", "--env", f"TOKEN={SECRET}")
    assert run(arguments(top, out, 3, *more)) == 1
    said = capsys.readouterr()
    assert said.out.startswith(f"Unsure between {shas[0][:12]} 'Change 0' and {shas[3][:12]} ")
    figures = json.loads((out / "bisect.json").read_text())
    why = [row["skipped"] for row in figures["commits"]]
    assert why[1] == "the build ended with exit code 1; the log ends: error: no rule to make target"
    assert why[2] == (
        "the run ended with exit code 1; the log ends: RESOURCE_EXHAUSTED: out of memory, token ***"
    )
    assert why[0] is why[3] is figures["found"] is None
    outcomes = [(one["commit"], one["outcome"]) for one in journal(out)]
    assert outcomes.count((shas[1], "build_failed")) == 1
    assert outcomes.count((shas[2], "run_failed")) == 2
    held = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert SECRET.encode() not in held
    assert SECRET not in said.out + said.err


def test_an_end_that_cannot_be_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, slower_from(1, commits=3), not_building={0})
    before = contents(top)
    assert run(arguments(top, out, 2, "--build", f"{sys.executable} build.py")) == 1
    said = capsys.readouterr().out
    assert said.startswith("The good commit ")
    assert "cannot be measured: the build ended with exit code 1" in said
    assert contents(top) == before


@pytest.mark.slow
def test_no_change_between_the_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, [10_000] * 3)
    assert run(arguments(top, out, 2)) == 1
    assert capsys.readouterr().out.startswith("No commit between ")
    assert json.loads((out / "bisect.json").read_text())["found"] is None


def test_a_folder_of_other_things_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, [10_000] * 3)
    (out / "worktrees").mkdir(parents=True)
    assert run(arguments(top, out, 2)) == 2
    assert "holds worktrees; name another folder for the bisection" in capsys.readouterr().err
    assert (out / "worktrees").is_dir()


def test_a_run_that_takes_too_long(tmp_path: Path) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, [10_000] * 2, hanging={1})
    repository = Repository.around(top)
    commits = commit_range(repository, "main~1", "main")
    commands = Commands((sys.executable, "train.py", "{out}"), run_timeout=0.5)
    with only_runner(out) as lock, worktrees(repository, out / "trees") as trees:
        tried = Trier(repository, commands, trees, lock).take(commits.commits[1], 1)
    assert (tried.outcome, tried.why) == ("run_failed", "the run ran longer than its 0.5 s")


def test_a_capture_left_in_the_checkout(tmp_path: Path) -> None:
    """Each run's own, and none of an earlier one."""
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, [10_000, 20_000])
    repository = Repository.around(top)
    commits = commit_range(repository, "main~1", "main")
    with only_runner(out) as lock, worktrees(repository, out / "trees") as trees:
        commands = Commands((sys.executable, "train.py", "runs/a"), leaves="runs")
        trier = Trier(repository, commands, trees, lock)
        tries = [trier.take(commits.commits[at], number) for number, at in enumerate((0, 1))]
        left = Trier(repository, Commands(("true",)), trees, lock).take(commits.commits[0], 3)
    assert [one.typical for one in tries] == [10_000, 20_000]
    assert [(out / str(one.capture) / "runs" / "a").is_dir() for one in tries] == [True, True]
    assert left.outcome == "run_failed"
    assert left.why == "the run left no profile"


def test_a_plan_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, slower_from(20))
    before = contents(top)
    more = ("--dry-run", "--minutes", "3", "--spread", "0.05", "--change", "15")
    assert run(arguments(top, out, 32, *more, "--env", f"TOKEN={SECRET}")) == 0
    said = capsys.readouterr().out
    assert "32 commits by first parents, after " in said
    assert "about 11 captures, in nine of ten cases at most 11, " in said
    assert "where a commit made the step 32 % slower and runs differ by 0.1 %" in said
    assert "about 33 min, in nine of ten cases at most 33 min, at 3.0 min for a build" in said
    assert "with TOKEN=***" in said
    assert SECRET not in said
    assert not out.exists()
    assert contents(top) == before


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--skip", "main"], 2, "one of the two ends"),
        (["--skip", "nothing"], 3, "There is no commit nothing"),
        (["--env", "1A=b"], 2, "--env takes NAME=VALUE"),
        (["--captures", "../x"], 2, "--captures names a folder of the checkout"),
        (["--faster", "--change", "150"], 2, "below 100"),
        (["--good", "main"], 2, "same commit"),
        (["--repository", "nowhere"], 3, "There is no folder nowhere"),
    ],
)
def test_what_makes_no_sense(
    more: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top, out = tmp_path / "top", tmp_path / "out"
    toy_repository(top, [10_000] * 3)
    assert run(arguments(top, out, 2, *more)) == code
    assert said in capsys.readouterr().err
    assert not out.exists()
