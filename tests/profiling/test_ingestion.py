"""Ingestion beside training: real child processes on a small capture, with faults put into them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from builders_capture import leave_capture
from marin_profile import load_summary
from marin_profile.capture.filenames import INGEST_LOG_FILE, PAGE_FILE, REPORT_FILE, SUMMARY_FILE
from marin_profile.profiling.ingestion import Ingestions, Limits, Outcome
from marin_profile.profiling.job import Gather, Job, Publish
from mounts import mounted
from patience import PATIENCE, wait_until

# Python runs this first in every child: what goes wrong there is asked for by the environment.
FAULTS = """
import os, sys, time
fault = os.environ.get("INGEST_FAULT")
if fault and "marin_profile.profiling.worker" in sys.orig_argv:
    import marin_profile.pipeline as pipeline
    summarize_capture = pipeline.summarize_capture

    def faulty(*arguments, **options):
        if fault == "die":
            os.kill(os.getpid(), 9)
        if fault == "fail":
            raise RuntimeError("broken")
        if fault == "hog":
            bytearray(1 << 40)
        return summarize_capture(*arguments, **options)

    def slowly(descriptor):
        time.sleep(3600)

    pipeline.summarize_capture = faulty
    if fault == "slow_write":
        os.fsync = slowly
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


def all_of(jobs: Ingestions, count: int) -> list[Outcome]:
    ended: list[Outcome] = []

    def is_over() -> bool:
        ended.extend(jobs.advance())
        return len(ended) >= count

    wait_until(is_over)
    return ended


def problem_of(jobs: Ingestions, job: Job) -> str | None:
    jobs.add(job)
    (outcome,) = all_of(jobs, 1)
    assert outcome.job == job
    assert outcome.problems == ()
    return outcome.reason


def child_of(jobs: Ingestions) -> int:
    jobs.advance()
    return jobs._current._process.pid


def test_a_job_survives_its_way_to_the_child(capture, output_dir):
    gather = Gather("gs://b/run", "gs://b/run/process_0", [0, 1], 1.5)
    run = {"run_id": "r", "num_hosts": 2, "git_sha": None}
    job = Job(
        capture,
        output_dir,
        capture,
        run=run,
        leave_part=True,
        shared="gs://b/x",
        copy_url="gs://b",
        gather=gather,
        publish=Publish("r", "auto", True),
    )
    assert Job.from_json(job.to_json()) == job


def test_summary_and_report_are_written(capture, output_dir, tmp_path):
    copy_dir = tmp_path / "copy"
    assert problem_of(ingestions(), Job(capture, output_dir, copy_dir)) is None
    assert written(copy_dir) == written(output_dir) == [PAGE_FILE, REPORT_FILE, SUMMARY_FILE]
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
    assert written(output_dir) == []


