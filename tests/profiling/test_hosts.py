"""The captures of several processes, brought together by the first one's worker: real processes."""

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builders_capture import context, leave_capture
from marin_profile import load_summary, summarize
from marin_profile.capture.filenames import PART_FILE, REPORT_FILE, SUMMARY_FILE
from marin_profile.profiling.hosts import SECONDS_FOR_A_SIGN
from marin_profile.profiling.ingestion import Ingestions, Limits, Outcome
from marin_profile.profiling.job import Gather, Job, Publish
from marin_profile.profiling.record import CaptureRecord, Owner, State, write_record
from marin_profile.profiling.signs import Outlook, outlook, shown
from marin_profile.profiling.staging import STAGED_FILE, STAGING_FOLDER
from patience import PATIENCE, wait_until

SECONDS = 4.0


def job_of(
    folder: Path, index: int, root: Path, *, count: int = 2, seconds: float = SECONDS
) -> Job:
    gather = Gather(str(root), str(folder), list(range(count)), seconds) if index == 0 else None
    return Job(folder, folder, leave_part=True, gather=gather)


def start(job: Job) -> Ingestions:
    work = Ingestions("subprocess", Limits(PATIENCE, 32))
    work.add(job)
    assert work.advance() == []
    return work


def ended(work: Ingestions) -> str | None:
    found: list[Outcome] = []
    wait_until(lambda: found.extend(work.advance()) or found)
    (outcome,) = found
    return outcome.reason or "; ".join(outcome.problems) or None


def two_processes(root: Path, *, hosts=("a", "b"), stamps=("03_04_05", "03_04_05"), apart=0.0):
    return [
        leave_capture(
            root / f"process_{index}",
            host=hosts[index],
            stamp=f"2026_01_02_{stamps[index]}",
            step_us=80 - 10 * index,
            note=context(index, 2, after_seconds=apart * index),
        )
        for index in (0, 1)
    ]


def summary_in(folder: Path):
    return load_summary(str(folder / SUMMARY_FILE))


@pytest.mark.parametrize(
    ("hosts", "stamps", "apart"),
    [
        (("a", "b"), ("03_04_05", "03_04_05"), 0.0),
        (("same", "same"), ("03_04_05", "03_04_05"), 0.0),
        (("a", "b"), ("03_04_05", "03_04_09"), 0.5),
        (("same", "same"), ("03_04_05", "03_04_09"), 0.5),
    ],
)
def test_the_first_process_merges_what_the_command_line_would(tmp_path, hosts, stamps, apart):
    first, second = two_processes(tmp_path, hosts=hosts, stamps=stamps, apart=apart)
    works = [start(job_of(second, 1, tmp_path)), start(job_of(first, 0, tmp_path))]
    assert [ended(work) for work in works] == [None, None]
    merged = summary_in(first)
    assert merged.to_json() == summarize(tmp_path).to_json()
    assert len(merged.hosts) == 2
    assert len(merged.device_ledger) == 4
    # By hand: 80 us and 70 us of compute in each of four steps 100 us apart, less the last idle.
    captured = [row for row in merged.device_ledger if row.window == "capture"]
    assert sorted(row.compute_duration for row in captured) == [280.0, 320.0]
    assert merged.capture.profiling.missing_processes == []
    assert len(summary_in(second).hosts) == 1


def test_a_slow_process_is_waited_for(tmp_path):
    first, second = two_processes(tmp_path)
    later = tmp_path / "later"
    shutil.move(second, later)
    work = start(job_of(first, 0, tmp_path, seconds=PATIENCE))
    wait_until(lambda: (first / SUMMARY_FILE).exists())
    assert summary_in(first).capture.profiling.missing_processes == [1]
    shutil.move(later, second)
    assert ended(start(job_of(second, 1, tmp_path))) is None
    assert ended(work) is None
    assert len(summary_in(first).hosts) == 2


