"""Dask's workers give what processes give."""

from __future__ import annotations

import dask
import distributed  # noqa: F401  # its defaults are there before some of them are set
import pytest

from builders_pod import write_pod
from crew_tasks import Deed, begin, do, runs_of
from fleet_captures import write_fleet
from marin_profile.base.crew import Processes, each
from marin_profile.base.dask_crew import dask_crew
from marin_profile.base.errors import RemoteError
from marin_profile.base.resumable import Nowhere
from marin_profile.capture.sources import resolve
from marin_profile.fleet.captures import captures_named
from marin_profile.fleet.reading import rows_of
from marin_profile.pipeline import summarize_capture
from marin_profile.pipeline.crew_reading import CrewReading


@pytest.fixture(scope="module")
def local():
    with dask_crew("local", 2) as crew:
        yield crew


def test_results_come_in_the_order_of_the_tasks(local, tmp_path):
    deeds = [Deed(number, str(tmp_path), seconds=0.02 * (number == 0)) for number in range(7)]
    assert list(each(do, deeds, local)) == list(range(7))
    assert list(each(do, deeds, local)) == list(range(7)), "nothing is taken for pure"
    assert [runs_of(deed) for deed in deeds] == [2] * 7


def test_the_same_bytes_as_in_turn(local, tmp_path):
    write_pod(tmp_path, 5, steps=5, late=(3, 1))
    capture, _ = resolve(profile_dir=str(tmp_path))
    expected = summarize_capture(capture).to_json()
    assert summarize_capture(capture, read=CrewReading(local)).to_json() == expected
    # A scheduler that runs elsewhere.
    with dask_crew(local.client.scheduler.address, 1) as other:
        assert other.workers == 2
        assert summarize_capture(capture, read=CrewReading(other)).to_json() == expected


def test_a_fleet_gives_the_same_table(local, tmp_path):
    write_fleet(tmp_path, runs=12, slow=(2, 5, 7), broken=(9,))
    captures = captures_named(str(tmp_path))
    rows = rows_of(captures, local, Nowhere(), warmup_steps=1)
    assert rows == rows_of(captures, Processes(2, begin), Nowhere(), warmup_steps=1)
    assert [row.name[:6] for row in rows if row.problem] == ["run-09"]


def test_a_killed_worker_changes_nothing(local, tmp_path):
    deeds = [Deed(number, str(tmp_path), kills=int(number == 1)) for number in range(5)]
    assert list(each(do, deeds, local)) == list(range(5))


def test_a_worker_that_is_long_in_coming_back_comes_back(tmp_path):
    """Dask's patience with it is a hundredth of a second here, less than any process takes."""
    deeds = [Deed(number, str(tmp_path), kills=int(number == 1)) for number in range(3)]
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}),
        dask_crew("local", 1) as crew,
    ):
        assert list(each(do, deeds, crew)) == list(range(3))


def test_that_no_worker_is_left_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("marin_profile.base.crew.WATCH_SECONDS", 0.1)
    monkeypatch.setattr("marin_profile.base.dask_crew.SECONDS_WITHOUT_WORKERS", 0.3)
    with dask_crew("local", 1) as crew:
        crew.client.retire_workers(list(crew.client.nthreads()))
        with pytest.raises(RemoteError, match="No Dask worker is left at local"):
            list(each(do, [Deed(0, str(tmp_path))], crew))


def test_workers_that_never_start_are_an_error(monkeypatch):
    monkeypatch.setattr("marin_profile.base.dask_crew.SECONDS_TO_START", 1)
    sleeping = {"distributed.worker.preload": ["import time; time.sleep(20)"]}
    with (
        dask.config.set(sleeping),
        pytest.raises(RemoteError, match="could not be started here in 1 s"),
        dask_crew("local", 1),
    ):
        pass


def test_no_scheduler_is_an_error(monkeypatch):
    monkeypatch.setattr("marin_profile.base.dask_crew.SECONDS_TO_CONNECT", 1)
    with pytest.raises(RemoteError, match="No Dask worker"), dask_crew("tcp://127.0.0.1:9", 1):
        pass
