"""Ingestion beside training, with a stand-in for the analysis."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import marin_profile.levanter
from marin_profile.filenames import FIGURES_FILE, INGEST_LOG_FILE, REPORT_FILE, SUMMARY_FILE
from marin_profile.levanter.ingestion import Ingestions, Limits
from marin_profile.levanter.worker import Job

STAND_IN = """
import os, time
print("training flags:", [k for k in os.environ if k.startswith(("JAX_", "XLA_"))], flush=True)

class Summary:
    def to_json(self):
        return "summary"

def summarize(path):
    if "hog" in os.environ.get("STAND_IN", ""):
        bytearray(1 << 40)
    return Summary()

def render_markdown(summary):
    what = os.environ.get("STAND_IN", "")
    if what == "die":
        os.kill(os.getpid(), 9)
    if what == "fail":
        raise RuntimeError("broken")
    return Report()

class Report(str):
    pass
"""
# Writes half of an output, then takes its time.
SLOW_WRITE = """
import pathlib
write_text = pathlib.Path.write_text
def slowly(path, text):
    write_text(path, text[:3])
    time.sleep(float(os.environ.get("STAND_IN_SLEEP", "0")))
    return write_text(path, text)
pathlib.Path.write_text = slowly
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path, monkeypatch) -> None:
    """A marin_profile that child processes find first, with the real worker in it."""
    package = tmp_path / "stand_in" / "marin_profile"
    (package / "cli").mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN + SLOW_WRITE)
    (package / "cli" / "__init__.py").touch()
    real = Path(marin_profile.levanter.__file__).parent
    for module in ("filenames.py", "cli/startup.py"):
        (package / module).symlink_to(real.parent / module)
    (package / "levanter").mkdir()
    for module in real.glob("*.py"):
        (package / "levanter" / module.name).symlink_to(module)
    (package / "levanter" / "figures.py").unlink()
    (package / "levanter" / "figures.py").write_text("figures = lambda summary: {'mfu': 0.5}")
    (package / "artifact.py").write_text("artifact_metadata = lambda summary: {'run_id': None}")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))


@pytest.fixture
def output_dir(tmp_path) -> Path:
    return tmp_path / "out"


def written(output_dir: Path) -> list[str]:
    return sorted(path.name for path in output_dir.iterdir() if path.name != INGEST_LOG_FILE)


def ingestions(seconds: float = 60, memory_gb: float = 32, how: str = "subprocess") -> Ingestions:
    return Ingestions(how, Limits(seconds, memory_gb))


def problem_of(jobs: Ingestions, job: Job, timeout: float = 30) -> str | None:
    (outcome,) = jobs.add(job) + jobs.finish(timeout)
    assert outcome.job == job
    return outcome.problem


def test_summary_and_report_are_written(output_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    copy_dir = tmp_path / "copy"
    assert problem_of(ingestions(), Job(tmp_path, output_dir, copy_dir)) is None
    assert written(copy_dir) == [REPORT_FILE, SUMMARY_FILE]
    assert written(output_dir) == [FIGURES_FILE, REPORT_FILE, SUMMARY_FILE]
    told = json.loads((output_dir / FIGURES_FILE).read_text())
    assert told["metadata"] == {"run_id": None}
    assert told["figures"].keys() == {"mfu", "ingest_seconds"}
    assert (output_dir / SUMMARY_FILE).read_text() == "summary"
    assert "training flags: []" in (output_dir / INGEST_LOG_FILE).read_text()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("fail", "exit 1: RuntimeError: broken"),
        ("die", "killed by SIGKILL"),
        ("hog", "MemoryError"),
    ],
)
def test_a_failure_is_one_line_and_leaves_no_half_output(
    output_dir, tmp_path, monkeypatch, what, said
):
    monkeypatch.setenv("STAND_IN", what)
    problem = problem_of(ingestions(memory_gb=8), Job(tmp_path, output_dir))
    assert problem is not None
    assert said in problem
    assert "\n" not in problem
    assert f"marin-profile summarize --profile-dir {tmp_path} --output {output_dir}" in problem
    assert written(output_dir) == []


def test_what_takes_longer_than_the_end_of_training_waits_is_stopped(
    output_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("STAND_IN_SLEEP", "60")
    jobs = ingestions()
    first, second = Job(tmp_path, output_dir), Job(tmp_path, tmp_path / "second")
    jobs.add(first)
    jobs.add(second)
    assert jobs.running
    started = time.monotonic()
    outcomes = jobs.finish(timeout=1)
    assert time.monotonic() - started < 10
    assert [outcome.job for outcome in outcomes] == [first, second]
    assert all("not done within the 1 s" in outcome.problem for outcome in outcomes)
    assert not jobs.running
    assert written(output_dir) == []


def test_a_job_over_its_time_limit_ends_by_itself(output_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN_SLEEP", "60")
    problem = problem_of(ingestions(seconds=1), Job(tmp_path, output_dir))
    assert problem is not None
    assert "exit 124: stopped after its limit of 1 s" in problem
    assert written(output_dir) == []


def test_jobs_run_one_after_the_other(tmp_path):
    jobs = ingestions()
    todo = [Job(tmp_path, tmp_path / name) for name in "abc"]
    ended = [outcome for job in todo for outcome in jobs.add(job)] + jobs.finish(30)
    assert [(outcome.job, outcome.problem) for outcome in ended] == [(job, None) for job in todo]


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    problem = problem_of(ingestions(), Job(tmp_path, tmp_path / "file" / "out"))
    assert problem is not None
    assert "NotADirectoryError" in problem


@pytest.mark.parametrize("how", ["thread", "inline"])
def test_other_ways_say_what_went_wrong_too(output_dir, tmp_path, how):
    problem = problem_of(ingestions(how=how), Job(tmp_path / "nothing", output_dir))
    assert problem is not None
    assert "NotFoundError" in problem


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_its_parent_and_leaves_no_half_output(
    output_dir, tmp_path, monkeypatch, end
):
    monkeypatch.setenv("STAND_IN_SLEEP", "60")
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from marin_profile.levanter.ingestion import Ingestions, Limits\n"
        "from marin_profile.levanter.worker import Job\n"
        "jobs = Ingestions('subprocess', Limits(60, 32))\n"
        "jobs.add(Job(Path('.'), Path(sys.argv[1])))\n"
        "print(jobs._current[1]._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(output_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = iter(parent.stdout.readline, "")
        child = next(int(line) for line in lines if line.strip().isdigit())
        wait_until(lambda: list(output_dir.glob(".ingest-*/*")))
        parent.send_signal(end)
    assert parent.returncode == -end
    wait_until(lambda: not alive(child))
    assert written(output_dir) == []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
