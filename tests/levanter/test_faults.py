"""Every fault at every state of a capture, under the real Trainer: training ends as it would
without us, and the next start of the run, from a checkpoint, finishes what is left."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mounts import mounted
from needs import needs_levanter
from patience import PATIENCE, running_with, wait_until

TRAINING = Path(__file__).with_name("interrupted_training.py")
# What makes the worker wait for ever, so that a fault can meet it.
SITE = """
import os, sys, time
if os.environ.get("INGEST_FAULT") == "wait" and "marin_profile.profiling.worker" in sys.orig_argv:
    import marin_profile.pipeline as pipeline
    pipeline.summarize_capture = lambda *_, **__: time.sleep(3600)
"""
CORE = (
    "raise-tracing",
    "kill-tracing",
    "term-settling",
    "kill-ingesting",
    "worker-ingesting",
    "tracker-shared",
)
REST = (
    *(f"{fault}-planned" for fault in ("raise", "term", "kill")),
    "term-tracing",
    "profiler-tracing",
    "raise-settling",
    "kill-settling",
    "raise-ingesting",
    "term-ingesting",
    "raise-shared",
    "term-shared",
    "kill-shared",
)
STATES = ("tracing", "settling", "ingesting", "shared")
FINISHED = tuple(f"kill-{state}" for state in STATES)
DISK = ("disk-tracing", "disk-settling", "disk-ingesting")
STATUS = {"raise": 1, "term": -15, "kill": -9}

pytestmark = needs_levanter


def run(folder: Path, *names: str, disk: bool = False, script: Path = TRAINING) -> None:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    ours = (site, TRAINING.parents[1], TRAINING.parent)
    path = os.pathsep.join((*map(str, ours), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, str(script), str(folder), *names]
    if disk:
        (folder / "full").mkdir()
        os.environ["PYTHONPATH"] = path
        child = mounted(folder / "full", "size=3m", command)
    else:
        environment = os.environ | {"PYTHONPATH": path}
        child = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=3 * PATIENCE
        )
    assert child.returncode == 0, child.stderr[-3000:]
    wait_until(lambda: not running_with("marin_profile.profiling.worker", str(folder)))


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    run(folder, *CORE)
    return folder


@pytest.fixture(scope="module")
def rest(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("more-faults")
    names = (*REST, "kill-tracing", "kill-ingesting", "profiler-planned", "again-tracing")
    run(folder, "--finish", *names)
    return folder


def holds(out: Path, name: str) -> None:
    """What is promised whatever happens."""
    fault = name.partition("-")[0]
    first, second = json.loads((out / "statuses.json").read_text())[name]
    assert first == STATUS.get(fault, 0), (out / f"{name}.first.out").read_text()[-3000:]
    assert second == 0, (out / f"{name}.second.out").read_text()[-3000:]
    folder = out / name
    *lost, done = records_in(folder)
    assert done["state"] == "published"
    assert [one["failed_at"] for one in lost] in ([], ["tracing"])
    assert (Path(done["folder"]) / "profile_summary.json").exists()
    assert list(folder.rglob(".ingest-*")) == []
    assert list(folder.rglob(".publish*")) == []
    assert list(folder.rglob(".marin-profile-*")) == []
    assert [row["error"] for row in done["logged"] if row["error"]] == []
    logged = (folder / "logged").read_text().splitlines()
    assert {"profile-summary-run", "run-run-profiler"} <= {*logged}
    steps = json.loads((Path(done["folder"]) / "profile_summary.json").read_text())["step_time"]
    assert [step["step_num"] for step in steps["steps"]] == [
        *range(done["start_step"], done["stop_step"])
    ]


def records_in(run: Path) -> list[dict]:
    found = run.glob("run/profiler/plugins/profile/*/capture_record.json")
    return [json.loads(path.read_text()) for path in sorted(found)]


def lines(out: Path, name: str, start: str) -> list[str]:
    log = json.loads((out / f"{name}.{start}.json").read_text())["log"]
    return [line for line in log if line.startswith("WARNING")]


@pytest.mark.parametrize("name", CORE)
def test_the_next_start_finishes_what_a_fault_left(core, name):
    holds(core, name)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("name", REST)
def test_the_next_start_finishes_what_any_fault_left(rest, name):
    holds(rest, name)


def test_each_fault_is_said_as_what_it_is(core):
    (said,) = lines(core, "raise-tracing", "first")
    assert "training ended while the profile of steps 5 to 6 was not summarised yet" in said
    assert lines(core, "kill-tracing", "first") == []
    (said,) = lines(core, "kill-tracing", "second")
    assert said == "WARNING steps 5 to 7: profile lost: the process ended meanwhile"
    (said,) = lines(core, "worker-ingesting", "first")
    assert said.startswith("WARNING steps 5 to 7: profile not summarised: killed by SIGKILL; ")
    assert any("ConnectionError: gone" in line for line in lines(core, "tracker-shared", "first"))


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("name", FINISHED)
def test_a_command_finishes_what_a_kill_left_or_says_what_is_lost(rest, name):
    """In a copy of the run, elsewhere; the keeping tracker is the training's alone."""
    status = json.loads((rest / "statuses.json").read_text())[f"{name}.finish"]
    (line,) = (rest / f"{name}.finish.out").read_text().splitlines()
    moved = rest / f"{name}.moved"
    (folder,) = moved.glob("run/profiler/plugins/profile/*")
    state = json.loads((folder / "capture_record.json").read_text())["state"]
    said = line.removeprefix(f"{folder}: steps 5 to 7: ")
    if name == "kill-tracing":
        assert (status, state, said) == (0, "failed", "profile lost: the process ended meanwhile")
    else:
        assert (status, state) == (1, "shared")
        assert said == (
            "summary and report written, but not logged: the run's path on W&B is not known; "
            "the run's next start logs it"
        )
        assert (folder / "profile_summary.json").exists()
        assert (moved / "run" / "profile_summary.json").exists()
    assert list(folder.rglob(".marin-profile-*")) == []


