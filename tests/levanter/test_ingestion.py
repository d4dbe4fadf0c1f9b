"""Ingestion beside training: real child processes on a small capture, with faults put into them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builders_capture import leave_capture
from marin_profile import load_summary
from marin_profile.capture.filenames import INGEST_LOG_FILE, REPORT_FILE, SUMMARY_FILE
from marin_profile.levanter.ingestion import Ingestions, Limits
from marin_profile.levanter.job import Gather, Job, Publish
from mounts import mounted
from patience import PATIENCE, wait_until

# Python runs this first in every child: what goes wrong there is asked for by the environment.
FAULTS = """
import os, pathlib, sys, time
fault = os.environ.get("INGEST_FAULT")
if fault and "marin_profile.levanter.worker" in sys.orig_argv:
    import marin_profile.pipeline as pipeline
    summarize_capture = pipeline.summarize_capture
    write_text = pathlib.Path.write_text

    def faulty(*arguments, **options):
        if fault == "die":
            os.kill(os.getpid(), 9)
        if fault == "fail":
            raise RuntimeError("broken")
        if fault == "hog":
            bytearray(1 << 40)
        return summarize_capture(*arguments, **options)

    def slowly(path, text):
        write_text(path, text[:3])
        time.sleep(3600)
        return write_text(path, text)

    pipeline.summarize_capture = faulty
    if fault == "slow_write":
        pathlib.Path.write_text = slowly
"""


@pytest.fixture(autouse=True)
def faults(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULTS)
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{path}" if path else str(folder))


@pytest.fixture
def capture(tmp_path) -> Path:
    return leave_capture(tmp_path / "profiler")


@pytest.fixture
def output_dir(tmp_path) -> Path:
    return tmp_path / "out"


def written(output_dir: Path) -> list[str]:
    return sorted(path.name for path in output_dir.iterdir() if path.name != INGEST_LOG_FILE)


def ingestions(
    seconds: float = PATIENCE, memory_gb: float = 32, how: str = "subprocess"
) -> Ingestions:
    return Ingestions(how, Limits(seconds, memory_gb))


def problem_of(jobs: Ingestions, job: Job, timeout: float = PATIENCE) -> str | None:
    (outcome,) = jobs.add(job) + jobs.finish(timeout)
    assert outcome.job == job
    return outcome.problem


def test_a_job_survives_its_way_to_the_child(capture, output_dir):
    gather = Gather("gs://b/run", "gs://b/run/process_0", [0, 1], 1.5)
    run = {"run_id": "r", "num_hosts": 2, "git_sha": None}
    job = Job(
        capture, output_dir, capture, run, True, "gs://b/x", gather, Publish("r", "auto", True)
    )
    assert Job.from_json(job.to_json()) == job


def test_summary_and_report_are_written(capture, output_dir, tmp_path):
    copy_dir = tmp_path / "copy"
    assert problem_of(ingestions(), Job(capture, output_dir, copy_dir)) is None
    assert written(copy_dir) == written(output_dir) == [REPORT_FILE, SUMMARY_FILE]
    assert load_summary(str(output_dir / SUMMARY_FILE)).step_time.all_steps.count == 4
    assert (output_dir / SUMMARY_FILE).read_bytes() == (copy_dir / SUMMARY_FILE).read_bytes()
    assert "1 host(s) summarised in" in (output_dir / INGEST_LOG_FILE).read_text()


def test_flags_meant_for_training_do_not_reach_the_child(
    capture, output_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    shown = (
        "import os; print([k for k in os.environ if k.startswith(('JAX_', 'XLA_'))], flush=True)"
    )
    (tmp_path / "site" / "sitecustomize.py").write_text(shown)
    assert problem_of(ingestions(), Job(capture, output_dir)) is None
    assert (output_dir / INGEST_LOG_FILE).read_text().startswith("[]\n")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("fail", "exit 1: RuntimeError: broken"),
        ("die", "killed by SIGKILL"),
        ("hog", "MemoryError"),
    ],
)
def test_a_failure_is_one_line_and_leaves_no_half_output(
    capture, output_dir, monkeypatch, what, said
):
    monkeypatch.setenv("INGEST_FAULT", what)
    problem = problem_of(ingestions(memory_gb=8), Job(capture, output_dir))
    assert problem is not None
    assert said in problem
    assert "\n" not in problem
    assert f"marin-profile summarize --profile-dir {capture} --output {output_dir}" in problem
    assert written(output_dir) == []


def test_what_takes_longer_than_the_end_of_training_waits_is_stopped(
    capture, output_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    jobs = ingestions()
    first, second = Job(capture, output_dir), Job(capture, tmp_path / "second")
    jobs.add(first)
    jobs.add(second)
    assert jobs.running
    outcomes = jobs.finish(timeout=1)
    assert [outcome.job for outcome in outcomes] == [first, second]
    assert all("not done within the 1 s" in outcome.problem for outcome in outcomes)
    assert not jobs.running
    assert written(output_dir) == []


def test_a_job_over_its_time_limit_ends_by_itself(capture, output_dir, monkeypatch):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    problem = problem_of(ingestions(seconds=1), Job(capture, output_dir))
    assert problem is not None
    assert "exit 124: stopped after its limit of 1 s" in problem
    assert written(output_dir) == []


@pytest.mark.parametrize(
    ("processors", "lowest_priority", "rests"),
    [(2, True, True), (8, True, False), (2, False, False)],
)
def test_the_child_rests_where_processors_are_few(processors, lowest_priority, rests):
    """Three times as long as it works, here 0.3 s; the timer behind it kills nobody afterwards."""
    code = f"""
