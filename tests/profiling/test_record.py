"""The states of a capture, and its record on disk."""

import itertools
import logging
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from marin_profile.profiling.job import Job
from marin_profile.profiling.leftovers import Leftovers, sweep_folders
from marin_profile.profiling.record import (
    CaptureRecord,
    ImpossibleTransition,
    Logged,
    Owner,
    State,
    failed,
    moved,
    noted,
    read_record,
    retried,
    write_record,
)
from marin_profile.profiling.sentences import lacking_text, line_of, unfinished_line

ORDER = ("planned", "tracing", "settling", "ingesting", "shared", "published")
GONE = Owner("this host does not exist", 1, 1)


def at(state: str, **facts) -> CaptureRecord:
    """A record that went its way to that state."""
    record = CaptureRecord(run_id="r", start_step=5, stop_step=8, planned_for=(5,), owner=GONE)
    for one in ORDER[1 : ORDER.index(state) + 1]:
        record = moved(record, State(one))
    return noted(record, **facts)


def test_the_table_of_transitions_is_the_only_way():
    for before, after in itertools.product(ORDER, ORDER):
        if ORDER.index(after) == ORDER.index(before) + 1:
            assert moved(at(before), State(after)).state == after
        else:
            with pytest.raises(ImpossibleTransition):
                moved(at(before), State(after))


@pytest.mark.parametrize("state", ORDER[:-1])
def test_every_state_but_the_last_may_fail_once(state):
    record = failed(at(state), "no luck")
    assert (record.state, record.failed_at, record.why) == ("failed", state, "no luck")
    with pytest.raises(ImpossibleTransition):
        failed(record, "again")
    with pytest.raises(ImpossibleTransition):
        failed(at("published"), "late")


@pytest.mark.parametrize("state", ORDER)
@pytest.mark.parametrize("fails", [False, True])
def test_what_has_files_and_is_not_done_is_taken_up_at_the_summary(state, fails):
    if fails and state == "published":
        return
    record = failed(at(state), "no luck") if fails else at(state)
    if state in ("settling", "ingesting", "shared"):
        taken_up = retried(record, Owner.this_process())
        assert (taken_up.state, taken_up.failed_at, taken_up.why) == ("ingesting", None, None)
        assert taken_up.attempts == 2
        assert taken_up.owner == Owner.this_process()
    else:
        with pytest.raises(ImpossibleTransition):
            retried(record, Owner.this_process())


def test_a_note_changes_no_state():
    with pytest.raises(ImpossibleTransition):
        noted(at("tracing"), state=State.PUBLISHED)


def test_a_record_survives_its_way_over_the_disk(tmp_path):
    folder = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    record = at(
        "shared",
        folder=str(folder),
        job=Job(folder, folder),
        logged=(Logged("wandb", ("a",), "n"),),
        problems=("x",),
    )
    write_record(record)
    assert read_record(folder) == record
    (folder / "capture_record.json").write_text("{")
    assert read_record(folder) is None
    assert read_record(tmp_path) is None


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("tracing", "profiling steps 5 to 7"),
        ("settling", "profile of steps 5 to 7 written to /f"),
        ("shared", "profile summary and report written to /f"),
    ],
)
def test_the_line_of_a_state(state, text):
    assert line_of(at(state, folder="/f"))[1] == text


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("planned", "steps 5 to 7: not profiled: why"),
        ("tracing", "steps 5 to 7: profile lost: why"),
        (
            "settling",
            "steps 5 to 7: profile not summarised: why; to finish it: marin-profile finish /f",
        ),
        (
            "ingesting",
            "steps 5 to 7: profile not summarised: why; to finish it: marin-profile finish /f",
        ),
        (
            "shared",
            "steps 5 to 7: profile summarised, but not logged: why; the next start of this run "
            "logs it, or to W&B: marin-profile finish /f",
        ),
    ],
)
def test_the_line_of_a_failure(state, text):
    assert line_of(failed(at(state, folder="/f"), "why"))[1] == text


