"""Signs of life."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from builders_capture import leave_capture, space
from builders_json import event, gz, trace
from marin_profile import cache
from marin_profile.base.progress import watched
from marin_profile.capture.sources import Capture, HostFile
from marin_profile.cli import progress
from marin_profile.cli.inputs import load
from marin_profile.inputs import Input
from marin_profile.pipeline import reading, summarizing
from marin_profile.readers import read_timeline
from patience import PATIENCE, wait_until


def capture(size: int) -> Capture:
    host = HostFile(host="a", path="a.xplane.pb", size=size, format="xplane_pb", reason="")
    return Capture(root="/x", stamp="", hosts=(host,), source_path="a.xplane.pb")


def test_small_and_quick_is_silent(capsys):
    with progress.working_on(capture(1000)):
        pass
    assert capsys.readouterr().err == ""


def test_a_large_file_is_announced_with_its_memory(capsys):
    with progress.working_on(capture(2_000_000_000)):
        pass
    assert capsys.readouterr().err == ("note: reading 2.0 GB; this takes about 5.0 GB of memory.\n")


def test_long_work_says_that_it_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    errors: list[str] = []

    def is_noted() -> bool:
        errors.append(capsys.readouterr().err)
        return "still reading 3.0 MB" in "".join(errors)

    with progress.working_on(capture(3_000_000)):
        wait_until(is_noted)


def test_an_error_passes_and_ends_the_notes(capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 60)
    timers: list[threading.Timer] = []

    def fail() -> None:
        timers.extend(one for one in threading.enumerate() if isinstance(one, threading.Timer))
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), progress.working_on(capture(1)):
        fail()
    (timer,) = timers
    timer.join()
    assert capsys.readouterr().err == ""


JSON = trace(event("a"), event("b", "2"))


@pytest.mark.parametrize(
    ("name", "content", "events"),
    [
        ("h.xplane.pb", space("h").encode(), 12),
        ("h.trace.json", JSON, 2),
        ("h.trace.json.gz", gz(JSON), 2),
    ],
)
def test_readers_tell_bytes_and_events(tmp_path: Path, name: str, content: bytes, events: int):
    path = tmp_path / name
    path.write_bytes(content)
    source_format = "xplane_pb" if name.endswith(".pb") else "perfetto_trace_json"
    with watched() as work, path.open("rb") as stream:
        read_timeline(stream, path=str(path), source_format=source_format)
    assert (work.done, work.events) == (len(content), events)


def test_each_part_of_the_work_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    leave_capture(tmp_path / "run")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    named: list[str] = []
    for module in (cache, reading, summarizing):
        monkeypatch.setattr(module, "doing", lambda what, *, size=0: named.append(what))
    load(Input("profile_dir", str(tmp_path / "run")))
    assert named == ["looking for its summary", "reading h.xplane.pb", "analysing h"]


# A bar on a terminal of its own: drawn until a line comes on stdin.
DRAWN = """
import sys
from marin_profile.base.progress import advance, doing
from marin_profile.cli import progress
progress.BAR_SECONDS = float(sys.argv[1])
with progress.fetching():
    doing("reading [red]\\x1b[31mh.pb", size=9_000_000)
    advance(done=3_100_000, events=1_200_000)
    sys.stdin.readline()
assert ("rich" in sys.modules) == (sys.argv[2] == "drawn"), sys.argv
print("result")
"""


def drawn(
    seconds: float, expected: str, *, until: str, on_terminal: bool = True
) -> tuple[str, str]:
    """(stdout, stderr) of a process that shows a bar after so many seconds; it ends once its stderr
    holds `until`."""
    terminal, inner = pty.openpty() if on_terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", DRAWN, str(seconds), expected],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=inner,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        text=True,
    )
    os.close(inner)
    seen = ""
    while until not in seen:
        seen += os.read(terminal, 1 << 16).decode()
    stdout, _ = process.communicate("\n", timeout=PATIENCE)
    with contextlib.suppress(OSError):  # a terminal that nobody holds any more
        while rest := os.read(terminal, 1 << 16).decode():
            seen += rest
    os.close(terminal)
    assert process.returncode == 0, seen
    return stdout, seen


def test_a_terminal_gets_a_bar_with_bytes_and_events():
    stdout, seen = drawn(0, "drawn", until="events")
    assert stdout == "result\n"
    assert "reading [red]\\x1b[31mh.pb" in seen
    assert "3.1 MB of 9.0 MB, 1,200,000 events" in seen


def test_quick_work_draws_nothing_and_imports_no_rich():
    assert drawn(PATIENCE, "not drawn", until="") == ("result\n", "")


def test_a_pipe_gets_no_bar():
    assert drawn(0, "not drawn", until="", on_terminal=False) == ("result\n", "")