def test_what_is_given_up_is_stopped_and_leaves_no_half_output(
    capture, output_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    jobs = ingestions()
    jobs.add(Job(capture, output_dir))
    jobs.add(Job(capture, tmp_path / "second"))
    child = child_of(jobs)
    wait_until(lambda: list(output_dir.glob(".marin-profile-*")))
    assert jobs.running
    jobs.stop()
    assert not jobs.running
    assert not alive(child)
    assert jobs.advance() == []
    assert written(output_dir) == []
    assert not (tmp_path / "second").exists()


def test_a_job_over_its_time_limit_ends_by_itself(capture, output_dir, monkeypatch):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    problem = problem_of(ingestions(seconds=1), Job(capture, output_dir))
    assert problem is not None
    assert "exit 124: stopped after its limit of 1 s" in problem
    assert written(output_dir) == []


@pytest.mark.parametrize(
    ("processors", "in_a_hurry", "rests"),
    [(2, False, True), (8, False, False), (2, True, False)],
)
def test_the_child_rests_where_processors_are_few(processors, in_a_hurry, rests):
    """Three times as long as it works, here 0.3 s; the timer behind it kills nobody afterwards."""
    code = f"""
import os, time, types
from marin_profile.profiling import worker
os.sched_getaffinity = lambda _: set(range({processors}))
hurry = types.SimpleNamespace(told={in_a_hurry})
slept = []
sleep = time.sleep
def counted(seconds):
    slept.append(seconds)
    sleep(seconds)
time.sleep = counted
began = time.process_time()
with worker._resting(hurry):
    while time.process_time() < began + 0.3:
        pass
print(sum(slept))
while time.process_time() < began + 0.4:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    slept = float(done.stdout)
    assert 3 * 0.2 < slept < 3 * 0.4 if rests else slept == 0


def test_the_child_yields_to_training_until_it_is_told_to_hurry(capture, output_dir, monkeypatch):
    monkeypatch.setenv("INGEST_FAULT", "slow_write")
    jobs = ingestions()
    jobs.add(Job(capture, output_dir))
    child = child_of(jobs)
    wait_until(lambda: os.sched_getscheduler(child) == os.SCHED_IDLE)
    # Its session is that of training: in one of its own its priority would not count.
    assert os.getsid(child) == os.getsid(0)
    assert os.getpgid(child) == child
    jobs.hurry()
    if os.geteuid() == 0:  # others may be refused
        wait_until(lambda: os.sched_getscheduler(child) == os.SCHED_OTHER)
    jobs.stop()
    assert not alive(child)


# The driver of a worker on two processors that works until its pauses are over, then summarises.
UNPRIVILEGED = """
import os, sys, time
from pathlib import Path
if "marin_profile.profiling.worker" in sys.orig_argv:
    import signal
    import marin_profile.pipeline as pipeline
    os.sched_getaffinity = lambda _: {0, 1}
    summarize_capture = pipeline.summarize_capture

    def until_it_rests_no_more(*arguments, **options):
        state = Path(os.environ["STATE"])
        (state / "rests").write_text(str(signal.getitimer(signal.ITIMER_PROF)[1]))
        while signal.getitimer(signal.ITIMER_PROF) != (0.0, 0.0):
            pass
        (state / "hurries").write_text(str(os.geteuid()))
        return summarize_capture(*arguments, **options)

    pipeline.summarize_capture = until_it_rests_no_more
"""
DRIVER = """
import os, sys, time
from pathlib import Path
from marin_profile.profiling.ingestion import Ingestions, Limits
from marin_profile.profiling.job import Job
folder, patience = Path(sys.argv[1]), float(sys.argv[2])
os.environ["STATE"] = str(folder)
jobs = Ingestions("subprocess", Limits(patience, 32))
jobs.add(Job(Path(sys.argv[3]), folder / "out"))
ended = jobs.advance()
while not (folder / "rests").exists() and not ended:
    time.sleep(0.05)
    ended = jobs.advance()
assert not ended, ended
assert not (folder / "hurries").exists()
jobs.hurry()
while not ended:
    time.sleep(0.05)
    ended = jobs.advance()
print(ended[0].reason)
"""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv")
def test_without_privileges_the_child_leaves_its_pauses_too(monkeypatch):
    """As another user, without capabilities: it may not raise its priority, but need not to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = leave_capture(folder / "profiler")
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(UNPRIVILEGED)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        path = os.environ.get("PYTHONPATH", "")
        monkeypatch.setenv("PYTHONPATH", f"{folder / 'site'}{os.pathsep}{path}")
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "numba"))
        # An interpreter below root's home must be found.
        caps = "-all,+dac_read_search"
        other_user = ["setpriv", "--reuid", "65534", "--clear-groups"]
        other_user += [f"--inh-caps={caps}", f"--ambient-caps={caps}"]
        driver = [sys.executable, "-c", DRIVER, name, str(PATIENCE), str(capture)]
        done = subprocess.run(
            [*other_user, *driver], cwd=folder, capture_output=True, text=True, timeout=2 * PATIENCE
        )
        assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr[-3000:]
        assert float((folder / "rests").read_text()) > 0
        assert (folder / "hurries").read_text() == "65534"


def test_jobs_run_one_after_the_other(capture, tmp_path):
    jobs = ingestions()
    todo = [Job(capture, tmp_path / name) for name in "abc"]
    for job in todo:
        jobs.add(job)
    ended = all_of(jobs, len(todo))
    assert [(outcome.job, outcome.reason) for outcome in ended] == [(job, None) for job in todo]


def test_a_full_disk_is_reported_and_leaves_no_half_output(capture, output_dir):
    output_dir.mkdir()
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from marin_profile.profiling.ingestion import Ingestions, Limits\n"
        "from marin_profile.profiling.job import Job\n"
        "jobs, out = Ingestions('subprocess', Limits(600, 32)), Path(sys.argv[2])\n"
        "jobs.add(Job(Path(sys.argv[1]), out))\n"
        "while not (ended := jobs.advance()): time.sleep(0.05)\n"
        "print(ended[0].reason, *(path.name for path in out.iterdir()), sep='\\n')\n"
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
        "from marin_profile.profiling.ingestion import Ingestions, Limits\n"
        "from marin_profile.profiling.job import Job\n"
        "jobs = Ingestions('subprocess', Limits(3600, 32))\n"
        "jobs.add(Job(Path(sys.argv[1]), Path(sys.argv[2])))\n"
        "jobs.advance()\n"
        "print(jobs._current._process.pid, flush=True)\n"
        "time.sleep(3600)\n"
    )
    command = [sys.executable, "-c", code, str(capture), str(output_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = iter(parent.stdout.readline, "")
        child = next(int(line) for line in lines if line.strip().isdigit())
        wait_until(lambda: list(output_dir.glob(".marin-profile-*")))
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
