"""Signs of life."""

from __future__ import annotations

import threading

import pytest

from marin_profile.capture.sources import Capture, HostFile
from marin_profile.cli import progress
from patience import wait_until


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
