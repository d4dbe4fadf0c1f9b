"""Runs one command and ends all of it: in time, or when whoever asked for it is gone.

Contract
* A script of its own, `python -I -S supervisor.py`, that imports nothing of the package. A line of
  JSON on stdin says what to run; the end of stdin says to stop. On stdout stand two lines of JSON:
  the process, and what became of it.
* The command is the leader of a session of its own. It is over when its first process is; what
  that left behind is ended then. To end is SIGTERM, then SIGKILL after `grace` seconds.
* It leaves nothing running: it waits until the group is empty and, where the system tells
  (Linux), until no descendant is left, wherever that went. Where this process is killed itself,
  the command's first process goes with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

LIFELINE, ANSWERS = 0, 1
LOOK_EVERY = 0.05  # seconds, while processes are ended
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeups:
    """Signals as something to wait for."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        for end in (self._read, write):
            os.set_blocking(end, False)
        for number in (signal.SIGCHLD, *STOPS):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def told_to_stop(self, seconds: float | None) -> bool:
        """Wait for a process that ended, or so long; whether stdin or a signal says to stop."""
        ready, _, _ = select.select([LIFELINE, self._read], [], [], seconds)
        return LIFELINE in ready or self._has_stop()

    def rest(self) -> None:
        """Wait a little, or for a process that ended."""
        select.select([self._read], [], [], LOOK_EVERY)
        self._has_stop()

    def _has_stop(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return any(number in STOPS for number in os.read(self._read, 4096))
        return False


class Command:
    """What was started, and its first process's exit code, -n for signal n, once it is known."""

    def __init__(self, spec: dict[str, object]) -> None:
        own, system = os.getpid(), _system()
        if system is not None:
            system.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

        def before() -> None:
            if system is not None:
                system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != own:
                    os._exit(1)

        with open(str(spec["log"]), "ab") as log:
            self._process = subprocess.Popen(
                spec["arguments"],  # type: ignore[call-overload]
                cwd=spec["folder"],
                env=spec["environment"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before,
            )
        self.pid: int = self._process.pid
        self.code: int | None = None

    def reap(self) -> bool:
        """Take note of all that ended; whether anything is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self.pid:
                    self.code = os.waitstatus_to_exitcode(status)
                elif pid == 0:
                    return True
        return self._signal_group(0)

    def send(self, number: int) -> None:
        self._signal_group(number)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _signal_group(self, number: int) -> bool:
        """Whether there is anybody in it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS, of a group of zombies
            return False
        return True


def main() -> None:
    spec = json.loads(_line())
    wakeups = Wakeups()
    try:
        command = Command(spec)
    except (OSError, ValueError) as error:
        _tell({"problem": getattr(error, "strerror", None) or str(error)})
        return
    started = time.monotonic()
    _tell({"pid": command.pid})
    timed_out = _until_over(command, wakeups, started, spec["timeout"])
    seconds = time.monotonic() - started
    _end(command, wakeups, spec["grace"])
    _tell({"code": command.code, "timed_out": timed_out, "seconds": seconds})


def _until_over(command: Command, wakeups: Wakeups, started: float, timeout: float | None) -> bool:
    """Until its first process ended, the time is over (then True), or it is to stop."""
    while True:
        command.reap()
        if command.code is not None:
            return False
        left = None if timeout is None else started + timeout - time.monotonic()
        if left is not None and left <= 0:
            return True
        if wakeups.told_to_stop(left):
            return False


def _end(command: Command, wakeups: Wakeups, grace: float) -> None:
    if command.reap():
        command.send(signal.SIGTERM)
    give_up = time.monotonic() + grace
    while command.reap():
        if time.monotonic() >= give_up:
            command.send(signal.SIGKILL)
        wakeups.rest()


def _children() -> list[int]:
    """Of this process, those included whose own parent is gone; none where nobody tells."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children") as listed:
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []


def _system() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def _line() -> bytes:
    """What is asked for; nothing is read beyond it."""
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        parts.append(os.read(LIFELINE, 1 << 16))
        if not parts[-1]:
            sys.exit()
    return b"".join(parts)


def _tell(fact: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(ANSWERS, json.dumps(fact).encode() + b"\n")


if __name__ == "__main__":
    main()