@pytest.mark.long
@pytest.mark.nightly
def test_trainings_that_raise_in_one_process_leave_no_trace_open_and_capture_again(rest):
    """The second one takes the second window; each keeps what it has up to the raise."""
    name = "again-tracing"
    first = json.loads((rest / f"{name}.first.json").read_text())
    assert first["errors"] == []
    assert json.loads((rest / "statuses.json").read_text())[name] == [0, 0]
    taken = records_in(rest / name)
    assert [(one["start_step"], one["stop_step"], one["state"]) for one in taken] == [
        (5, 7, "published"),
        (10, 12, "published"),
    ]
    assert list((rest / name).rglob(".marin-profile-*")) == []


@pytest.mark.long
@pytest.mark.nightly
def test_another_profiler_costs_its_window_alone(rest):
    (said,) = lines(rest, "profiler-planned", "first")
    assert said == "WARNING steps 5 to 7: not profiled: another profiler is running in this process"


# --- two processes -------------------------------------------------------------------------------

PAIRS = (
    *(f"kill-{process}-{state}" for state in STATES for process in (1, 0)),
    "raise-1-tracing",
    "raise-0-ingesting",
)
BARE = tuple(f"{fault}-{process}-bare" for fault in ("kill", "raise") for process in (1, 0))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("faults-of-two")
    run(folder, *BARE, *PAIRS, script=TRAINING.with_name("interrupted_processes.py"))
    return folder