def test_a_process_that_died_after_its_capture_is_read_from_it(tmp_path):
    first, second = two_processes(tmp_path)
    assert ended(start(job_of(first, 0, tmp_path, seconds=1))) is None
    assert not (second / PART_FILE).exists()
    assert len(summary_in(first).hosts) == 2


def test_a_process_that_died_in_its_capture_is_named(tmp_path):
    first, second = two_processes(tmp_path)
    shutil.rmtree(second)
    assert ended(start(job_of(first, 0, tmp_path, seconds=1))) is None
    merged = summary_in(first)
    assert merged.capture.profiling.missing_processes == [1]
    (said,) = [w for w in merged.trace_overview.quality_warnings if "processes" in w]
    assert said == "Of 2 processes these left no profile: 1; the figures cover the others."


def test_processes_with_folders_of_their_own_are_not_waited_for(tmp_path):
    first, _ = two_processes(tmp_path)
    shutil.rmtree(tmp_path / "process_1")
    started = time.monotonic()
    assert ended(start(job_of(first, 0, tmp_path, seconds=10 * PATIENCE))) is None
    assert time.monotonic() - started < PATIENCE
    assert summary_in(first).capture.profiling.missing_processes == [1]


def test_a_part_that_cannot_be_read_gives_way_to_the_capture(tmp_path):
    first, second = two_processes(tmp_path)
    (second / PART_FILE).write_bytes(b"\x81\xa1a")
    assert ended(start(job_of(first, 0, tmp_path, seconds=1))) is None
    assert summary_in(first).to_json() == summarize(tmp_path).to_json()


def test_another_capture_of_the_other_process_is_not_taken_in(tmp_path):
    first, _ = two_processes(tmp_path)
    later = leave_capture(
        tmp_path / "process_1",
        host="b",
        stamp="2026_01_02_03_09_00",
        step_us=10,
        note=context(1, 2, after_seconds=300),
    )
    assert ended(start(job_of(later, 1, tmp_path))) is None
    assert ended(start(job_of(first, 0, tmp_path, seconds=1))) is None
    captured = [row for row in summary_in(first).device_ledger if row.window == "capture"]
    assert sorted(row.compute_duration for row in captured) == [280.0, 320.0]


def test_captures_meet_behind_a_url(tmp_path):
    """Local folders that the processes do not share, and a URL that both reach."""
    own = [tmp_path / f"machine_{index}" for index in (0, 1)]
    folders = [
        leave_capture(own[i] / f"process_{i}", host=f"h{i}", note=context(i, 2)) for i in (0, 1)
    ]
    root = f"local://{tmp_path}/bucket/run/profiler"
    sessions = [f"{root}/process_{i}/plugins/profile/{folders[i].name}" for i in (0, 1)]
    gather = Gather(root, sessions[0], [0, 1], 30)
    works = [
        start(Job(folders[0], folders[0], leave_part=True, shared=sessions[0], gather=gather)),
        start(Job(folders[1], folders[1], leave_part=True, shared=sessions[1])),
    ]
    assert [ended(work) for work in works] == [None, None]
    merged = summary_in(folders[0])
    assert [host.host for host in merged.hosts] == ["h0", "h1"]
    assert merged.to_json() == summarize(root).to_json()


def test_a_url_that_cannot_be_reached_is_logged_and_the_own_summary_is_there(tmp_path):
    folder = leave_capture(tmp_path / "process_0", note=context(0, 2))
    shared = "nosuchprotocol://bucket/run"
    gather = Gather(shared, f"{shared}/x", [0, 1], 1)
    problem = ended(start(Job(folder, folder, leave_part=True, shared=shared, gather=gather)))
    assert problem is not None
    assert problem.startswith("not copied to nosuchprotocol://bucket/run: ")
    assert len(summary_in(folder).hosts) == 1


