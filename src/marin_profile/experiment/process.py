"""One command at a time, run to its end or ended in time, with all that it starts.

Contract
* A command is a list of arguments; no shell reads it. It sees nothing on stdin; what it writes goes
  to a log file. Its environment is this process's with what is set on top, which goes through a
  pipe: no list of processes shows it.
* `run` returns when nothing of it is left. It ends with this process too, also if that is killed
  (`supervisor`), which then keeps the lock until all has ended.
* What goes wrong with a command is in what it returns, never raised.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marin_profile.experiment.lock import Lock

GRACE = 10.0  # seconds between SIGTERM and SIGKILL
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True)
class Command:
    """`environment` is set on top of this process's; `timeout` and `grace` are seconds."""

    arguments: tuple[str, ...]
    folder: Path
    log: Path
    environment: Mapping[str, str]
    timeout: float | None = None
    grace: float = GRACE


@dataclass(frozen=True)
class Ended:
    """`code`: the exit code, -n for signal n, None where there is none. `seconds`: until then, or
    until the time was over. `problem`: why it could not be started or watched."""

    code: int | None = None
    seconds: float = 0.0
    timed_out: bool = False
    problem: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.code == 0 and not self.timed_out and self.problem is None

    def why_not(self, timeout: float | None = None) -> str:
        """Of one that did not succeed: what went wrong, as the end of a sentence."""
        if self.problem is not None:
            return self.problem
        if self.timed_out:
            return f"ran longer than its {timeout:g} s" if timeout else "ran too long"
        if self.code is None:
            return "was stopped"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        return f"was ended by {_signal_name(-self.code)}"


def run(command: Command, lock: Lock) -> Ended:
    """Run it below the lock's folder. An interrupt ends it first, then passes."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    spec = {
        "arguments": command.arguments,
        "folder": str(command.folder),
        "log": str(command.log.absolute()),
        "environment": {**os.environ, **command.environment, **lock.mark},
        "timeout": command.timeout,
        "grace": command.grace,
    }
    supervisor = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(_SUPERVISOR)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[lock.descriptor],
        start_new_session=True,
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    facts: dict[str, object] = {}
    try:
        with contextlib.suppress(BrokenPipeError):
            supervisor.stdin.write(json.dumps(spec).encode() + b"\n")
            supervisor.stdin.flush()
        for line in supervisor.stdout:
            facts |= json.loads(line)
    finally:
        with contextlib.suppress(BrokenPipeError):
            supervisor.stdin.close()
        supervisor.wait()
        supervisor.stdout.close()
    return _ended(facts, command, supervisor.returncode)


def _ended(facts: dict[str, object], command: Command, code: int) -> Ended:
    if facts.get("problem"):
        return Ended(problem=f"cannot be started ({command.arguments[0]}): {facts['problem']}")
    if "code" not in facts:
        if "pid" in facts:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(str(facts["pid"])), signal.SIGKILL)
        how = f"by {_signal_name(-code)}" if code < 0 else f"with exit code {code}"
        return Ended(problem=f"lost the process that watches it, which ended {how}")
    exit_code = facts["code"]
    return Ended(
        code=exit_code if isinstance(exit_code, int) else None,
        seconds=float(str(facts["seconds"])),
        timed_out=bool(facts["timed_out"]),
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
