"""Whoever reads the hosts of a capture, and whatever dies meanwhile: the same bytes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from builders_pod import host_name, pod_host, write_pod
from crew_tasks import begin, kill_readers_of
from marin_profile.base.crew import Alone, Crew, Processes
from marin_profile.base.errors import BrokenInputError
from marin_profile.base.resumable import Nowhere, Progress, Store
from marin_profile.cache import Kept
from marin_profile.capture.sources import Capture, resolve
from marin_profile.pipeline import SummarizeOptions, summarize_capture
from marin_profile.pipeline.crew_reading import CrewReading

HOSTS = 5
LARGE = 1 << 30


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    write_pod(tmp_path / "run", HOSTS, steps=5, late=(3, 1))
    return tmp_path / "run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "parts"


def capture_of(pod: Path) -> Capture:
    return resolve(profile_dir=str(pod))[0]


def summary_by(crew: Crew, pod: Path) -> str:
    return summarize_capture(capture_of(pod), read=CrewReading(crew)).to_json()


@pytest.mark.parametrize("crew", [Alone(), Processes(2, begin)])
def test_the_same_bytes_as_in_turn(pod, crew):
    expected = summarize_capture(capture_of(pod))
    assert [host.host for host in expected.hosts] == [host_name(at) for at in range(HOSTS)]
    assert summary_by(crew, pod) == expected.to_json()


def test_hosts_whose_steps_differ_are_read_again(pod):
    (folder,) = pod.glob("plugins/profile/*")
    write_pod(pod / "short", 2, steps=4)
    for path in sorted((pod / "short").rglob("*.xplane.pb")):
        path.replace(folder / path.name)
    expected = summarize_capture(capture_of(folder))
    assert len(expected.step_time.steps) == 4
    assert summary_by(Processes(2, begin), folder) == expected.to_json()


def test_a_broken_host_is_named_first_and_left_out(pod, monkeypatch):
    monkeypatch.chdir(pod.parent)
    next(pod.rglob("pod-0002.xplane.pb")).write_bytes(b"\xff" * 100)
    expected = summarize_capture(capture_of(Path("run")))
    assert expected.trace_overview.doubts[0].startswith("Host pod-0002 is missing: ")
    assert expected.trace_overview.quality_warnings[0] == expected.trace_overview.doubts[0]
    assert len(expected.hosts) == HOSTS - 1
    assert summary_by(Processes(2, begin), Path("run")) == expected.to_json()


def test_that_nothing_can_be_read_is_told_as_in_turn(pod, monkeypatch):
    monkeypatch.chdir(pod.parent)
    for path in pod.rglob("*.xplane.pb"):
        path.write_bytes(b"\xff" * 100)
    with pytest.raises(BrokenInputError) as in_turn:
        summarize_capture(capture_of(Path("run")))
    with pytest.raises(BrokenInputError) as by_crew:
        summary_by(Processes(2, begin), Path("run"))
    assert str(by_crew.value) == str(in_turn.value)


def test_a_killed_reader_changes_nothing(pod, tmp_path):
    killer = partial(kill_readers_of, "pod-0001", str(tmp_path), 1)
    assert summary_by(Processes(2, killer), pod) == summarize_capture(capture_of(pod)).to_json()
    assert len(list(tmp_path.glob("killed-*"))) == 1


def test_a_host_that_kills_each_reader_is_left_out(pod, tmp_path):
    killer = partial(kill_readers_of, "pod-0001", str(tmp_path), 99)
    summary = summarize_capture(capture_of(pod), read=CrewReading(Processes(2, killer)))
    assert len(list(tmp_path.glob("killed-*"))) == 3
    [doubt] = summary.trace_overview.doubts
    assert doubt.startswith("Host pod-0001 is missing: plugins/profile/")
    assert "its process died 3 times" in doubt
    next(pod.rglob("pod-0001.xplane.pb")).unlink()
    without = summarize_capture(capture_of(pod))
    assert summary.device_ledger == without.device_ledger
    assert summary.step_time == without.step_time


# What was read before


class Told:
    """How many hosts were read, and how many taken."""

    def __init__(self) -> None:
        self.last = Progress(0, 0, 0)

    def __call__(self, progress: Progress) -> None:
        self.last = progress

    def of(
        self, pod: Path, store: Store, options: SummarizeOptions | None = None
    ) -> tuple[str, int]:
        """The summary, and how many of its hosts were taken from the store."""
        reading = CrewReading(Alone(), store, self)
        summary = summarize_capture(capture_of(pod), options, read=reading)
        assert (self.last.there, self.last.tasks) == (HOSTS, HOSTS)
        return summary.to_json(), self.last.kept


def test_the_second_time_only_what_is_new_is_read(pod, folder):
    told = Told()
    first, kept = told.of(pod, Kept(folder, LARGE))
    assert kept == 0
    assert told.of(pod, Kept(folder, LARGE)) == (first, HOSTS)
    path = next(pod.rglob("pod-0002.xplane.pb"))
    content = path.read_bytes()
    pod_host(2, HOSTS, steps=5, late=(2, 2)).write(path)
    second, kept = told.of(pod, Kept(folder, LARGE))
    assert kept == HOSTS - 1
    assert second == summarize_capture(capture_of(pod)).to_json() != first
    path.write_bytes(content)
    assert told.of(pod, Kept(folder, LARGE)) == (first, HOSTS)


def test_parts_are_those_of_the_options(pod, folder):
    told = Told()
    told.of(pod, Kept(folder, LARGE))
    assert told.of(pod, Kept(folder, LARGE), SummarizeOptions(warmup_steps=2))[1] == 0
    assert told.of(pod, Kept(folder, LARGE), SummarizeOptions(hot_op_limit=3))[1] == HOSTS


def test_a_damaged_part_is_made_again(pod, folder):
    told = Told()
    first, _ = told.of(pod, Kept(folder, LARGE))
    paths = sorted(folder.iterdir())
    assert len(paths) == HOSTS
    paths[0].write_bytes(paths[0].read_bytes()[:-9])
    assert told.of(pod, Kept(folder, LARGE))[0] == first
    assert sorted(folder.iterdir()) == paths


def test_a_folder_that_others_may_write_is_not_used(pod, folder):
    told = Told()
    first, _ = told.of(pod, Nowhere())
    folder.mkdir()
    folder.chmod(0o777)
    for _ in range(2):
        assert told.of(pod, Kept(folder, LARGE)) == (first, 0)
    assert list(folder.iterdir()) == []


def test_what_was_not_asked_for_longest_goes(pod, folder):
    told = Told()
    told.of(pod, Kept(folder, LARGE))
    size = sum(path.stat().st_size for path in folder.iterdir())
    told.of(pod, Kept(folder, size + 10), SummarizeOptions(warmup_steps=2))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= size + 10
