"""Ingestion as training sees it: jobs in, one line out for each that failed.

Contract
* One job at a time; the others wait. `add` and `advance` return at once (but for `inline`),
  `finish` within its timeout; none of them raises for what goes wrong with a job.
* By default the work runs in a plain subprocess: a thread would take the GIL from training, and a
  forked child would inherit jax's locks.
* What the subprocess prints goes to `profile_ingest.log` next to the outputs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from marin_profile.capture.filenames import INGEST_LOG_FILE
from marin_profile.levanter.job import Job
from marin_profile.levanter.worker import ingest

# The child needs no accelerator, and flags meant for training must not reach it.
_TRAINING_VARIABLES = ("JAX_", "XLA_", "LIBTPU_", "TPU_")
_SAFE_PYTHON = (sys.executable, "-P", "-m")
_SECONDS_TO_END = 5
RAISE_PRIORITY_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Limits:
    seconds: float
    memory_gb: float


@dataclass(frozen=True)
class Outcome:
    """A job that ended; `problem` is None if its outputs are there."""

    job: Job
    problem: str | None


class _Work(Protocol):
    def wait(self, timeout: float) -> bool:
        """Whether it ended within `timeout` seconds."""

    def reason(self) -> str | None:
        """Why it failed, once it ended."""

    def raise_priority(self) -> None:
        """Run at training's priority: training waits for it now."""

    def stop(self) -> None:
        """Give it up."""


@dataclass
class Ingestions:
    """The jobs of a run, in the order of their captures."""

    how: str
    limits: Limits
    _waiting: deque[Job] = field(default_factory=deque)
    _current: tuple[Job, _Work] | None = None
    _ended: list[Outcome] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self._current is not None and not self._current[1].wait(0)

    def add(self, job: Job) -> list[Outcome]:
        self._waiting.append(job)
        return self.advance()

    def advance(self) -> list[Outcome]:
        """Start the next job if there is room; what ended since the last call."""
        self._advance(0)
        return self._take_ended()

    @property
    def left(self) -> list[Job]:
        """The jobs that have not ended."""
        return [*([self._current[0]] if self._current else ()), *self._waiting]

    def finish(self, timeout: float) -> list[Outcome]:
        """Wait for all jobs, at most so many seconds; what is left is given up, and reported."""
        deadline = time.monotonic() + timeout
        while self._waiting or self._current:
            if self._current is not None:
                # Repeatedly: a child lowers its priority when it starts.
                self._current[1].raise_priority()
            left = max(deadline - time.monotonic(), 0)
            if not self._advance(min(left, RAISE_PRIORITY_EVERY)) and not left:
                self._give_up(timeout)
        return self._take_ended()

    def _advance(self, timeout: float) -> bool:
        """Whether there is nothing left of the current job."""
        if self._current is not None:
            job, work = self._current
            if not work.wait(timeout):
                return False
            self._current = None
            self._ended.append(Outcome(job, _line(job, work.reason())))
        if self._waiting:
            self._start(self._waiting.popleft())
        return True

    def _start(self, job: Job) -> None:
        try:
            self._current = (job, _STARTERS[self.how](job, self.limits))
        except Exception as error:
            self._ended.append(Outcome(job, _line(job, f"{type(error).__name__}: {error}")))

    def _give_up(self, timeout: float) -> None:
        left = [*self._waiting]
        self._waiting.clear()
        if self._current is not None:
            job, work = self._current
            self._current = None
            work.stop()
            left.insert(0, job)
        reason = f"not done within the {timeout:g} s that training waits at its end"
        self._ended += [Outcome(job, _line(job, reason)) for job in left]

    def _take_ended(self) -> list[Outcome]:
        ended, self._ended = self._ended, []
        return ended


def _line(job: Job, reason: str | None) -> str | None:
    if reason is None:
        return None
    return (
        f"the profile in {job.capture_dir} was not summarised ({reason}); "
        f"to finish it: {job.command}"
    )


class _Subprocess:
    def __init__(self, job: Job, limits: Limits) -> None:
        job.output_dir.mkdir(parents=True, exist_ok=True)
        self._log = job.output_dir / INGEST_LOG_FILE
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                _command(job, limits),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                # Out of reach of Ctrl-C, but in the session of training: a session of its own would
                # get an equal share of the processors from Linux (autogroup), however nice it is.
                process_group=0,
            )

    def wait(self, timeout: float) -> bool:
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def reason(self) -> str | None:
        code = self._process.returncode
        if code == 0:
            return None
        how = f"exit {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
        last_line = _last_line(self._log)
        return f"{how}: {last_line}" if last_line else how

    def raise_priority(self) -> None:
        # Each thread has its own priority. Not every user may raise one again.
        with suppress(OSError, AttributeError):
            for thread in os.listdir(f"/proc/{self._process.pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))

    def stop(self) -> None:
        for end in (self._process.terminate, self._process.kill):
            end()
            if self.wait(_SECONDS_TO_END):
                return


def _command(job: Job, limits: Limits) -> list[str]:
    return [
        *(*_SAFE_PYTHON, "marin_profile.levanter.worker"),
        *("--job", job.to_json()),
        *("--parent", str(os.getpid())),
        *("--seconds", str(limits.seconds), "--memory-gb", str(limits.memory_gb)),
    ]


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(_TRAINING_VARIABLES)}


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _Here:
    """In a thread of this process, which its exit does not wait for."""

    def __init__(self, job: Job, limits: Limits) -> None:
        self._job = job
        self._reason: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            ingest(self._job)
        except Exception as error:
            self._reason = f"{type(error).__name__}: {error}"

    def wait(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def reason(self) -> str | None:
        return self._reason

    def raise_priority(self) -> None:
        """It already has the priority of training."""

    def stop(self) -> None:
        """A thread cannot be stopped: it ends with the process."""


def _inline(job: Job, limits: Limits) -> _Here:
    work = _Here(job, limits)
    work.wait(threading.TIMEOUT_MAX)
    return work


_STARTERS: dict[str, Callable[[Job, Limits], _Work]] = {
    "subprocess": _Subprocess,
    "thread": _Here,
    "inline": _inline,
}