def records_of(out: Path, name: str, process: int) -> list[dict]:
    found = (out / name).glob(
        f"run/profiler/process_{process}/plugins/profile/*/capture_record.json"
    )
    return [json.loads(path.read_text()) for path in sorted(found)]


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("name", PAIRS)
def test_both_processes_end_as_without_us_and_their_next_start_finishes_what_is_left(pairs, name):
    fault, process, state = name.split("-")
    statuses = json.loads((pairs / "statuses.json").read_text())
    (without_us,) = statuses[f"{fault}-{process}-bare"]
    assert statuses[name] == [without_us, [0, 0]]
    if fault == "kill":
        assert without_us[int(process)] == -9
    for index in (0, 1):
        first, *later = records_of(pairs, name, index)
        told = json.loads((pairs / name / f"second_{index}.json").read_text())["log"]
        lost = "WARNING steps 5 to 7: profile lost: the process ended meanwhile"
        if state == "tracing":
            (taken_anew,) = later
            assert (taken_anew["start_step"], taken_anew["stop_step"]) == (5, 8)
            assert taken_anew["state"] == "published"
            is_lost = first["state"] == "failed"
            assert (first["failed_at"] == "tracing") is is_lost
            assert (lost in told) is is_lost
            assert is_lost or (first["state"], first["stop_step"]) == ("published", 7)
        else:
            assert later == []
            assert (first["state"], first["stop_step"]) == ("published", 8)
            assert lost not in told
    newest = records_of(pairs, name, 0)[-1]
    summary = json.loads((Path(newest["folder"]) / "profile_summary.json").read_text())
    assert len(summary["hosts"]) == 2
    assert summary["capture"]["profiling"]["missing_processes"] == []
    assert {"profile-summary-run", "run-run-profiler"} <= {
        name for row in newest["logged"] for name in row["artifacts"]
    }
    left = [*(pairs / name).rglob(".marin-profile-*"), *(pairs / name).rglob(".publish*")]
    assert left == []


# --- under Levanter's supervisor -----------------------------------------------------------------


@pytest.fixture(scope="module")
def supervised(tmp_path_factory) -> Path:
    pytest.importorskip("levanter.recovery.supervisor", reason="Levanter of June 2026 has none")
    folder = tmp_path_factory.mktemp("supervised")
    names = ("tracing", "ingesting", "worker")
    run(folder, *names, script=TRAINING.with_name("supervised_training.py"))
    return folder


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tracing", "ingesting", "worker"])
def test_what_a_supervisor_ended_its_next_attempt_finishes(supervised, name):
    ended = json.loads((supervised / "results.json").read_text())[name]
    assert ended == {"outcome": "completed", "codes": [-15]}
    (taken, *lost) = reversed(records_in(supervised / name))
    assert taken["state"] == "published"
    assert [one["failed_at"] for one in lost] == ["tracing"] * (name == "tracing")
    said = [line.split(";")[0] for line in lines(supervised, name, "second")]
    assert said == ["WARNING steps 5 to 7: profile lost: the process ended meanwhile"] * len(lost)
    said = lines(supervised, name, "first")
    assert len(said) == (name == "worker")
    assert all("profile not summarised: " in line for line in said)


# --- what else ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", DISK)
def test_a_full_disk_ends_nothing_but_the_profile(tmp_path, name):
    run(tmp_path, name, disk=True)
    assert json.loads((tmp_path / "statuses.json").read_text())[name] == [0, 0]


@pytest.mark.long
def test_a_run_that_resumes_beyond_a_window_takes_it(tmp_path):
    script = TRAINING.with_name("resumed_training.py")
    path = os.pathsep.join((str(TRAINING.parents[1]), os.environ.get("PYTHONPATH", "")))
    child = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    first = told["steps"][0]
    assert first in (5_000, 5_001)  # the checkpoint is of the end
    (summary,) = tmp_path.glob("run/profiler/plugins/profile/*/profile_summary.json")
    steps = json.loads(summary.read_text())["step_time"]["steps"]
    assert [step["step_num"] for step in steps] == [*range(first + 1, first + 7)]
    (record,) = tmp_path.glob("run/profiler/plugins/profile/*/capture_record.json")
    assert json.loads(record.read_text())["planned_for"] == [5]
