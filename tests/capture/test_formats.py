"""The table of formats: what an entry is enough for, and that entries do not contradict."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.capture.formats import FORMATS, Format, format_ending, format_of, load

SOURCES = Path(__file__).parents[2] / "src" / "marin_profile"

# A format of "<line> <op> <start us> <duration us>" lines, of one TPU core.
READER = """
from itertools import groupby
import numpy as np
from marin_profile.base.times import PS_PER_US
from marin_profile.events.timeline import Line, Op, Plane, Timeline

def read_toy(stream, *, path):
    rows = [line.decode().rsplit(" ", 3) for line in stream]
    names = sorted({name for _, name, _, _ in rows})
    lines, first = [], 0
    for at, (line, events) in enumerate(groupby(rows, key=lambda row: row[0])):
        lines.append(Line(plane=0, id=at, name=line, first=first, count=len(list(events))))
        first += lines[-1].count
    return Timeline(
        source_format="toy",
        planes=(Plane("/device:TPU:0", 1),),
        lines=tuple(lines),
        ops=tuple(Op(name) for name in names),
        line=np.repeat(np.arange(len(lines), dtype=np.int32), [line.count for line in lines]),
        op=np.array([names.index(name) for _, name, _, _ in rows], np.int32),
        start=np.array([int(start) * PS_PER_US for _, _, start, _ in rows], np.int64),
        duration=np.array([int(length) * PS_PER_US for *_, length in rows], np.int64),
    )

def read_window(stream):
    return None

def mask_toy(file, copy, redactor):
    copy.write_bytes(redactor.bytes(file.read_bytes()))
"""
ENTRY = """
from marin_profile.capture import formats
formats.FORMATS += (
    formats.Format(
        name="toy",
        called="toy profile",
        option="--toy-file",
        suffixes=(".toy",),
        endings=(".toy",),
        read="toy_reader:read_toy",
        read_window="toy_reader:read_window",
        mask="toy_reader:mask_toy",
        memory_per_byte=1.0,
        lacks=("all but names and times",),
    ),
)
"""
PROFILE = "XLA Ops fusion.1 0 30\nXLA Ops copy.2 40 10\n"


@pytest.fixture
def toy(tmp_path: Path):
    """Runs code in a process that knows one format more; gives what it printed."""
    (tmp_path / "toy_reader.py").write_text(READER)
    (tmp_path / "with_toy.py").write_text(ENTRY)
    folder = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    folder.mkdir(parents=True)
    (folder / "alice.toy").write_text(PROFILE)

    def run(code: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", f"import with_toy\n{code}", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


MAIN = "from marin_profile.cli import main; main()"


@pytest.mark.parametrize(
    "named",
    [
        ("--profile-dir", "."),
        ("--toy-file", "plugins/profile/2026_01_01_00_00_00/alice.toy"),
    ],
    ids=["folder", "file"],
)
def test_a_reader_and_its_entry_are_enough_to_summarize(toy, named: tuple[str, str]) -> None:
    summary = json.loads(toy(MAIN, "summarize", *named))
    assert summary["source_format"] == "toy"
    assert [(op["name"], op["exclusive_duration"]) for op in summary["hot_ops"]] == [
        ("fusion.1", 30.0),
        ("copy.2", 10.0),
    ]
    [ledger] = summary["device_ledger"]
    assert (ledger["compute_duration"], ledger["idle_duration"]) == (40.0, 10.0)
    assert [host["host"] for host in summary["hosts"]] == ["alice"]
    assert summary["coverage"]["format_lacks"] == ["all but names and times"]


def test_an_entry_is_enough_for_everything_else(toy, tmp_path: Path) -> None:
    assert "--toy-file F" in toy(MAIN, "summarize", "--help")
    assert "alice: alice.toy" in toy(MAIN, "captures", ".")
    toy("from marin_profile import summarize; assert summarize('.').source_format == 'toy'")
    masked = """
from pathlib import Path
from marin_profile.redact import Redactor, capture_host_names, redact_capture
files = sorted(Path("plugins/profile/2026_01_01_00_00_00").iterdir())
print(capture_host_names(files))
[copy] = redact_capture(files, Path("masked"), Redactor(users=("fusion",), hosts=("alice",)))
print(copy.name, copy.read_text())
"""
    assert toy(masked).splitlines()[:2] == ["['alice']", "axxxx.toy XLA Ops xxxxxx.1 0 30"]
    shared = """
from marin_profile.profiling.hosts import CAPTURE_SUFFIXES
assert ".toy" in CAPTURE_SUFFIXES
from marin_profile.capture.trace_files import LOOKED_FOR
print(LOOKED_FOR)
"""
    assert toy(shared).endswith("or *.toy\n")


def test_only_the_table_names_a_format() -> None:
    """Else a new format would touch more than its module and its entry."""
    naming = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        for one in FORMATS
        if re.search(rf'"{one.name}"|"[^" ]*{re.escape(one.suffixes[0])}"', path.read_text())
    }
    assert naming == {"capture/formats.py"}


def test_entries_do_not_contradict() -> None:
    names = [name for one in FORMATS for name in (one.name, one.option, *one.patterns)]
    assert len(set(names)) == len(names)
    for one in FORMATS:
        for suffix in one.suffixes:
            assert format_of(f"host{suffix}") is format_ending(f"host{suffix}") is one
        for name in one.hostless_names:
            assert format_of(name) is format_ending(name) is one


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_what_an_entry_names_is_there(one: Format) -> None:
    for reference in (one.read, one.read_window, one.mask, one.host_names):
        assert reference is None or callable(load(reference))
