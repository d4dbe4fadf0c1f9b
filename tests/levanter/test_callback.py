"""The callback under Levanter's real Trainer, in child processes: importing Levanter is slow and
its trainer changes global state."""

import gzip
import importlib.metadata
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mounts import mounted
from needs import needs_levanter
from patience import PATIENCE, running_with, wait_until

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
    "logged",
    "tracker_down",
    "windows",
    "every",
    "inline",
    "thread",
    "touched",
    "signalled",
    "slow_steps",
    "other_process",
    "busy",
    "no_folder",
    "recompiles",
    "too_early",
    "in_the_middle",
    "evaluated",
)


needs_summarize = pytest.mark.skipif(
    importlib.util.find_spec("marin_profile.pipeline") is None,
    reason="this checkout cannot summarise yet",
)


def train(out: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TRAINING), str(out), *names]
    return subprocess.run(command, cwd=out, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trainings")
    train_all(folder)
    return folder


def train_all(folder: Path) -> None:
    child = train(folder, *SCENARIOS)
    assert child.returncode == 0, child.stderr[-4000:]


@pytest.fixture(scope="module")
def results(out) -> dict:
    return json.loads((out / "results.json").read_text())


def captures(scenario_dir: Path) -> list[Path]:
    return sorted(scenario_dir.glob("run/profiler/plugins/profile/*"))


def steps_in(capture: Path) -> list[int]:
    (trace,) = capture.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return sorted(int(e["args"]["step_num"]) for e in events if e.get("name") == "train")


def captured_steps(scenario_dir: Path) -> list[int]:
    found = captures(scenario_dir)
    assert len(found) < 2
    return steps_in(found[0]) if found else []


def context_of(capture: Path) -> dict:
    return json.loads((capture / "profile_context.json").read_text())


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
    assert list(run.rglob(".marin-profile-*")) == []
    (capture,) = captures(out / "ingested")
    assert gzip.decompress((capture / "device_memory.prof").read_bytes())  # a gzipped pprof
    for name in ("profile_summary.json", "profile_report.md"):
        assert (capture / name).read_bytes() == (run / name).read_bytes()


@needs_levanter
def test_the_context_holds_the_steps_outside_the_window_and_the_cost(out):
    (capture,) = captures(out / "clamped")
    context = context_of(capture)
    assert context["window"]["steps"] == [3, 4, 5]
    # The first step that a hook sees counts as one that compiled: those before it did.
    assert context["outside"]["steps"] in ([], [1, 2])
    assert context["judgement"]["representative"] is None
    assert "too few" in context["judgement"]["reason"]
    (capture,) = captures(out / "ingested")
    context = context_of(capture)
    outside = context["outside"]["steps"] + context["outside_while_ingesting"]["steps"]
    assert sorted(outside)[-4:] == [6, 7, 8, 9]
    assert context["trigger"] == "planned"
    assert context["profiler"]["stop_trace_seconds"] > 0


@needs_levanter
def test_the_summary_says_whether_the_window_is_representative(out):
    (capture,) = captures(out / "in_the_middle")
    context = context_of(capture)
    # Judged by the steps before the window, and by at least five after it; the rest came later.
    outside = context["outside"]["steps"]
    before = [step for step in outside if step < 10]
    assert len(before) + 5 <= context["judgement"]["num_steps_outside"] <= len(outside)
    summary = json.loads((capture / "profile_summary.json").read_text())
    told = summary["capture"]["profiling"]
    for name in ("representative", "window_to_outside", "reason", "num_steps_outside"):
        assert told[name] == context["judgement"][name]
    ratio = told["window_to_outside"]
    assert told["representative"] is (abs(ratio - 1) <= 0.1)
    assert told["missing_processes"] == []


@needs_levanter
def test_an_evaluation_in_the_window_is_told_from_its_steps(out, results):
    """Two seconds and more of it, after step 8, or 7 where hooks run from the first step on."""
    before = 7 if results["off"]["steps"][0] == 0 else 8
    (capture,) = captures(out / "evaluated")
    summary = json.loads((capture / "profile_summary.json").read_text())
    steps = {step["step_num"]: step for step in summary["step_time"]["steps"]}
    assert list(steps) == list(range(5, 13))
    evaluation = 2e6  # microseconds
    assert steps[before]["duration"] < evaluation < steps[before]["period"]
    between = {one["step_num"]: one for one in summary["capture"]["profiling"]["work_between"]}
    assert between[before + 1]["duration"] > evaluation
    report = (capture / "profile_report.md").read_text()
    assert "training did other work for " in report


@needs_levanter
def test_the_summary_holds_what_the_run_knows(out):
    run = json.loads((out / "ingested" / "run" / "profile_summary.json").read_text())
    known = run["run_metadata"]
    assert known["run_id"] == "run"
    assert known["hardware_type"] == "cpu"
    assert (known["num_devices"], known["num_hosts"]) == (2, 1)
    assert "data=2" in known["mesh_or_topology"].split(",")
    assert len(known["config_hash"]) == 16


@needs_levanter
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("windows", [[3, 4], [5]]),
        ("every", [[3, 4], [7, 8], [11]]),
        ("inline", [[3, 4], [5]]),
        ("thread", [[3, 4, 5]]),
        ("touched", [[5, 6], [9, 10]]),
        ("signalled", [[5, 6]]),
        ("slow_steps", [[16, 17]]),
        ("busy", [[30, 31]]),
        ("no_folder", []),
        ("other_process", []),
    ],
)
def test_which_steps_are_captured(out, results, name, expected):
    assert [steps_in(capture) for capture in captures(out / name)] == expected


