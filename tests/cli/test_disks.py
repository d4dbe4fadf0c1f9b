"""Full disks and read-only folders: one sentence, an exit code, and what was there stays."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary
from mounts import mounted

# Runs each verb in one process: into a disk that is filled first, or is read only.
CHILD = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from marin_profile.cli import run

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
}

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
        code = run([str(part) for part in command])
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
    child = mounted(disk, options, [sys.executable, "-c", CHILD, disk, inputs, first])
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
