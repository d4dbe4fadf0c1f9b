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
DISK = ("disk-tracing", "disk-settling", "disk-ingesting")
STATUS = {"raise": 1, "term": -15, "kill": -9}

pytestmark = needs_levanter


def run(folder: Path, *names: str, disk: bool = False) -> None:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join((str(site), str(TRAINING.parents[1]), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, str(TRAINING), str(folder), *names]
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
    run(folder, *REST, "profiler-planned")
    return folder


def holds(out: Path, name: str) -> None:
    """What is promised whatever happens."""
    fault = name.partition("-")[0]
    first, second = json.loads((out / "statuses.json").read_text())[name]
    assert first == STATUS.get(fault, 0), (out / f"{name}.first.out").read_text()[-3000:]
    assert second == 0, (out / f"{name}.second.out").read_text()[-3000:]
    folder = out / name
    records = [
        json.loads(path.read_text())
        for path in sorted(folder.glob("run/profiler/plugins/profile/*/capture_record.json"))
    ]
    *lost, done = records
    assert done["state"] == "published"
    assert [one["failed_at"] for one in lost] in ([], ["tracing"])
    assert (Path(done["folder"]) / "profile_summary.json").exists()
    assert list(folder.rglob(".ingest-*")) == []
    assert list(folder.rglob(".publish*")) == []
    if fault == "tracker" and any(row["error"] for row in done["logged"]):
        return  # another tracker took the figures: what the one that was gone lacks is named
    logged = (folder / "logged").read_text().splitlines()
    assert {"profile-summary-run", "run-run-profiler"} <= {*logged}
    steps = json.loads((Path(done["folder"]) / "profile_summary.json").read_text())["step_time"]
    assert [step["step_num"] for step in steps["steps"]] == [
        *range(done["start_step"], done["stop_step"])
    ]


def lines(out: Path, name: str, start: str) -> list[str]:
    log = json.loads((out / f"{name}.{start}.json").read_text())["log"]
    return [line for line in log if line.startswith("WARNING")]


@pytest.mark.parametrize("name", CORE)
def test_the_next_start_finishes_what_a_fault_left(core, name):
    holds(core, name)


@pytest.mark.long
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
def test_another_profiler_costs_its_window_alone(rest):
    (said,) = lines(rest, "profiler-planned", "first")
    assert said == "WARNING steps 5 to 7: not profiled: another profiler is running in this process"


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