@needs_levanter
@pytest.mark.parametrize("name", ["inline", "thread"])
def test_each_capture_is_summarised_beside_it(out, results, name):
    for capture in captures(out / name):
        summary = json.loads((capture / "profile_summary.json").read_text())
        steps = [step["step_num"] for step in summary["step_time"]["steps"]]
        assert steps == steps_in(capture)
    newest = captures(out / name)[-1] / "profile_summary.json"
    assert newest.read_bytes() == (out / name / "run" / "profile_summary.json").read_bytes()


@needs_levanter
@pytest.mark.parametrize(
    ("name", "trigger"),
    [("touched", "on_demand"), ("signalled", "on_demand"), ("slow_steps", "slow_step")],
)
def test_the_context_names_why_there_is_a_capture(out, results, name, trigger):
    assert {context_of(capture)["trigger"] for capture in captures(out / name)} == {trigger}


@needs_levanter
def test_a_summarised_capture_is_logged_to_the_runs_tracker(out, results):
    (summary, capture, history_figures) = results["logged"]["logged"]
    assert summary[:2] == ["profile-summary-run", "profile_summary"]
    assert summary[2] == [
        "metadata.json",
        "profile_report.html",
        "profile_report.md",
        "profile_summary.json",
    ]
    assert capture[:2] == ["run-run-profiler", "jax_profile"]
    assert [name for name in capture[2] if name.endswith(".xplane.pb")]
    assert {
        "profile/step_period_median_us",
        "profile/ingest_seconds",
        "profile/compute_share",
    } <= {*history_figures}
    assert list((out / "logged").rglob(".publish*")) == []


@needs_levanter
def test_a_tracker_that_is_down_is_one_log_line(out, results):
    # Later versions of Levanter have another tracker beside it, which takes the figures.
    (line,) = warnings(results["tracker_down"])
    assert "but not logged: ConnectionError: down; the next start of this run logs it" in line or (
        ", but the rest is not logged: keeping: ConnectionError: down; the next start" in line
    )
    assert results["tracker_down"]["steps"][-1] == 7
    assert (out / "tracker_down" / "run" / "profile_summary.json").exists()


@needs_levanter
def test_a_second_profiler_is_one_log_line_per_window(results):
    assert warnings(results["busy"]) == [
        "WARNING steps 3 to 4: not profiled: another profiler is running in this process",
        "WARNING step 5: not profiled: another profiler is running in this process",
    ]


@needs_levanter
def test_a_profile_that_cannot_be_written_is_one_log_line(results):
    (line,) = warnings(results["no_folder"])
    assert line.startswith("WARNING steps 3 to 5: ")
    assert results["no_folder"]["steps"][-1] == 7


@needs_levanter
def test_a_window_over_a_recompile_warns_and_one_before_the_first_hook_is_refused(out, results):
    # The two lines of Levanter differ: where hooks run from the first step on, step 9 compiles.
    if results["off"]["steps"][0] == 0:
        (line,) = warnings(results["recompiles"])
        assert line.startswith("WARNING profile of steps 3 to 10 written to ")
        assert re.search(r"; JAX compiled for \d+\.\d s in step 9: ", line)
        assert captured_steps(out / "too_early") == [1, 2, 3]
    else:
        assert warnings(results["recompiles"]) == []
        assert results["too_early"]["error"].startswith("start_step must be at least 3 ")


@needs_levanter
def test_a_window_over_the_end_is_clamped(out, results):
    assert captured_steps(out / "clamped") == [3, 4, 5]
    assert warnings(results["clamped"]) == []


