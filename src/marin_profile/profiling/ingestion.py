"""Ingestion as its caller sees it: jobs in, how each ended out.

Contract
* One job at a time; the others wait. `add` and `advance` return at once (but for `inline`); none
  raises for what goes wrong with a job.
* By default the work runs in a plain subprocess: a thread would take the GIL from training, and a
  forked child would inherit jax's locks. It is asked to hurry through a pipe, which needs no
  privilege; it ends with the process that started it.
* What the subprocess prints goes to `profile_ingest.log` next to the outputs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from marin_profile.capture.filenames import INGEST_LOG_FILE
from marin_profile.profiling.job import Job
from marin_profile.profiling.worker import DONE_WITH_A_PROBLEM, HURRY, ingest

# The child needs no accelerator, and flags meant for training must not reach it.
_TRAINING_VARIABLES = ("JAX_", "XLA_", "LIBTPU_", "TPU_")
_SAFE_PYTHON = (sys.executable, "-P", "-m")
_SECONDS_TO_END = 5


@dataclass(frozen=True)
class Limits:
    seconds: float
    memory_gb: float


@dataclass(frozen=True)
class Outcome:
    """A job that ended. `reason`: why its outputs are not there, None if they are; `problems`: what
    else did not go well."""

    job: Job
    reason: str | None
    problems: tuple[str, ...] = ()


class _Work(Protocol):
    def is_over(self) -> bool: ...

    def outcome(self) -> Outcome:
        """How it ended, once it did."""

    def hurry(self) -> None:
        """Rest no more: training waits for it now."""

    def stop(self) -> None:
        """Give it up."""


@dataclass
class Ingestions:
    """The jobs of a run, in the order of their captures."""

    how: str
    limits: Limits
    num_started: int = 0
    _waiting: deque[Job] = field(default_factory=deque)
    _current: _Work | None = None
    _ended: list[Outcome] = field(default_factory=list)
    _in_a_hurry: bool = False

    @property
    def running(self) -> bool:
        return self._current is not None and not self._current.is_over()

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def advance(self) -> list[Outcome]:
        """Start the next job if there is room; what ended since the last call."""
        if self._current is not None and self._current.is_over():
            self._ended.append(self._current.outcome())
            self._current = None
        if self._current is None and self._waiting:
            self._start(self._waiting.popleft())
        ended, self._ended = self._ended, []
        return ended

    def hurry(self) -> None:
        """No job rests from now on. May be called from another thread."""
        self._in_a_hurry = True
        current = self._current
        if current is not None:
            current.hurry()

    def stop(self) -> None:
        """Give up what is left."""
        self._waiting.clear()
        if self._current is not None:
            self._current.stop()
            self._current = None

    def _start(self, job: Job) -> None:
        self.num_started += 1
        try:
            self._current = _STARTERS[self.how](job, self.limits)
        except Exception as error:
            self._ended.append(Outcome(job, f"{type(error).__name__}: {error}"))
            return
        if self._in_a_hurry or self.how == "inline":
            self._current.hurry()


class _Subprocess:
    def __init__(self, job: Job, limits: Limits) -> None:
        self._job = job
        job.output_dir.mkdir(parents=True, exist_ok=True)
        self._log = job.output_dir / INGEST_LOG_FILE
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                _command(job, limits),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                # Out of reach of Ctrl-C, but in the session of training: a session of its own would
                # get an equal share of the processors from Linux (autogroup), however nice it is.
                process_group=0,
            )

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def outcome(self) -> Outcome:
        self._close()
        code = self._process.returncode
        last_line = _last_line(self._log)
        if code == 0:
            return Outcome(self._job, None)
        if code == DONE_WITH_A_PROBLEM:
            return Outcome(self._job, None, (last_line,))
        how = f"exit {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
        return Outcome(self._job, f"{how}: {last_line}" if last_line else how)

    def hurry(self) -> None:
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(HURRY)
            self._process.stdin.flush()

    def stop(self) -> None:
        for end in (self._process.terminate, self._process.kill):
            end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
                break
        self._close()

    def _close(self) -> None:
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()


def _command(job: Job, limits: Limits) -> list[str]:
    return [
        *(*_SAFE_PYTHON, "marin_profile.profiling.worker"),
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
        self._is_in_a_hurry = False
        self._outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            problems = ingest(self._job, lambda: self._is_in_a_hurry)
            self._outcome = Outcome(self._job, None, tuple(problems))
        except Exception as error:
            self._outcome = Outcome(self._job, f"{type(error).__name__}: {error}")

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def outcome(self) -> Outcome:
        return self._outcome or Outcome(self._job, "its thread was stopped")

    def hurry(self) -> None:
        """It never rests, but may wait for other processes."""
        self._is_in_a_hurry = True

    def stop(self) -> None:
        """A thread cannot be stopped: it ends with the process."""


_STARTERS: dict[str, Callable[[Job, Limits], _Work]] = {
    "subprocess": _Subprocess,
    "thread": _Here,
    "inline": _Here,  # training waits for it
}