def test_the_line_of_a_tracker_that_lacks_it_says_which_one_holds_it():
    rows = (
        Logged("wandb", ("a:v0",), "uploaded", error="TimeoutError: late"),
        Logged("json", figures=3),
    )
    record = failed(at("shared", folder="/f"), lacking_text(rows), logged=rows)
    assert line_of(record) == (
        logging.WARNING,
        "steps 5 to 7: profile summarised and logged to wandb: a:v0 (uploaded); json: 3 figures, "
        "but the rest is not logged: wandb: TimeoutError: late; the next start of this run logs "
        "it, or to W&B: marin-profile finish /f",
    )
    assert retried(record, Owner.this_process()).logged == rows


def test_the_line_of_what_is_left_says_how_far_it_came():
    assert "was not summarised yet" in unfinished_line(at("ingesting", folder="/f"))[1]
    assert "summarised, but not logged yet" in unfinished_line(at("shared", folder="/f"))[1]


# --- what earlier processes left -----------------------------------------------------------------


def left(tmp_path, state: str, *, files: bool = True, **facts) -> CaptureRecord:
    folder = tmp_path / "plugins" / "profile" / f"2026_01_01_00_00_0{len(state)}"
    folder.mkdir(parents=True)
    if files:
        (folder / "host.xplane.pb").write_bytes(b"x")
    record = at(state, folder=str(folder), **facts)
    write_record(record)
    return record


@pytest.mark.parametrize("state", ["settling", "ingesting", "shared"])
def test_what_an_earlier_process_left_is_to_finish(tmp_path, state):
    left(tmp_path, state)
    found = Leftovers.below(tmp_path)
    (one,) = found.to_finish(Owner.this_process())
    assert one.state == "ingesting"
    assert found.taken == {5}


def test_a_capture_that_ended_with_its_process_is_lost_and_its_window_open(tmp_path):
    left(tmp_path, "tracing", files=False)
    found = Leftovers.below(tmp_path)
    assert found.to_finish(Owner.this_process()) == []
    assert found.taken == set()
    (lost,) = found.lost
    assert line_of(lost)[1] == "steps 5 to 7: profile lost: the process ended meanwhile"


def test_a_capture_whose_files_were_written_before_its_record_is_kept(tmp_path):
    left(tmp_path, "tracing")
    found = Leftovers.below(tmp_path)
    assert [one.state for one in found.to_finish(Owner.this_process())] == ["ingesting"]
    assert found.taken == set()  # they may be cut: the window is taken again
    assert found.lost == []


@pytest.mark.parametrize("state", ["settling", "ingesting", "shared"])
def test_a_capture_whose_files_are_gone_is_over_and_its_window_taken(tmp_path, state):
    left(tmp_path, state, files=False)
    found = Leftovers.below(tmp_path)
    assert found.to_finish(Owner.this_process(), most_attempts=None) == []
    assert found.taken == {5}
    assert found.lost == []


def test_what_killed_writers_left_is_swept_beside_captures_that_are_done_too(tmp_path):
    record = left(tmp_path, "published")
    partial = ".marin-profile-0123456789abcdef.tmp"
    (Path(record.folder) / partial).touch()
    (tmp_path / partial).touch()
    sweep_folders([tmp_path, tmp_path / "not there"], tmp_path)
    assert list(tmp_path.rglob(".marin-profile-*")) == []
    assert read_record(Path(record.folder)) == record


def test_what_is_done_is_left_alone_and_its_window_taken(tmp_path):
    left(tmp_path, "published")
    found = Leftovers.below(tmp_path)
    assert found.to_finish(Owner.this_process()) == []
    assert found.taken == {5}


def test_what_a_living_process_works_on_is_left_alone(tmp_path):
    code = "import time; print('here', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline()
        started = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19])
        owner = Owner(os.uname().nodename, other.pid, started)
        left(tmp_path, "ingesting", owner=owner)
        assert Leftovers.below(tmp_path).to_finish(Owner.this_process()) == []
        other.kill()
    assert len(Leftovers.below(tmp_path).to_finish(Owner.this_process())) == 1


def test_what_failed_too_often_is_left_to_finish_alone(tmp_path):
    record = left(tmp_path, "ingesting")
    write_record(msgspec.structs.replace(record, attempts=3))
    found = Leftovers.below(tmp_path)
    assert found.to_finish(Owner.this_process()) == []
    assert len(found.to_finish(Owner.this_process(), most_attempts=None)) == 1
