"""How many processes read: by default what there is to read, processors and memory decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders_pod import write_pod
from marin_profile.capture.trace_files import HostFile
from marin_profile.pipeline import jobs
from marin_profile.pipeline.jobs import default_jobs


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    write_pod(tmp_path / "run", 3, steps=4)
    return tmp_path / "run"


def test_the_same_bytes_with_two_jobs(call: Any, pod: Path, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    alone = call("summarize", "--profile-dir", pod)
    for flags in (["--jobs", "2"], ["--jobs", "1"], ["--jobs", "2", "--no-cache"]):
        found = call("summarize", "--profile-dir", pod, *flags)
        assert (found.exit_code, found.stdout) == (0, alone.stdout)
    assert len(list((tmp_path / "cache/marin-profile/parts").iterdir())) == 3


@pytest.mark.parametrize(
    "verb", [["show"], ["report"], ["query", "--question", "What are the top 3 ops?"]]
)
def test_what_takes_a_capture_takes_jobs(call: Any, pod: Path, monkeypatch, tmp_path, verb) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "alone"))
    alone = call(*verb, pod)
    assert not (tmp_path / "alone/marin-profile/parts").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = call(*verb, pod, "--jobs", "2")
    assert (found.exit_code, found.stdout) == (0, alone.stdout)
    assert len(list((tmp_path / "cache/marin-profile/parts").iterdir())) == 3


def test_no_jobs_are_no_choice(call: Any, pod: Path) -> None:
    assert call("summarize", "--profile-dir", pod, "--jobs", "0").exit_code == 2


def hosts(count: int, size: int) -> list[HostFile]:
    return [HostFile(f"h{at}", f"h{at}.xplane.pb", size, "xplane_pb", "") for at in range(count)]


@pytest.mark.parametrize(
    ("count", "size", "processors", "free", "expected"),
    [
        (1, 10**10, 8, 10**12, 1),
        (2, 1000, 8, 10**12, 1),
        (2, 10**9, 8, 10**12, 2),
        (64, 30_000_000, 8, 10**12, 8),
        # 150 MB, and 2.5 times the file, for each.
        (64, 30_000_000, 8, 1_000_000_000, 4),
        (64, 30_000_000, 8, 100_000_000, 1),
        (1000, 1000, 8, 10**12, 8),
    ],
)
def test_by_default(count, size, processors, free, expected, monkeypatch):
    monkeypatch.setattr(jobs, "processors", lambda: processors)
    monkeypatch.setattr(jobs, "free_memory", lambda: free)
    assert default_jobs(hosts(count, size)) == expected


def test_this_machine_has_processors_and_memory():
    assert jobs.processors() >= 1
    assert jobs.free_memory() > 0
