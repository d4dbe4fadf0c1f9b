"""Two training processes on this machine, so of one host name, that see one run folder."""

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from marin_profile import load_summary, summarize
from needs import needs_levanter
from patience import PATIENCE

SCRIPT = Path(__file__).with_name("two_processes.py")


@dataclass(frozen=True)
class Trained:
    root: Path
    results: list[dict]

    @property
    def first(self) -> Path:
        (folder,) = self.root.glob("process_0/plugins/profile/*")
        return folder

    @property
    def summary(self):
        return load_summary(str(self.first / "profile_summary.json"))


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def train(out: Path, name: str, below: str = "run/profiler") -> Trained:
    run_both(out, name)
    trained = trained_in(out, below)
    assert [result["steps"][-1] for result in trained.results] == [11, 11]
    return trained


def run_both(out: Path, *names: str) -> None:
    port = free_port()
    children = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(out), str(index), port, *names],
            cwd=out,
            stderr=(out / f"stderr_{index}").open("wb"),
        )
        for index in (0, 1)
    ]
    try:
        codes = [child.wait(timeout=PATIENCE) for child in children]
    finally:
        for child in children:
            child.kill()
    assert codes == [0, 0], (out / "stderr_0").read_text()[-3000:]


def trained_in(out: Path, below: str) -> Trained:
    results = [json.loads((out / f"result_{index}.json").read_text()) for index in (0, 1)]
    return Trained(out / below, results)


def said(result: dict) -> list[str]:
    return [line for line in result["log"] if not line.startswith("INFO")]


@needs_levanter
def test_both_captures_are_in_the_summary(tmp_path):
    trained = train(tmp_path, "both")
    assert [said(result) for result in trained.results] == [[], []]
    summary = trained.summary
    assert summary.capture.profiling.missing_processes == []
    assert [step.step_num for step in summary.step_time.steps] == [3, 4, 5]
    host = socket.gethostname()
    assert [row.host for row in summary.hosts] == [f"{host} (process_0)", f"{host} (process_1)"]
    # What the command line finds below the run's folder is the same, but for what the run knows.
    ours, theirs = (json.loads(s.to_json()) for s in (summary, summarize(trained.root)))
    # Two processes of one machine.
    assert ours.pop("run_metadata")["num_hosts"] == 1
    assert theirs.pop("run_metadata")["num_hosts"] == 1
    assert ours == theirs


@needs_levanter
def test_no_process_holds_up_the_hooks_after_training_for_a_summary(tmp_path):
    """No summary is begun before all processes have met in a hook that comes after ours."""
    trained = train(tmp_path, "meeting")
    assert [said(result) for result in trained.results] == [[], []]
    assert len(trained.summary.hosts) == 2


@pytest.mark.long
@needs_levanter
def test_a_slow_process_is_waited_for(tmp_path):
    trained = train(tmp_path, "slow")
    assert [said(result) for result in trained.results] == [[], []]
    assert len(trained.summary.hosts) == 2


@needs_levanter
def test_a_lost_capture_is_named_by_both(tmp_path):
    trained = train(tmp_path, "lost")
    assert said(trained.results[0]) == []
    assert said(trained.results[1]) == ["WARNING steps 3 to 5: profile lost: RuntimeError: broken"]
    assert trained.summary.capture.profiling.missing_processes == [1]


@pytest.mark.long
@needs_levanter
def test_without_its_worker_a_process_is_read_from_its_capture(tmp_path):
    trained = train(tmp_path, "no_worker")
    assert said(trained.results[0]) == []
    (line,) = said(trained.results[1])
    assert "profile not summarised: exit 1" in line
    assert len(trained.summary.hosts) == 2


@pytest.mark.long
@needs_levanter
@pytest.mark.parametrize("name", ["shared_url", "shared_folder"])
def test_processes_with_disks_of_their_own_meet_in_a_shared_place(tmp_path, name):
    trained = train(tmp_path, name, below="machine_0/run/profiler")
    assert [said(result) for result in trained.results] == [[], []]
    assert len(trained.summary.hosts) == 2
    assert len(summarize(f"local://{tmp_path}/bucket/run/profiler").hosts) == 2


@pytest.fixture(scope="module")
def touched(tmp_path_factory) -> Path:
    """A capture after a slow step and one on demand, agreed on through JAX's service, then one
    through a folder."""
    out = tmp_path_factory.mktemp("touched")
    run_both(out, "slow_step", "touched", "touched_folder")
    return out


def begun(result: dict) -> list[str]:
    return [line for line in result["log"] if line.startswith("INFO profiling ")]


@needs_levanter
@pytest.mark.parametrize("name", ["touched", "touched_folder"])
def test_on_demand_both_capture_the_same_steps(touched, name):
    """The file is touched where the first process sees it; the second one sees it 2 s later. In the
    folder each also reads what the other one wrote 2 s late."""
    trained = trained_in(touched / name, "machine_0/run/profiler")
    for result in trained.results:
        (line,) = said(result)
        assert line.startswith("WARNING no window will be profiled: training ends")
    first, second = (begun(result) for result in trained.results)
    assert len(first) == 1
    assert first == second
    summary = trained.summary
    assert len(summary.hosts) == 2
    assert summary.capture.profiling.missing_processes == []
    assert summary.capture.profiling.trigger == "on_demand"
    steps = [step.step_num for step in summary.step_time.steps]
    assert f"steps {steps[0]} to {steps[-1]} as requested" in first[0]
    assert len(steps) == 2
    assert trained.results[0]["keys"] == []  # deleted by the process whose they are
    assert not [*touched.rglob(".agreement")]


@needs_levanter
def test_after_slow_steps_both_capture_the_same_steps_and_no_more_than_allowed(touched):
    """Both see each slow step, as they wait for one another; `max_anomalies` is 1."""
    trained = trained_in(touched / "slow_step", "run/profiler")
    first, second = (begun(result) for result in trained.results)
    assert len(first) == 1
    assert "after a slow step" in first[0]
    assert first == second
    assert trained.results[0]["keys"] == []  # deleted by the process whose they are
