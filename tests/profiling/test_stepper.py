"""`marin_profile.profiler` in loops that have no Trainer, in a child process (stepper_loops.py)."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from patience import PATIENCE
from wandb_server import WandbServer

LOOPS = Path(__file__).with_name("stepper_loops.py")
PRODUCTS = 3  # matrix products in each step of the loops

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]


@dataclass(frozen=True)
class Loops:
    folder: Path
    results: dict

    def returned(self, name: str):
        return self.results[name]["returned"]

    def log(self, name: str) -> list[str]:
        return self.results[name]["log"]

    def summary(self, name: str) -> dict:
        return json.loads((self.folder / name / "profile_summary.json").read_text())


@pytest.fixture(scope="module")
def loops(tmp_path_factory) -> Loops:
    folder = tmp_path_factory.mktemp("stepper")
    run(folder)
    return Loops(folder, json.loads((folder / "results.json").read_text()))


def run(folder: Path) -> None:
    command = [sys.executable, str(LOOPS), str(folder)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert child.returncode == 0, child.stderr[-3000:]


def products(summary: dict) -> int:
    """How often the matrix product was recorded: some op runs once in each."""
    return max(op["count"] for op in summary["hot_ops"])


@pytest.mark.parametrize("name", ["plain", "drops_results", "marked_itself"])
def test_a_capture_of_an_asynchronous_loop_holds_the_work_of_its_steps_and_no_other(loops, name):
    """Also where buffers are donated, and where nobody holds the results."""
    summary = loops.summary(name)
    steps = summary["step_time"]["steps"]
    assert [step["step_num"] for step in steps] == [3, 4, 5, 6]
    assert products(summary) == 4 * PRODUCTS
    (whole,) = (row for row in summary["device_ledger"] if row["window"] == "capture")
    in_steps = sum(step["ledger"]["compute_duration"] for step in steps)
    assert in_steps == pytest.approx(whole["compute_duration"], rel=0.01)
    assert [line.split(" written")[0] for line in loops.log(name)] == [
        "INFO profiling steps 3 to 6",
        "INFO profile of steps 3 to 6",
        "INFO profile summary and report",
    ]


def test_naming_it_imports_neither_jax_nor_numpy():
    code = (
        "import sys, marin_profile\n"
        "marin_profile.ProfilerConfig(start_step=2), dir(marin_profile)\n"
        "assert not {'jax', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_the_loops_own_markers_are_not_doubled(loops):
    assert loops.summary("marked_itself")["step_time"]["annotation"] == "profiled_step"
    alone = loops.summary("marked_alone")["step_time"]
    assert alone["annotation"] == "train"
    assert [step["step_num"] for step in alone["steps"]] == [103, 104, 105, 106]


def test_times_of_a_loop_that_runs_ahead_are_not_judged(loops):
    profiling = loops.summary("plain")["capture"]["profiling"]
    assert profiling["representative"] is None


def test_a_loop_that_ends_inside_a_window_keeps_the_steps_that_ended(loops):
    (record,) = loops.returned("ends_inside")
    assert record[:4] == [3, 6, "planned", "published"]
    summary = loops.summary("ends_inside")
    assert [step["step_num"] for step in summary["step_time"]["steps"]] == [3, 4, 5]


def test_an_exception_passes_and_the_next_start_finishes_its_capture(loops):
    (left,) = loops.returned("raises")
    assert left[:4] == [3, 6, "planned", "settling"]
    assert "the next start of this run finishes it" in loops.log("raises")[-1]
    (finished,) = loops.returned("goes_on")
    assert finished[:4] == [3, 6, "planned", "published"]
    assert products(loops.summary("raises")) == 3 * PRODUCTS


def test_a_resumed_loop_takes_the_window_it_missed_and_then_those_to_come(loops):
    taken = [[*record[:2], record[4]] for record in loops.returned("resumed")]
    assert taken == [[5001, 5003, [4993]], [5003, 5005, [5003]], [5013, 5015, [5013]]]


def test_one_profiler_at_a_time(loops):
    record, *inner = loops.returned("nested")
    assert record[:3] == [3, 5, "planned"]
    assert inner == [None, None]
    folder = loops.folder / "nested"
    refusal = f"WARNING not profiled: the profiler of {folder} is at work"
    assert loops.log("nested").count(refusal) == 2


@pytest.mark.parametrize("name", ["off", "other_process"])
def test_where_nothing_is_to_be_profiled_nothing_is_done(loops, name):
    assert loops.returned(name) == [None, False]
    assert loops.log(name) == []


def test_triggers(loops):
    assert [trigger for trigger, _ in loops.returned("on_demand")] == ["on_demand", "on_demand"]
    (record,) = loops.returned("slow_step")
    assert record[2] == "slow_step"
    assert record[1] - record[0] == 2


def test_another_profiler_costs_the_capture_and_no_more(loops):
    assert loops.returned("broken_profiler") == ["failed"]


WANDB_LOOP = """
import sys
import jax, jax.numpy as jnp
import wandb
from marin_profile import ProfilerConfig, profiler

work = jax.jit(lambda x: x @ x / 100)
x = jnp.ones((64, 64))
run = wandb.init(project="loops", id="mine", config={"learning_rate": 0.1})
with profiler(sys.argv[1], ProfilerConfig(start_step=2, num_steps=2)) as p:
    for i in range(12):
        x = work(x)
        p.step(i)
    held = p.profiler
print([[one.tracker, one.artifacts] for one in held.records[0].logged])
run.finish()
with profiler(sys.argv[1] + "_without", ProfilerConfig(start_step=2, num_steps=2)) as p:
    for i in range(6):
        x = work(x)
        p.step()
    held = p.profiler
print(held.records[0].state, held.records[0].logged)
"""


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
def test_the_live_wandb_run_gets_the_artifacts(tmp_path):
    with WandbServer() as server:
        settings = server.environment(tmp_path / "private") | {
            "WANDB_MODE": "online",
            "WANDB_ENTITY": "loop",
            "WANDB_SILENT": "true",
            "JAX_PLATFORMS": "cpu",
        }
        child = subprocess.run(
            [sys.executable, "-c", WANDB_LOOP, str(tmp_path / "run")],
            cwd=tmp_path,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert child.returncode == 0, child.stderr[-3000:]
        held = {
            (one.type, one.collection, one.state, one.run and one.run.name)
            for one in server.state.artifacts
        }
        (found,) = [one for one in server.state.runs if one.name == "mine"]
    logged, without = child.stdout.splitlines()[-2:]
    assert logged == "[['wandb', ('profile-summary-mine:v0', 'run-mine-profiler:v0')]]"
    assert without == "published ()"
    assert {
        ("profile_summary", "profile-summary-mine", "COMMITTED", "mine"),
        ("jax_profile", "run-mine-profiler", "COMMITTED", "mine"),
    } <= held
    assert {"profile/top_ops", "profile/report", "profile/compute_share"} <= {
        *json.loads(found.summary)
    }
    summary = json.loads((tmp_path / "run" / "profile_summary.json").read_text())
    assert summary["run_metadata"]["run_path"] == "loop/loops/mine"
    assert summary["run_metadata"]["config_hash"]
    assert list(tmp_path.rglob(".publish*")) == []
