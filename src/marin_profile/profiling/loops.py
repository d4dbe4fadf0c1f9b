"""For loops without a Trainer: `profile_window`, one capture around any code that runs JAX.

Contract
* Steps are what the code marks with `jax.profiler.StepTraceAnnotation`, under any name.
* The capture begins when the devices have done what they were given before, and ends when they
  have done what the code gave them.
* Nothing here raises into the code: a failure is one log line. The code's own exceptions pass
  through, and the capture up to there is kept.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from marin_profile.capture.filenames import REPORT_FILE, SUMMARY_FILE
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.devices import DeviceWork
from marin_profile.profiling.ingestion import Ingestions, Limits
from marin_profile.profiling.job import Job
from marin_profile.profiling.trace import Trace, reason

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.05  # seconds


@dataclass
class ProfiledWindow:
    """What became of a window; `folder` is None if the profiler did not start."""

    folder: Path | None
    _ingestions: Ingestions
    _timeout: float
    _left: int = 0
    _problem: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def summary(self) -> Path | None:
        """Where the summary is, or will be once `finish` returned None."""
        return self.folder / SUMMARY_FILE if self.folder else None

    @property
    def report(self) -> Path | None:
        return self.folder / REPORT_FILE if self.folder else None

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to wait for; never waits, and may be asked in another thread."""
        self._advance()
        return not self._left

    @property
    def problem(self) -> str | None:
        """What went wrong so far."""
        return self._problem

    def finish(self) -> str | None:
        """Wait for summary and report, at most `ingest_timeout` seconds. None, or what went wrong.

        Without a call it runs at the interpreter's exit.
        """
        atexit.unregister(self.finish)
        self._ingestions.hurry()
        deadline = time.monotonic() + self._timeout
        while not self.is_done:
            if time.monotonic() >= deadline:
                self._give_up(f"not done within {self._timeout:g} s")
            else:
                time.sleep(LOOK_EVERY)
        if self._problem is not None:
            logger.warning(
                "%s: not summarised: %s; to finish it: marin-profile finish %s",
                self.folder,
                self._problem,
                self.folder,
            )
        return self._problem

    def _ingest(self, job: Job) -> None:
        self._left = 1
        atexit.register(self.finish)
        self._ingestions.add(job)
        self._advance()

    def _advance(self) -> None:
        with self._lock:
            for outcome in self._ingestions.advance():
                self._left -= 1
                self._problem = outcome.reason

    def _give_up(self, why: str) -> None:
        with self._lock:
            self._ingestions.stop()
            self._left = 0
            self._problem = why


@contextmanager
def profile_window(
    folder: str | Path, config: ProfilerConfig | None = None
) -> Iterator[ProfiledWindow]:
    """Capture the block into `folder/plugins/profile/<timestamp>` and summarise it there.

    The config says what is recorded and how it is summarised; its windows have no effect.
    """
    config = config or ProfilerConfig()
    work = DeviceWork() if config.is_on else None
    trace = _started(Path(folder), config, work) if work is not None else None
    limits = Limits(config.ingest_time_limit, config.ingest_memory_gb)
    ingestions = Ingestions(config.ingest_in, limits)
    window = ProfiledWindow(trace.folder if trace else None, ingestions, config.ingest_timeout)
    try:
        yield window
    finally:
        if trace is not None and work is not None and _stopped(trace, work) and config.ingest:
            window._ingest(Job(trace.folder, trace.folder))


def _started(folder: Path, config: ProfilerConfig, work: DeviceWork) -> Trace | None:
    work.wait()
    try:
        return Trace.start(
            folder,
            config.profile_options,
            perfetto_link=config.perfetto_link,
            perfetto_trace=config.create_perfetto_trace,
        )
    except Exception as error:
        logger.warning("not profiled: %s", reason(error))
        return None


def _stopped(trace: Trace, work: DeviceWork) -> bool:
    try:
        try:
            work.wait()
        finally:
            trace.stop()
    except Exception as error:
        logger.warning("profile lost: %s", reason(error))
        return False
    return True