@needs_levanter
def test_a_window_behind_the_end_is_logged_and_captures_nothing(out, results):
    assert captured_steps(out / "late") == []
    (line,) = results["late"]["log"]
    assert line == "WARNING no window will be profiled: training ends with step 7, before step 8"


@needs_levanter
def test_off_is_silent(out, results):
    assert captured_steps(out / "off") == []
    assert results["off"]["log"] == []


@needs_levanter
def test_data_that_ends_inside_the_window_closes_the_trace(out, results):
    assert captured_steps(out / "data_ends") == [3, 4]
    assert warnings(results["data_ends"]) == []


@needs_levanter
def test_data_that_ends_before_the_window_is_reported(out, results):
    assert captured_steps(out / "data_ends_before") == []
    assert results["data_ends_before"]["log"] == [
        "WARNING nothing was profiled: training ended with step 4, before steps 10 to 12"
    ]


@needs_levanter
@pytest.mark.parametrize(
    ("name", "what"), [("start_raises", "not profiled"), ("stop_raises", "profile lost")]
)
def test_a_raising_profiler_does_not_break_training(results, name, what):
    assert results[name]["steps"][-1] == 7
    assert warnings(results[name]) == [f"WARNING steps 3 to 5: {what}: RuntimeError: broken"]


@needs_levanter
def test_a_crash_of_training_keeps_its_capture(tmp_path):
    child = train(tmp_path, "crash")
    assert child.returncode != 0
    assert "RuntimeError: crash" in child.stderr
    assert captured_steps(tmp_path / "crash") == [3, 4, 5]
    (capture,) = captures(tmp_path / "crash")
    record = json.loads((capture / "capture_record.json").read_text())
    assert (record["state"], record["start_step"], record["stop_step"]) == ("settling", 3, 6)


@needs_levanter
def test_a_crash_before_the_summary_says_how_to_make_it(tmp_path):
    child = train(tmp_path, "crash_after")
    assert child.returncode != 0
    assert "RuntimeError: crash" in child.stderr
    (capture,) = captures(tmp_path / "crash_after")
    (said,) = [line for line in child.stderr.splitlines() if "marin-profile finish" in line]
    assert "training ended while the profile of steps 3 to 5 was not summarised yet" in said
    assert said.endswith(f"marin-profile finish {capture}")


@needs_levanter
@pytest.mark.parametrize(("name", "options"), [("full_disk", "size=8k"), ("read_only", "ro")])
def test_a_disk_that_takes_no_profile_is_one_log_line(tmp_path, name, options):
    folder = tmp_path / name / "run" / "profiler"
    folder.mkdir(parents=True)
    child = mounted(folder, options, [sys.executable, TRAINING, tmp_path, name])
    assert child.returncode == 0, child.stderr
    result = json.loads((tmp_path / "results.json").read_text())[name]
    assert result["steps"][-1] == 7
    (line,) = warnings(result)
    assert line.startswith("WARNING steps 3 to 5: ") or "was not summarised" in line


@needs_levanter
@pytest.mark.parametrize("name", ["terminated_in_capture", "terminated_in_ingestion"])
def test_a_terminated_training_ends_as_without_us_and_leaves_no_half_output(tmp_path, name):
    child = train(tmp_path, name)
    assert child.returncode == -signal.SIGTERM
    wait_until(lambda: not running_with("marin_profile.profiling.worker", str(tmp_path)))
    # Training itself may have died while it wrote a record; the next write there sweeps that.
    assert list(tmp_path.rglob("profile_summary.json")) == []
    (capture,) = captures(tmp_path / name)
    if name == "terminated_in_capture":
        names = {path.name for path in capture.iterdir()}
        whole = {name for name in names if not name.startswith(".marin-profile-")}
        assert whole <= {"capture_record.json"}
    else:
        assert steps_in(capture) == [3, 4, 5]


def test_the_package_imports_without_jax():
    code = "import sys, marin_profile.levanter; print([m for m in sys.modules if m == 'jax'])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stdout == "[]\n", child.stderr


def test_levanters_own_profiler_beside_ours_is_refused():
    """Its start_trace would raise into training whenever a trace of ours is open."""
    code = """
from types import SimpleNamespace
from levanter.callbacks.profiler import ProfilerConfig
from marin_profile.levanter import install
trainer = SimpleNamespace(config=SimpleNamespace(profiler=ProfilerConfig(enabled=True)))
try:
    install(trainer)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("Levanter's own profiler is on (trainer.profiler.enabled)")