def test_what_cannot_be_copied_is_staged_for_the_tracker_all_the_same(tmp_path):
    folder = leave_capture(tmp_path / "process_0", note=context(0, 2))
    shared = "nosuchprotocol://bucket/run"
    publish = Publish("r", "reference", False)
    work = start(Job(folder, folder, shared=f"{shared}/x", copy_url=shared, publish=publish))
    assert (ended(work) or "").startswith("not copied to nosuchprotocol://bucket/run/x: ")
    staged = json.loads((folder / STAGING_FOLDER / STAGED_FILE).read_text())
    # It refers to what is there, not to the copy that was not made.
    assert staged["reference"] == f"file://{folder}"
    assert staged["output_path"] == str(folder)
    assert [path.name for path in folder.glob(".*")] == [STAGING_FOLDER]


def test_behind_a_url_are_the_outputs_and_what_w_and_b_refers_to(tmp_path):
    folder = leave_capture(tmp_path / "machine", note=context(0, 1))
    run = f"local://{tmp_path}/bucket/run"
    session = f"{run}/profiler/plugins/profile/{folder.name}"
    publish = Publish("r", "reference", False)
    assert ended(start(Job(folder, folder, shared=session, copy_url=run, publish=publish))) is None
    own = (folder / SUMMARY_FILE).read_bytes()
    copied = tmp_path / "bucket" / "run"
    for place in (copied, copied / "profiler" / "plugins" / "profile" / folder.name):
        assert (place / SUMMARY_FILE).read_bytes() == own
        assert (place / REPORT_FILE).exists()
    staged = json.loads((folder / STAGING_FOLDER / STAGED_FILE).read_text())
    assert staged["reference"] == staged["capture_path"] == staged["output_path"] == session
    assert summarize(session).to_json() == summarize(folder).to_json()


def test_a_part_names_no_code(tmp_path):
    """A part is data: what reads it runs nothing that is in it."""
    folder = leave_capture(tmp_path)
    assert ended(start(Job(folder, folder, leave_part=True))) is None
    code = (
        "import sys, msgspec\n"
        "found = msgspec.msgpack.decode(open(sys.argv[1], 'rb').read())\n"
        "print(sorted(found))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(folder / PART_FILE)], capture_output=True, text=True
    )
    assert shown.stdout == f"{sorted(['tool_version', 'warmup_steps', 'host_read'])}\n"


def test_the_summary_quotes_the_context(tmp_path):
    folder = leave_capture(tmp_path)
    assert ended(start(Job(folder, folder, run={"git_sha": "abc", "config_hash": None}))) is None
    found = json.loads((folder / SUMMARY_FILE).read_text())
    assert found["run_metadata"]["git_sha"] == "abc"
    profiling = found["capture"]["profiling"]
    assert profiling["representative"] is True
    assert profiling["window_to_outside"] == 1.02
    assert profiling["outside_step_median"] == 100.0
    assert profiling["stop_trace_duration"] == 500_000.0


# --- who is not waited for ------------------------------------------------------------------------

NOBODY = Owner(socket.gethostname(), 2**22 + 1, 1)  # Linux gives no process that number


def record(folder: Path, state: State, *, start_step: int = 3, **facts) -> None:
    """Beside the capture in `folder`, in the process folder that it lies in."""
    index = int(folder.parts[-4].rpartition("_")[2])
    facts = {"owner": Owner.this_process()} | facts
    write_record(
        CaptureRecord(
            run_id="run",
            process_index=index,
            start_step=start_step,
            stop_step=start_step + 3,
            folder=str(folder),
            state=state,
            **facts,
        )
    )


def lost(folder: Path) -> None:
    record(folder, State.FAILED, failed_at=State.TRACING, why="broken")


def died_in_it(folder: Path) -> None:
    record(folder, State.TRACING, owner=NOBODY)


def died_before(folder: Path) -> None:
    """Its newest record is of a window before."""
    record(folder.with_name("2026_01_02_03_00_00"), State.PUBLISHED, start_step=1, owner=NOBODY)


def left_it_out(folder: Path) -> None:
    record(folder.with_name("2026_01_02_03_09_00"), State.TRACING, start_step=30)


