"""`finish`: records of every state beside small captures, as a training would have left them."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders_capture import context, leave_capture
from marin_profile import load_summary
from marin_profile.profiling.job import Gather, Job, Publish
from marin_profile.profiling.record import (
    CaptureRecord,
    Logged,
    Owner,
    State,
    failed,
    moved,
    noted,
    read_record,
    write_record,
)
from marin_profile.profiling.staging import STAGING_FOLDER

GONE = Owner("this host does not exist", 1, 1)
LATER = "2026_01_02_03_05_05"


def leave(
    run: Path,
    state: str,
    *,
    job: bool = True,
    why: str | None = None,
    stamp: str = "2026_01_02_03_04_05",
    publish: Publish | None = None,
    **facts,
) -> Path:
    """A capture and its record, as they lay when its process ended."""
    folder = leave_capture(run / "profiler", stamp=stamp)
    record = CaptureRecord(run_id="r", start_step=5, stop_step=8, owner=GONE, folder=str(folder))
    for one in ("tracing", "settling", "ingesting", "shared", "published"):
        if record.state == state:
            break
        record = moved(record, State(one))
    if job:
        known = {"run_id": "r", "hardware_type": "TPU v6 lite", "git_sha": None} | facts
        record = noted(record, job=Job(folder, folder, run, run=known, publish=publish))
    write_record(record if why is None else failed(record, why))
    return folder


@pytest.mark.parametrize("state", ["tracing", "settling", "ingesting", "shared"])
@pytest.mark.parametrize("below", ["", "run", "run/profiler", "capture"])
def test_what_was_left_is_finished_once(call, tmp_path, state, below):
    folder = leave(tmp_path / "run", state)
    named = folder if below == "capture" else tmp_path / below
    first = call("finish", named)
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == f"{folder}: steps 5 to 7: summary and report written\n"
    for place in (folder, tmp_path / "run"):
        summary = load_summary(str(place / "profile_summary.json"))
        assert summary.run_metadata.hardware_type == "TPU v6 lite"
        assert summary.run_metadata.git_sha is None  # not that of the folder we are in
    assert read_record(folder).state == "published"
    written = (folder / "profile_summary.json").read_bytes()
    again = call("finish", named)
    assert (again.exit_code, again.stdout) == (0, "nothing to finish: 1 capture done or lost\n")
    assert (folder / "profile_summary.json").read_bytes() == written
    assert not list(tmp_path.rglob(".*"))


def test_what_failed_too_often_is_tried_again(call, tmp_path):
    folder = leave(tmp_path, "ingesting", why="killed by SIGKILL", job=False)
    assert call("finish", tmp_path).exit_code == 0
    assert read_record(folder).state == "published"
    assert (folder / "profile_summary.json").exists()


def test_a_folder_that_was_moved_is_finished_where_it_is(call, tmp_path):
    leave(tmp_path / "before", "ingesting")
    (tmp_path / "else" / "where").mkdir(parents=True)
    shutil.move(tmp_path / "before", tmp_path / "else" / "where" / "run")
    assert call("finish", tmp_path / "else").exit_code == 0
    assert (tmp_path / "else" / "where" / "run" / "profile_summary.json").exists()
    assert not (tmp_path / "before").exists()


def test_a_capture_that_lies_alone_is_finished_into_its_folder(call, tmp_path):
    folder = leave(tmp_path / "run", "ingesting")
    shutil.move(folder, tmp_path / "alone")
    shutil.rmtree(tmp_path / "run")
    result = call("finish", tmp_path / "alone")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (tmp_path / "alone" / "profile_summary.json").exists()
    assert not (tmp_path / "run").exists()


def test_an_older_capture_does_not_replace_the_newest_summary(call, tmp_path):
    leave(tmp_path, "settling", why=None)
    newer = leave(tmp_path, "settling", stamp=LATER)
    assert call("finish", newer).exit_code == 0
    newest = (tmp_path / "profile_summary.json").read_bytes()
    assert call("finish", tmp_path).exit_code == 0
    assert (tmp_path / "profile_summary.json").read_bytes() == newest


def test_what_broke_stays_undone_and_is_named(call, tmp_path):
    broken = leave(tmp_path, "settling")
    (broken / "h.xplane.pb").write_bytes(b"\x0a\xff")
    sound = leave(tmp_path, "settling", stamp=LATER)
    result = call("finish", tmp_path)
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith(f"{broken}: steps 5 to 7: profile not summarised: ")
    assert second == f"{sound}: steps 5 to 7: summary and report written"
    record = read_record(broken)
    assert (record.state, record.failed_at) == ("failed", "ingesting")
    assert call("finish", tmp_path).exit_code == 1


def test_a_lost_capture_is_said_and_recorded(call, tmp_path):
    folder = leave(tmp_path, "tracing")
    (folder / "h.xplane.pb").unlink()
    said = f"{folder}: steps 5 to 7: profile lost: the process ended meanwhile\n"
    assert call("finish", tmp_path).stdout == said
    assert read_record(folder).state == "failed"
    again = call("finish", tmp_path)
    assert (again.exit_code, again.stdout) == (0, "nothing to finish: 1 capture done or lost\n")


def test_what_a_living_process_works_on_is_named_and_left_alone(call, tmp_path):
    folder = leave(tmp_path, "ingesting")
    code = "print('here', flush=True); import time; time.sleep(3600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        started = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19])
        owner = Owner(os.uname().nodename, other.pid, started)
        write_record(noted(read_record(folder), owner=owner))
        result = call("finish", tmp_path)
        other.kill()
    assert result.exit_code == 1
    assert result.stdout.endswith(f"left alone: process {other.pid} works on it\n")
    assert not (folder / "profile_summary.json").exists()
    assert call("finish", tmp_path).exit_code == 0


def test_a_capture_without_a_record_is_not_touched(call, tmp_path):
    folder = leave_capture(tmp_path)
    before = sorted(folder.iterdir())
    result = call("finish", tmp_path)
    assert (result.exit_code, result.stdout) == (3, "")
    note, error = result.stderr.splitlines()
    assert note.endswith(f"stays: marin-profile summarize --profile-dir {folder}")
    assert error == f"error: No record of a capture lies below {tmp_path}."
    assert sorted(folder.iterdir()) == before


def test_a_folder_that_does_not_exist_is_exit_3(call, tmp_path):
    assert call("finish", tmp_path / "none").exit_code == 3


def test_the_captures_of_several_processes_are_merged_after_each_is_summarised(call, tmp_path):
    profiler = tmp_path / "run" / "profiler"
    for index in (0, 1):
        own = profiler / f"process_{index}"
        folder = leave_capture(own, host=f"h{index}", note=context(index, 2))
        gather = Gather(str(profiler), str(folder), [0, 1], 3600.0) if index == 0 else None
        copy_dir = tmp_path / "run" if index == 0 else None
        job = Job(folder, folder, copy_dir, leave_part=True, gather=gather)
        record = CaptureRecord(
            run_id="r", process_index=index, start_step=5, stop_step=8, owner=GONE
        )
        record = moved(moved(record, State.TRACING), State.SETTLING, folder=str(folder), job=job)
        write_record(record)
    (tmp_path / "moved").mkdir()
    shutil.move(tmp_path / "run", tmp_path / "moved" / "run")
    result = call("finish", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert ["process_1" in line for line in result.stdout.splitlines()] == [True, False]
    summary = load_summary(str(tmp_path / "moved" / "run" / "profile_summary.json"))
    assert [host.host for host in summary.hosts] == ["h0", "h1"]


def test_the_copy_of_a_capture_in_a_shared_folder_is_nobodys_to_finish(call, tmp_path):
    folder = leave(tmp_path / "run", "ingesting")
    copy = tmp_path / "shared" / "run" / "profiler" / "plugins" / "profile" / folder.name
    record = read_record(folder)
    write_record(noted(record, job=replace(record.job, shared=str(copy))))
    assert call("finish", tmp_path / "run").exit_code == 0
    result = call("finish", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "nothing to finish: 1 capture done or lost\n")
    assert (copy / "profile_summary.json").exists()


def test_what_cannot_be_logged_says_why_and_stays_shared(call, tmp_path):
    folder = leave(tmp_path, "ingesting", publish=Publish("r", "auto", True))
    (folder / STAGING_FOLDER).mkdir()
    for _ in range(2):
        result = call("finish", tmp_path)
        assert result.exit_code == 1
        assert result.stdout == (
            f"{folder}: steps 5 to 7: summary and report written, but not logged: "
            "the run's path on W&B is not known; the run's next start logs it\n"
        )
        assert read_record(folder).state == "shared"
        assert not (folder / STAGING_FOLDER).exists()


def test_what_another_tracker_lacks_is_left_to_the_next_start(call, tmp_path):
    folder = leave(tmp_path, "shared", publish=Publish("r", "auto", True), run_path="e/p/r")
    rows = (Logged("wandb", ("a:v0",), figures=3), Logged("board", error="OSError: full"))
    record = read_record(folder)
    write_record(failed(record, "board: OSError: full", logged=rows))
    result = call("finish", tmp_path)
    assert result.exit_code == 1
    assert result.stdout == (
        f"{folder}: steps 5 to 7: summary and report written, but not logged by an earlier start: "
        "board: OSError: full; the run's next start logs it\n"
    )
    assert (read_record(folder).state, read_record(folder).logged) == ("shared", rows)


def test_without_a_login_it_says_so_in_time(tmp_path):
    pytest.importorskip("wandb")
    folder = leave(tmp_path, "shared", publish=Publish("r", "auto", True), run_path="e/p/r")
    private = {name: str(tmp_path / "private") for name in ("WANDB_DIR", "WANDB_CONFIG_DIR")}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")} | private
    environment |= {"NETRC": str(tmp_path / "netrc"), "HOME": str(tmp_path)}
    (tmp_path / "private").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "marin_profile", "finish", str(folder)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1, done.stderr
    assert "but not logged: W&B needs a login: run 'wandb login'" in done.stdout
    assert read_record(folder).state == "shared"


def test_the_summary_goes_to_wandb_in_a_run_of_its_own(tmp_path):
    pytest.importorskip("wandb")
    from wandb_server import WandbServer

    folder = leave(tmp_path, "shared", publish=Publish("r", "auto", True), run_path="loop/p/r")
    with WandbServer() as server:
        environment = os.environ | server.environment(tmp_path / "private")
        done = subprocess.run(
            [sys.executable, "-m", "marin_profile", "finish", str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", logged to wandb: loop/p/profile-summary-r:v0" in done.stdout
    record = json.loads((folder / "capture_record.json").read_text())
    assert record["state"] == "published"
    assert record["logged"][0]["artifacts"] == ["loop/p/profile-summary-r:v0"]


def test_it_needs_no_jax(tmp_path):
    leave(tmp_path, "settling")
    code = (
        "import sys\nfrom marin_profile.cli import run\n"
        "assert run(['finish', sys.argv[1]]) == 0\n"
        "print([name for name in ('jax', 'levanter', 'wandb') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
