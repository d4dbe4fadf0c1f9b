"""Full disks and read-only folders: one sentence, an exit code, and what was there stays."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from builders_capture import leave_capture
from builders_summary import build_summary
from mounts import mounted

# Runs each verb in one process: into a disk that is filled first, or is read only. The last two are
# no verbs of the command line; of them the error counts.
CHILD = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from killed import run_any
from marin_profile.cli import run

SESSION = "plugins/profile/2026_01_02_03_04_05"
disk, inputs, fill = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "fill"
one, two = inputs / "a.json", inputs / "b.json"
verbs = {
    "report": ["report", "--summary", one, "--output", disk / "out"],
    "compare": ["compare", "--before", one, "--after", two, "--output", disk / "out"],
    "track": ["track", "--before", one, "--after", two, "--output", disk / "out"],
    "append": ["history", "--history", disk / "h.jsonl", "--add", one],
    "put": ["history", "--history", f"{disk}/h/", "--add", one],
    "history": ["history", "--history", inputs / "h.jsonl", "--output", disk / "out"],
    "bundle": ["bundle", "--before-summary", one, "--after-summary", two]
    + ["--output-dir", disk / "bundle"],
    "summarize": ["summarize", "--profile-dir", inputs / "capture", "--output", disk / "out"],
    "schema": ["schema", "--output", disk / "out"],
    "events": ["events", inputs / "capture", "--output", disk / "out.csv"],
    "redact": ["redact", inputs / "capture" / SESSION, disk / "masked"],
    "stage": ["stage", inputs / "capture", disk, "always"],
}

def ended(command):
    try:
        return run_any(command)
    except OSError as error:
        print(f"error: {error.filename or command[0]}: {error.strerror}", file=sys.stderr)
        return 2

def state():
    return {
        path.relative_to(disk).as_posix(): path.read_bytes().hex()
        for path in sorted(disk.rglob("*")) if path.is_file()
    }

if fill:
    for name in ("out", "h.jsonl"):
        (disk / name).write_bytes(b"")
    made = run(["bundle", "--before-summary", str(one), "--after-summary", str(two),
                "--allow-inconclusive", "--output-dir", str(disk / "bundle")])
    assert made == 0
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
before = state()
results = {}
for name, command in verbs.items():
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = ended([str(part) for part in command])
    results[name] = (code, said.getvalue(), state() == before)
print("RESULTS", json.dumps(results))
"""


def outcomes(tmp_path: Path, options: str, first: str) -> dict[str, Any]:
    disk, inputs = tmp_path / "disk", tmp_path / "inputs"
    disk.mkdir()
    inputs.mkdir()
    for name in "ab":
        (inputs / f"{name}.json").write_text(build_summary(source_path=name).to_json())
    (inputs / "h.jsonl").touch()
    leave_capture(inputs / "capture")
    tests = str(Path(__file__).parents[1])
    path = f"import sys; sys.path.insert(0, {tests!r})\n"
    child = mounted(disk, options, [sys.executable, "-c", path + CHILD, disk, inputs, first])
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout.rpartition("RESULTS ")[2])
    return found


@pytest.mark.parametrize(
    ("options", "first", "cause"),
    [("size=300k", "fill", "No space left on device"), ("ro", "nothing", "Read-only file system")],
    ids=["full", "read only"],
)
def test_every_verb(tmp_path: Path, options: str, first: str, cause: str) -> None:
    for verb, (code, said, unchanged) in outcomes(tmp_path, options, first).items():
        assert (code, unchanged) == (2, True), (verb, said)
        last = said.splitlines()[-1]
        assert last.startswith("error: "), verb
        assert f": {cause}" in last, verb
        assert "defect" not in said


# A capture on the disk itself, which is then filled, or made read only.
FINISH = """
import subprocess, sys
from pathlib import Path
from builders_capture import leave_capture
from marin_profile.cli import run
from marin_profile.profiling.job import Job
from marin_profile.profiling.record import CaptureRecord, Owner, State, moved, noted, write_record

disk = Path(sys.argv[1])
session = leave_capture(disk / "run/profiler")
record = CaptureRecord(
    run_id="r", start_step=5, stop_step=8, owner=Owner("none", 1, 1), folder=str(session)
)
for state in (State.TRACING, State.SETTLING):
    record = moved(record, state)
write_record(noted(record, job=Job(session, session, disk / "run", run={"run_id": "r"})))

def state():
    return {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}

if sys.argv[2] == "fill":
    filler = (disk / "filler").open("wb", buffering=0)
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
else:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
before = state()
code = run(["finish", str(disk)])
print("RESULT", code, state() == before)
"""


@pytest.mark.parametrize(
    ("first", "cause"),
    [("fill", "No space left on device"), ("read only", "Read-only file system")],
)
def test_finish_leaves_the_capture_as_it_is(tmp_path: Path, first: str, cause: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    tests = str(Path(__file__).parents[1])
    path = f"import sys; sys.path.insert(0, {tests!r})\n"
    child = mounted(disk, "size=300k", [sys.executable, "-c", path + FINISH, disk, first])
    assert child.returncode == 0, child.stderr
    said, result = child.stdout.splitlines()
    assert ": steps 5 to 7: not finished: " in said
    assert cause in said
    assert result == "RESULT 1 True"
