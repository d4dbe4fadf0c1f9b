"""profile_window around loops that have no Trainer, in a child process."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from patience import PATIENCE

LOOP = """
import json, sys
import jax, jax.numpy as jnp
from marin_profile import ProfilerConfig, profile_window

folder = sys.argv[1]
work = jax.jit(lambda x: (x @ x).sum())
x = jnp.ones((64, 64))

def rollouts(count):
    for i in range(count):
        with jax.profiler.StepTraceAnnotation("rollout", step_num=i):
            work(x).block_until_ready()

rollouts(1)
with profile_window(f"{folder}/done") as window:
    rollouts(5)
problem = window.finish()
with profile_window(f"{folder}/at_exit") as at_exit:
    with profile_window(f"{folder}/second") as second:
        rollouts(3)
with profile_window(f"{folder}/off", ProfilerConfig(enabled=False)) as off:
    rollouts(1)
print(json.dumps([problem, *(str(w.summary) for w in (window, at_exit, second, off))]))
try:
    with profile_window(f"{folder}/raises"):
        rollouts(2)
        raise KeyError("mine")
except KeyError:
    print("mine passed")
work(x).block_until_ready()
with profile_window(f"{folder}/asynchronous"):
    for i in range(6):
        with jax.profiler.StepTraceAnnotation("rollout", step_num=i):
            work(x)
"""

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]


@dataclass(frozen=True)
class Loop:
    folder: Path
    printed: list[str]
    log: str

    @property
    def told(self) -> list:
        return json.loads(self.printed[0])


@pytest.fixture(scope="module")
def loop(tmp_path_factory) -> Loop:
    folder = tmp_path_factory.mktemp("loops")
    run(folder)
    printed = (folder / "stdout").read_text().splitlines()
    return Loop(folder, printed, (folder / "stderr").read_text())


def run(folder: Path) -> None:
    command = [sys.executable, "-c", LOOP, str(folder)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    (folder / "stdout").write_text(child.stdout)
    (folder / "stderr").write_text(child.stderr)
    assert child.returncode == 0, child.stderr[-3000:]


def steps(summary: Path) -> tuple[str, list[int]]:
    step_time = json.loads(summary.read_text())["step_time"]
    return step_time["annotation"], [step["step_num"] for step in step_time["steps"]]


def test_steps_of_any_name_are_summarised(loop):
    problem, summary, *_ = loop.told
    assert problem is None
    assert steps(Path(summary)) == ("rollout", [0, 1, 2, 3, 4])
    assert Path(summary).with_name("profile_report.md").exists()


def test_what_nobody_waited_for_is_finished_at_exit(loop):
    _, _, summary, *_ = loop.told
    assert steps(Path(summary)) == ("rollout", [0, 1, 2])


def test_a_second_window_inside_is_logged_and_does_nothing(loop):
    _, _, _, second, off = loop.told
    assert second == off == "None"
    assert not (loop.folder / "second").exists()
    assert not (loop.folder / "off").exists()
    assert "not profiled: another profiler is running in this process" in loop.log


def test_an_exception_of_the_block_passes_and_its_capture_is_kept(loop):
    assert "mine passed" in loop.printed
    (summary,) = loop.folder.glob("raises/plugins/profile/*/profile_summary.json")
    assert steps(summary) == ("rollout", [0, 1])


def test_what_the_block_did_not_wait_for_is_in_the_capture(loop):
    (summary,) = loop.folder.glob("asynchronous/plugins/profile/*/profile_summary.json")
    assert steps(summary) == ("rollout", [0, 1, 2, 3, 4, 5])
    assert max(op["count"] for op in json.loads(summary.read_text())["hot_ops"]) == 6
