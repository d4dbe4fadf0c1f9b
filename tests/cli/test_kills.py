"""kill -9 at every write of every verb that writes: old or new, whole, and after the next run
nothing is left of it."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders_capture import leave_capture
from builders_summary import build_summary
from builders_xspace import STAMP, Space
from killed import end_of, ends_of, load
from marin_profile.capture.filenames import RECORD_FILE
from marin_profile.history import read
from marin_profile.profiling.job import Job
from marin_profile.profiling.record import (
    CaptureRecord,
    Owner,
    State,
    moved,
    noted,
    record_in,
    write_record,
)
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
    """A verb that writes below `out`. `older`: options that make what it replaces, which may have
    to be of its kind; `given`: a folder whose files lie in `out` before; `is_one`: its files take
    their places together, else each for itself."""

    line: str
    older: str = ""
    given: str = ""
    is_one: bool = True

    @property
    def command(self) -> list[str]:
        return self.line.split()


SIDES = "--before a.json --after b.json"
BUNDLED = (
    "--before-summary a.json --after-summary b.json --allow-inconclusive --output-dir out/bundle"
)
CASES = {
    "summarize": Case("summarize --profile-dir capture --output out/s.json"),
    "report": Case("report --summary b.json --output out/r.md"),
    "compare": Case(f"compare {SIDES} --output out/c.json"),
    "bundle": Case(
        f"bundle {BUNDLED}",
        older=f"bundle {BUNDLED} --label older",
    ),
    "track": Case(f"track {SIDES} --allow-inconclusive --output out/t.json"),
    "history": Case("history --history h.jsonl --output out/h.html"),
    "schema": Case("schema --output out/schema.json"),
    "events": Case("events capture --output out/e.csv"),
    "redact": Case(f"redact left/run/profiler/plugins/profile/{STAMP} out/masked", is_one=False),
    "stage": Case("stage capture out always", older="stage capture out never"),
    "finish": Case("finish out", given="left", is_one=False),
}


MANY_WRITES = {"redact", "stage", "finish"}


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
    leave(folder / "left/run", folder / "out/run")
    return folder


def leave(run: Path, place: Path) -> None:
    """A capture that a training left, to be finished in `place`."""
    session = leave_capture(run / "profiler", host="tw003", stamp=STAMP)
    there = place / session.relative_to(run)
    record = CaptureRecord(
        run_id="r", start_step=5, stop_step=8, owner=Owner("none", 1, 1), folder=str(session)
    )
    for state in (State.TRACING, State.SETTLING):
        record = moved(record, state)
    write_record(noted(record, job=Job(there, there, place, run={"run_id": "r"})))


def old_of(new: Files) -> Files:
    return {name: b"old " + content for name, content in new.items()}


def fill(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    folder.mkdir(exist_ok=True)


def is_under_way(name: str) -> bool:
    return any(part.startswith(".marin-profile-") for part in Path(name).parts)


def comparable(files: Files) -> Files:
    """Records without the process that wrote them, and how often it was tried."""
    return {
        name: plain_record(content) if name.endswith(RECORD_FILE) else content
        for name, content in files.items()
    }


def plain_record(content: bytes) -> bytes:
    return json.dumps(json.loads(content) | {"owner": None, "attempts": 1}).encode()


def assert_whole(case: Case, found: Files, before: Files, new: Files, where: str) -> None:
    """Old or new, without what is under way. A record may be in any state between."""
    seen = {name: content for name, content in found.items() if not is_under_way(name)}
    if case.is_one:
        assert seen in (before, new), where
        return
    assert before.keys() <= seen.keys() <= new.keys(), where
    for name, content in seen.items():
        if name.endswith(RECORD_FILE):
            assert record_in(content) is not None, where
        else:
            assert content in (before.get(name), new[name]), (where, name)


def ready(inputs: Path, case: Case, old: bool) -> tuple[Files, Files]:
    """What lies in `out` before the verb, and after it."""
    out = inputs / "out"
    given = contents(inputs / case.given) if case.given else {}
    fill(out, given)
    assert load(case.command) == 0
    new = contents(out)
    assert new != given, "the verb writes"
    if not old:
        return given, new
    if not case.older:
        return old_of(new) | given, new
    assert load(case.older.split()) == 0
    before = contents(out)
    assert before != new
    return before, new


def writes_killed(inputs: Path, case: Case, rounds: range, old: bool) -> int:
    """Kill the verb at its first, second, ... write, the rounds that are asked for; how many."""
    out = inputs / "out"
    before, new = ready(inputs, case, old)
    killed = 0
    for at in rounds:
        fill(out, before)
        code = end_of(case.command, str(out), at)
        if code != -signal.SIGKILL:
            assert code == 0
            assert comparable(contents(out)) == comparable(new)
            break
        killed += 1
        assert_whole(case, contents(out), before, new, f"{case.line}: write {at}")
        assert end_of(case.command, str(out)) == 0
        assert comparable(contents(out)) == comparable(new)
        assert_nothing_left(out)
    return killed


def assert_nothing_left(out: Path) -> None:
    assert [path for path in out.rglob("*") if is_under_way(path.name)] == []


@pytest.fixture
def there(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(inputs)
    return inputs


@pytest.mark.parametrize("verb", CASES)
def test_a_killed_verb_leaves_old_or_new(there: Path, verb: str) -> None:
    """Opened, written by half, not yet synced, not yet renamed, renamed; of many writes some."""
    rounds = range(1, 40, 3 if verb in MANY_WRITES else 1)
    assert writes_killed(there, CASES[verb], rounds, old=True) >= 5


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
        assert_nothing_left(stored)
        rounds += 1
        at = at + 1 if code == -signal.SIGKILL else 1


@pytest.mark.parametrize("target", ["h.jsonl", "folder/"])
def test_a_killed_append_leaves_old_or_new(there: Path, target: str) -> None:
    appended_after_kills(there, target, 8)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("verb", CASES)
def test_every_verb_killed_fifty_times(there: Path, verb: str) -> None:
    killed = 0
    while killed < 50:
        for old in (True, False):
            killed += writes_killed(there, CASES[verb], range(1, 1000), old)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("target", ["h.jsonl", "folder/"])
def test_append_killed_fifty_times(there: Path, target: str) -> None:
    appended_after_kills(there, target, 60)


@pytest.mark.parametrize("verb", [verb for verb in CASES if verb != "finish"])
def test_two_writers_at_once_leave_the_one_or_the_other(there: Path, verb: str) -> None:
    case = CASES[verb]
    before, new = ready(there, case, old=True)
    fill(there / "out", {})
    other = case.older.split() or case.command
    assert ends_of([case.command, other] * 2, "out", times=5) == [0] * 4
    assert contents(there / "out") in ((before, new) if case.older else (new,))
    assert_nothing_left(there / "out")


def test_of_two_finishes_at_once_one_may_leave_the_capture_to_the_other(there: Path) -> None:
    case = CASES["finish"]
    given, new = ready(there, case, old=False)
    for _ in range(5):
        fill(there / "out", given)
        codes = ends_of([case.command] * 2, "out", times=1)
        assert set(codes) <= {0, 1}
        assert 0 in codes
        assert comparable(contents(there / "out")) == comparable(new)
        assert_nothing_left(there / "out")
