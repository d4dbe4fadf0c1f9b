"""kill -9 at every write of every verb that writes: old or new, whole, and after the next run
nothing is left of it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders_summary import build_summary
from builders_xspace import STAMP, Space
from killed import end_of
from marin_profile.cli import run
from marin_profile.history import read
from marin_profile.schema import TraceProvenance

Files = dict[str, bytes]


def contents(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True)
class Case:
    """A verb that writes below `out`; `older`: options that make what it replaces, which may have
    to be of its kind."""

    line: str
    older: str = ""

    @property
    def command(self) -> list[str]:
        return self.line.split()


SIDES = "--before a.json --after b.json"
CASES = {
    "summarize": Case("summarize --profile-dir capture --output out/s.json"),
    "report": Case("report --summary b.json --output out/r.md"),
    "compare": Case(f"compare {SIDES} --output out/c.json"),
    "bundle": Case(
        "bundle --before-summary a.json --after-summary b.json --allow-inconclusive "
        "--output-dir out/bundle",
        older=" --label older",
    ),
    "track": Case(f"track {SIDES} --allow-inconclusive --output out/t.json"),
    "history": Case("history --history h.jsonl --output out/h.html"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for name in "ab":
        (folder / f"{name}.json").write_text(build_summary(source_path=name).to_json())
    space = Space("host")
    tpu = space.tpu(0)
    for step in range(4):
        tpu.step(step, 100 * step, 90)
        tpu.op("fusion.1", 100 * step, 50)
    space.write(folder / f"capture/plugins/profile/{STAMP}/host.xplane.pb")
    (folder / "h.jsonl").write_bytes(b"")
    (folder / "out").mkdir()
    return folder


def old_of(new: Files) -> Files:
    return {name: b"old " + content for name, content in new.items()}


def fill(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    folder.mkdir(exist_ok=True)


def as_seen(files: Files) -> Files:
    """Without what is under way, which nobody sees who does not look for hidden files."""
    return {name: content for name, content in files.items() if not name.startswith(".")}


def writes_killed(inputs: Path, case: Case, rounds: range, old: bool) -> int:
    """Kill the verb at its first, second, ... write, the rounds that are asked for; how many."""
    out = inputs / "out"
    fill(out, {})
    assert run(case.command) == 0  # here, so that its children start with all loaded
    new = contents(out)
    assert new, "the verb writes"
    before = {}
    if old:
        before = old_of(new)
        if case.older:
            assert run((case.line + case.older).split()) == 0
            before = contents(out)
            assert before != new
    killed = 0
    for at in rounds:
        fill(out, before)
        code = end_of(case.command, str(out), at)
        if code != -signal.SIGKILL:
            assert (code, contents(out)) == (0, new)
            break
        killed += 1
        assert as_seen(contents(out)) in (before, new), f"{case.line}: write {at}"
        assert end_of(case.command, str(out)) == 0
        assert contents(out) == new
        assert [name for name in os.listdir(out) if name.startswith(".")] == []
    return killed


@pytest.fixture
def there(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(inputs)
    return inputs


@pytest.mark.parametrize("verb", CASES)
def test_a_killed_verb_leaves_old_or_new(there: Path, verb: str) -> None:
    """Opened, written by half, not yet synced, not yet renamed, renamed."""
    assert writes_killed(there, CASES[verb], range(1, 40), old=True) >= 5


def test_a_killed_verb_leaves_nothing_or_new(there: Path) -> None:
    assert writes_killed(there, CASES["report"], range(1, 40), old=False) >= 5


def appended_after_kills(folder: Path, target: str, kills: int) -> None:
    """`history --add` of a new capture each time, killed at one of its writes, then done again."""
    stored = folder / "store"
    shutil.rmtree(stored, ignore_errors=True)
    stored.mkdir()
    rounds = 0
    at = 1
    while rounds < kills:
        summary = folder / "new.json"
        provenance = TraceProvenance(trace_sha256=f"{rounds:064}")
        made = build_summary(source_path=f"capture-{rounds}", trace_provenance=provenance)
        summary.write_text(made.to_json())
        command = ["history", "--history", f"store/{target}", "--add", "new.json"]
        done = {one.source_path for one in read(f"store/{target}", missing_ok=True).records}
        code = end_of(command, str(stored), at)
        assert code in (0, -signal.SIGKILL)
        found = {one.source_path for one in read(f"store/{target}", missing_ok=True).records}
        assert found - {f"capture-{rounds}"} == done
        assert end_of(command, str(stored)) == 0
        history = read(f"store/{target}")
        assert history.problems == ()
        assert [one.source_path for one in history.records].count(f"capture-{rounds}") == 1
        assert len(history.records) == len(done) + 1
        assert [name for name in os.listdir(stored) if name.startswith(".")] == []
        rounds += 1
        at = at + 1 if code == -signal.SIGKILL else 1


@pytest.mark.parametrize("target", ["h.jsonl", "folder/"])
def test_a_killed_append_leaves_old_or_new(there: Path, target: str) -> None:
    appended_after_kills(there, target, 8)


@pytest.mark.long
@pytest.mark.parametrize("verb", CASES)
def test_every_verb_killed_fifty_times(there: Path, verb: str) -> None:
    killed = 0
    while killed < 50:
        for old in (True, False):
            killed += writes_killed(there, CASES[verb], range(1, 1000), old)


@pytest.mark.long
@pytest.mark.parametrize("target", ["h.jsonl", "folder/"])
def test_append_killed_fifty_times(there: Path, target: str) -> None:
    appended_after_kills(there, target, 60)


Together = Callable[[list[list[str]]], list[int]]


@pytest.fixture
def together() -> Together:
    """Run command lines at the same time, ten times each; for each 0, or the first other code."""

    def run_all(commands: list[list[str]]) -> list[int]:
        children = []
        for command in commands:
            child = os.fork()
            if child == 0:
                codes = (end_of(command, "out") for _ in range(10))
                os._exit(next((code for code in codes if code), 0))
            children.append(child)
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    return run_all


def test_two_writers_at_once_leave_the_one_or_the_other(there: Path, together: Together) -> None:
    for case in (CASES["report"], CASES["bundle"]):
        fill(there / "out", {})
        assert run(case.command) == 0
        new = contents(there / "out")
        codes = together([case.command] * 4)
        assert codes == [0] * 4
        assert contents(there / "out") == new
        assert [name for name in os.listdir("out") if name.startswith(".")] == []