@pytest.mark.parametrize("leave", [lost, died_in_it, left_it_out])
def test_a_process_whose_records_tell_that_nothing_comes_is_not_waited_for(tmp_path, leave):
    first, second = two_processes(tmp_path)
    shutil.rmtree(second)
    record(first, State.INGESTING)
    leave(second)
    started = time.monotonic()
    assert ended(start(job_of(first, 0, tmp_path, seconds=10 * PATIENCE))) is None
    assert time.monotonic() - started < PATIENCE
    assert summary_in(first).capture.profiling.missing_processes == [1]


def test_a_capture_that_its_process_could_not_summarise_is_read_at_once(tmp_path):
    first, second = two_processes(tmp_path)
    record(first, State.INGESTING)
    record(second, State.FAILED, failed_at=State.INGESTING, why="exit 1")
    started = time.monotonic()
    assert ended(start(job_of(first, 0, tmp_path, seconds=10 * PATIENCE))) is None
    assert time.monotonic() - started < PATIENCE
    assert len(summary_in(first).hosts) == 2


@pytest.mark.parametrize(("how", "leave"), [("subprocess", died_before), ("thread", None)])
def test_once_training_waits_a_process_without_a_sign_is_waited_for_some_seconds(
    tmp_path, how, leave
):
    first, second = two_processes(tmp_path)
    shutil.rmtree(second)
    record(first, State.INGESTING)
    if leave is not None:
        leave(second)
    started = time.monotonic()
    work = Ingestions(how, Limits(PATIENCE, 32))
    work.add(job_of(first, 0, tmp_path, seconds=10 * PATIENCE))
    assert work.advance() == []
    wait_until(lambda: (first / SUMMARY_FILE).exists())
    work.hurry()
    assert ended(work) is None
    assert SECONDS_FOR_A_SIGN < time.monotonic() - started < PATIENCE
    assert summary_in(first).capture.profiling.missing_processes == [1]


@pytest.mark.parametrize("protocol", ["", "local://"])
def test_what_the_records_of_a_process_tell(tmp_path, protocol):
    first, second = two_processes(tmp_path)
    root = f"{protocol}{tmp_path}"
    own = CaptureRecord(run_id="run", start_step=3, stop_step=6)
    assert outlook(root, 1, own, first.name) is Outlook.UNKNOWN
    for state in (State.TRACING, State.SETTLING, State.INGESTING, State.SHARED, State.PUBLISHED):
        record(second, state)
        assert outlook(root, 1, own, first.name) is Outlook.COMING
    record(second, State.INGESTING, owner=Owner("another machine", 1, 1))
    assert outlook(root, 1, own, first.name) is Outlook.COMING
    record(second, State.INGESTING, owner=NOBODY)
    assert outlook(root, 1, own, first.name) is Outlook.NEVER
    # Of an earlier start, which failed at the same steps: it says nothing of this one.
    (second / "capture_record.json").unlink()
    earlier = second.with_name("2026_01_02_03_00_00")
    record(earlier, State.FAILED, failed_at=State.TRACING, why="the process ended meanwhile")
    assert outlook(root, 1, own, first.name) is Outlook.UNKNOWN
    assert outlook(root, 1, own, "no stamp") is Outlook.UNKNOWN


def test_behind_a_url_the_record_goes_before_the_capture_and_not_with_a_broken_one(tmp_path):
    folder = leave_capture(tmp_path / "process_1")
    record(folder, State.INGESTING)
    url = f"local://{tmp_path}/bucket/process_1/plugins/profile/{folder.name}"
    there = tmp_path / "bucket/process_1/plugins/profile" / folder.name / "capture_record.json"
    with shown(folder, url):
        assert there.read_bytes() == (folder / "capture_record.json").read_bytes()
    assert there.exists()
    (folder / "h.xplane.pb").write_bytes(b"broken")
    assert ended(start(Job(folder, folder, leave_part=True, shared=url))) is not None
    assert not there.exists()
