"""Real child processes: how they end, what they leave, and what becomes of them when we go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from marin_profile.base.errors import UsageError
from marin_profile.base.owner import Owner
from marin_profile.experiment.lock import LOCK_FILE, MARK, Lock, only_runner
from marin_profile.experiment.process import Command, Ended, run
from patience import running_with, wait_until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the system tells of descendants")
# A child of the command that goes into a session of its own and outlives it, unless it is ended.
DAEMON = (
    "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', "
    "'import time; time.sleep(600)', sys.argv[1]], start_new_session=True)"
)


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Lock]:
    with only_runner(tmp_path / "held") as held:
        yield held


def command(tmp_path: Path, code: str, *arguments: str, **facts) -> Command:
    """Python code to run."""
    return Command(
        arguments=(sys.executable, "-c", code, *arguments),
        folder=tmp_path,
        log=tmp_path / "log",
        environment=facts.pop("environment", {}),
        **facts,
    )


def test_what_it_sees(tmp_path: Path, lock: Lock) -> None:
    code = (
        "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['MINE'], "
        "'PATH' in os.environ, sys.stdin.read() == ''); sys.stderr.write('and this')"
    )
    odd = ("a b", "$(touch x)", "; rm -rf *", "'\"", "--", "", "é\n*")
    ended = run(command(tmp_path, code, *odd, environment={"MINE": "it's"}), lock)
    assert ended.succeeded, (tmp_path / "log").read_text()
    said = (tmp_path / "log").read_text()
    assert said == f"{list(odd)} {tmp_path} it's True True\nand this"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held", "log"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("import os; os.abort()", "was ended by SIGABRT"),
    ],
)
def test_how_it_failed(tmp_path: Path, lock: Lock, code: str, why: str) -> None:
    ended = run(command(tmp_path, code), lock)
    assert not ended.succeeded
    assert ended.why_not() == why


def test_what_cannot_be_started(tmp_path: Path, lock: Lock) -> None:
    for arguments, folder in ((("/no/such",), tmp_path), (("true",), tmp_path / "none")):
        ended = run(Command(arguments, folder, tmp_path / "log", {}), lock)
        assert not ended.succeeded
        assert ended.why_not() == f"cannot be started ({arguments[0]}): No such file or directory"


def test_time_is_over_for_all_of_its_group(tmp_path: Path, lock: Lock) -> None:
    """Neither the command nor its child heeds SIGTERM."""
    mark = f"mark-{os.getpid()}-group"
    code = (
        "import signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN); "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]]); "
        "print('began', flush=True); time.sleep(600)"
    )
    ended = run(command(tmp_path, code, mark, timeout=1.5, grace=0.2), lock)
    assert (ended.succeeded, ended.timed_out) == (False, True)
    assert ended.why_not(1.5) == "ran longer than its 1.5 s"
    assert ended.seconds >= 1.5
    assert running_with(mark) == []


def test_it_may_end_in_peace(tmp_path: Path, lock: Lock) -> None:
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: (print('bye'), sys.exit())); "
        "time.sleep(600)"
    )
    ended = run(command(tmp_path, code, timeout=2.0, grace=600.0), lock)
    assert ended.timed_out
    assert (tmp_path / "log").read_text() == "bye\n"


@LINUX
def test_what_it_left_behind_is_ended(tmp_path: Path, lock: Lock) -> None:
    mark = f"mark-{os.getpid()}-daemon"
    assert run(command(tmp_path, DAEMON, mark), lock).succeeded
    assert running_with(mark) == []


def test_a_watcher_that_is_killed(tmp_path: Path, lock: Lock) -> None:
    mark = f"mark-{os.getpid()}-unwatched"
    code = "import os, time; os.kill(os.getppid(), 9); time.sleep(600)"
    ended = run(command(tmp_path, code, mark), lock)
    assert "lost the process that watches it, which ended by SIGKILL" in ended.why_not()
    wait_until(lambda: not running_with(mark))


def test_no_list_of_processes_shows_the_environment(tmp_path: Path, lock: Lock) -> None:
    code = "import subprocess; print(subprocess.run(['ps', '-eo', 'args'], capture_output=True))"
    value = f"hush-{os.getpid()}"
    assert run(command(tmp_path, code, environment={"TOKEN": value}), lock).succeeded
    assert value not in (tmp_path / "log").read_text()


# The runner is killed


RUNNER = """
import sys
from pathlib import Path
from marin_profile.experiment.lock import only_runner
from marin_profile.experiment.process import Command, run
folder, mark, code = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with only_runner(folder) as lock:
    print("began", flush=True)
    run(Command((sys.executable, "-c", code, mark), folder, folder / "log", {}, grace=0.5), lock)
"""
STUBBORN = (
    "import signal, sys, time; signal.signal(15, signal.SIG_IGN); "
    "print('began', flush=True); time.sleep(600)"
)


def started(folder: Path, mark: str, code: str) -> subprocess.Popen[bytes]:
    """A runner whose command is under way."""
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(folder), mark, code])
    wait_until(
        lambda: "began" in ((folder / "log").read_text() if (folder / "log").exists() else "")
    )
    return runner


def test_a_runner_that_is_killed_leaves_nothing_beside_the_next(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-killed"
    runner = started(tmp_path, mark, STUBBORN)
    [pid] = [one for one in running_with(mark) if one != runner.pid]
    runner.kill()  # and it stays a zombie: nobody waits for it yet
    with only_runner(tmp_path):
        assert Owner.of(pid) is None
    runner.wait()


@LINUX
def test_runner_and_watcher_that_are_killed_at_once(tmp_path: Path) -> None:
    """What the command put out of reach is found by its environment."""
    mark = f"mark-{os.getpid()}-both"
    runner = started(
        tmp_path, mark, f"{DAEMON}; print('began', flush=True); import time; time.sleep(600)"
    )
    wait_until(lambda: len(running_with(mark)) >= 3)
    [watcher] = [
        int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        for pid in running_with(mark, "import os, subprocess")
        if pid != runner.pid
    ]
    os.kill(runner.pid, signal.SIGSTOP)
    os.kill(watcher, signal.SIGKILL)
    runner.kill()
    runner.wait()
    with only_runner(tmp_path):
        assert running_with(mark) == []


def test_a_runner_that_is_interrupted(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-interrupted"
    runner = started(tmp_path, mark, "import time; print('began', flush=True); time.sleep(600)")
    runner.send_signal(signal.SIGINT)
    assert runner.wait() != 0
    assert running_with(mark) == []


def test_one_runner_at_a_time(tmp_path: Path) -> None:
    with only_runner(tmp_path) as lock:
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
        assert lock.mark == {MARK: str(tmp_path)}
        with pytest.raises(UsageError, match=f"Process {os.getpid()} is at work in {tmp_path}"):
            only_runner(tmp_path).__enter__()
    with only_runner(tmp_path):
        pass


def test_an_end_in_words() -> None:
    assert Ended(timed_out=True).why_not() == "ran too long"
    assert Ended().why_not() == "was stopped"
    assert Ended(code=-64).why_not() in ("was ended by SIGRTMAX", "was ended by signal 64")
    assert Ended(code=0).succeeded
