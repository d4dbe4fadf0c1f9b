"""The callback under Levanter's real Trainer, in child processes: importing Levanter is slow and
its trainer changes global state."""

import gzip
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.levanter import ProfilerConfig

TRAINING = Path(__file__).with_name("tiny_training.py")
SCENARIOS = (
    "ingested",
    "clamped",
    "late",
    "off",
    "data_ends",
    "data_ends_before",
    "start_raises",
    "stop_raises",
)


def levanter_installed() -> bool:
    try:
        importlib.metadata.version("marin-levanter")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


needs_levanter = pytest.mark.skipif(
    not levanter_installed(), reason="marin-levanter is not installed (extra: levanter)"
)
needs_summarize = pytest.mark.skipif(
    importlib.util.find_spec("marin_profile.pipeline") is None,
    reason="this checkout cannot summarise yet",
)
# All scenarios share one child: one worker must run them.
pytestmark = pytest.mark.xdist_group("levanter")


def train(out: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TRAINING), str(out), *names]
    return subprocess.run(command, cwd=out, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("trainings")


@pytest.fixture(scope="module")
def results(out) -> dict:
    child = train(out, *SCENARIOS)
    assert child.returncode == 0, child.stderr[-4000:]
    return json.loads((out / "results.json").read_text())


def captured_steps(scenario_dir: Path) -> list[int]:
    traces = list(scenario_dir.glob("run/profiler/plugins/profile/*/*.trace.json.gz"))
    if not traces:
        return []
    (trace,) = traces
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return sorted(int(e["args"]["step_num"]) for e in events if e.get("name") == "train")


def warnings(result: dict) -> list[str]:
    return [line for line in result["log"] if not line.startswith("INFO")]


@needs_levanter
def test_the_window_is_captured(out, results):
    assert captured_steps(out / "ingested") == [3, 4, 5]
    assert list((out / "ingested").glob("run/profiler/plugins/profile/*/*.xplane.pb"))
    assert "INFO profiling steps 3 to 5" in results["ingested"]["log"]


@needs_levanter
def test_summary_and_report_are_there_when_training_ends(out, results):
    assert warnings(results["ingested"]) == []
    run = out / "ingested" / "run"
    summary = json.loads((run / "profile_summary.json").read_text())
    assert [step["step_num"] for step in summary["step_time"]["steps"]] == [3, 4, 5]
    assert (run / "profile_report.md").read_text().startswith("#")
    assert list(run.glob(".ingest-*")) == []


@needs_levanter
def test_a_window_over_the_end_is_clamped(out, results):
    assert captured_steps(out / "clamped") == [3, 4, 5]
    assert warnings(results["clamped"]) == []


@needs_levanter
def test_a_window_behind_the_end_is_said_and_captures_nothing(out, results):
    assert captured_steps(out / "late") == []
    (line,) = results["late"]["log"]
    assert line.startswith("WARNING nothing will be profiled")


@needs_levanter
def test_off_is_silent(out, results):
    assert captured_steps(out / "off") == []
    assert results["off"]["log"] == []


@needs_levanter
def test_data_that_ends_inside_the_window_closes_the_trace(out, results):
    assert captured_steps(out / "data_ends") == [3, 4]
    assert warnings(results["data_ends"]) == []


@needs_levanter
def test_data_that_ends_before_the_window_is_said(out, results):
    assert captured_steps(out / "data_ends_before") == []
    assert results["data_ends_before"]["log"] == [
        "WARNING nothing was profiled: training did not pass steps 10 to 12"
    ]


@needs_levanter
@pytest.mark.parametrize("name", ["start_raises", "stop_raises"])
def test_a_raising_profiler_does_not_break_training(results, name):
    assert results[name]["steps"][-1] == 7
    assert warnings(results[name]) == ["WARNING profiling ended early: RuntimeError: broken"]


@needs_levanter
def test_a_crash_of_training_keeps_its_capture(tmp_path):
    child = train(tmp_path, "crash")
    assert child.returncode != 0
    assert "RuntimeError: crash" in child.stderr
    assert captured_steps(tmp_path / "crash") == [3, 4, 5]


@pytest.mark.parametrize(
    ("train_steps", "expected"),
    [(100, range(5, 30)), (30, range(5, 30)), (12, range(5, 12)), (5, range(0)), (3, range(0))],
)
def test_window(train_steps, expected):
    assert ProfilerConfig().window(train_steps) == expected


@pytest.mark.parametrize("settings", [{"start_step": 0}, {"num_steps": 0}, {"ingest_timeout": -1}])
def test_a_config_without_sense_is_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ProfilerConfig(**settings)


def test_the_package_imports_without_jax():
    code = "import sys, marin_profile.levanter; print([m for m in sys.modules if m == 'jax'])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stdout == "[]\n", child.stderr