import os, time
from marin_profile.levanter import worker
os.sched_getaffinity = lambda _: set(range({processors}))
slept = []
time.sleep = slept.append
if {lowest_priority}:
    worker.yield_to_training()
began = time.process_time()
with worker._resting():
    while time.process_time() < began + 0.3:
        pass
print(sum(slept))
while time.process_time() < began + 0.4:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    slept = float(done.stdout)
    assert 3 * 0.25 < slept < 3 * 0.35 if rests else slept == 0


def test_the_child_yields_to_training_until_training_waits(capture, output_dir, monkeypatch):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    jobs = ingestions()
    jobs.add(Job(capture, output_dir))
    child = jobs._current[1]._process.pid
    wait_until(lambda: os.sched_getscheduler(child) == os.SCHED_IDLE)
    # Its session is that of training: in one of its own its priority would not count.
    assert os.getsid(child) == os.getsid(0)
    assert os.getpgid(child) == child
    if os.geteuid() == 0:  # others may be refused
        wait_until(lambda: list(output_dir.glob(".ingest-*/*")))
        jobs.finish(timeout=0)
        assert alive(child) is False
        jobs = ingestions()
        jobs.add(Job(capture, output_dir))
        child = jobs._current[1]._process.pid
        wait_until(lambda: list(output_dir.glob(".ingest-*/*")))
        jobs._current[1].raise_priority()
        assert os.sched_getscheduler(child) == os.SCHED_OTHER
        jobs.finish(timeout=0)


def test_jobs_run_one_after_the_other(capture, tmp_path):
    jobs = ingestions()
    todo = [Job(capture, tmp_path / name) for name in "abc"]
    ended = [outcome for job in todo for outcome in jobs.add(job)] + jobs.finish(PATIENCE)
    assert [(outcome.job, outcome.problem) for outcome in ended] == [(job, None) for job in todo]


def test_a_full_disk_is_reported_and_leaves_no_half_output(capture, output_dir):
    output_dir.mkdir()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from marin_profile.levanter.ingestion import Ingestions, Limits\n"
        "from marin_profile.levanter.job import Job\n"
        "jobs, out = Ingestions('subprocess', Limits(600, 32)), Path(sys.argv[2])\n"
        "(outcome,) = jobs.add(Job(Path(sys.argv[1]), out)) + jobs.finish(600)\n"
        "print(outcome.problem, *(path.name for path in out.iterdir()), sep='\\n')\n"
    )
    child = mounted(output_dir, "size=8k", [sys.executable, "-c", code, capture, output_dir])
    problem, *left = child.stdout.splitlines()
    assert "No space left on device" in problem, child.stderr
    assert left == [INGEST_LOG_FILE]


def test_a_folder_that_cannot_be_made_is_reported(capture, tmp_path):
    (tmp_path / "file").touch()
    problem = problem_of(ingestions(), Job(capture, tmp_path / "file" / "out"))
    assert problem is not None
    assert "NotADirectoryError" in problem


@pytest.mark.parametrize("how", ["thread", "inline"])
def test_thread_and_inline_report_failures_too(output_dir, tmp_path, how):
    problem = problem_of(ingestions(how=how), Job(tmp_path / "nothing", output_dir))
    assert problem is not None
    assert "NotFoundError" in problem


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_its_parent_and_leaves_no_half_output(
    capture, output_dir, monkeypatch, end
):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from marin_profile.levanter.ingestion import Ingestions, Limits\n"
        "from marin_profile.levanter.job import Job\n"
        "jobs = Ingestions('subprocess', Limits(3600, 32))\n"
        "jobs.add(Job(Path(sys.argv[1]), Path(sys.argv[2])))\n"
        "print(jobs._current[1]._process.pid, flush=True)\n"
        "time.sleep(3600)\n"
    )
    command = [sys.executable, "-c", code, str(capture), str(output_dir)]
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
