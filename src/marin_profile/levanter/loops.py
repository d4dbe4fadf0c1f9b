"""profile_window: a capture around any code that runs JAX, for loops without a Trainer.

Contract
* Steps are what the code marks with `jax.profiler.StepTraceAnnotation`, under any name.
* Nothing here raises into the code: a failure is one log line. The code's own exceptions pass
  through, and the capture up to there is kept.
* Needs jax but not levanter.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from marin_profile.capture.filenames import REPORT_FILE, SUMMARY_FILE
from marin_profile.levanter.config import ProfilerConfig
from marin_profile.levanter.ingestion import Ingestions, Limits, Outcome
from marin_profile.levanter.job import Job
from marin_profile.levanter.trace import Trace, reason

logger = logging.getLogger(__name__)


@dataclass
class ProfiledWindow:
    """What became of a window; `folder` is None if the profiler did not start."""

    folder: Path | None
    _ingestions: Ingestions
    _timeout: float

    @property
    def summary(self) -> Path | None:
        """Where the summary is, or will be once `finish` returned None."""
        return self.folder / SUMMARY_FILE if self.folder else None

    @property
    def report(self) -> Path | None:
        return self.folder / REPORT_FILE if self.folder else None

    def finish(self) -> str | None:
        """Wait for summary and report, at most `ingest_timeout` seconds. None, or what went wrong.

        Without a call it runs at the interpreter's exit.
        """
        atexit.unregister(self.finish)
        problems = [outcome.problem for outcome in self._ingestions.finish(self._timeout)]
        return _log_first(problems)

    def _ingest(self, outcomes: list[Outcome]) -> None:
        atexit.register(self.finish)
        _log_first([outcome.problem for outcome in outcomes])


@contextmanager
def profile_window(
    folder: str | Path, config: ProfilerConfig | None = None
) -> Iterator[ProfiledWindow]:
    """Capture the block into `folder/plugins/profile/<timestamp>` and summarise it there.

    The config says what is recorded and how it is summarised; its windows have no effect.
    """
    config = config or ProfilerConfig()
    trace = _started(Path(folder), config) if config.enabled else None
    limits = Limits(config.ingest_time_limit, config.ingest_memory_gb)
    ingestions = Ingestions(config.ingest_in, limits)
    window = ProfiledWindow(trace.folder if trace else None, ingestions, config.ingest_timeout)
    try:
        yield window
    finally:
        if trace is not None and _stopped(trace) and config.ingest:
            window._ingest(ingestions.add(Job(trace.folder, trace.folder)))


def _started(folder: Path, config: ProfilerConfig) -> Trace | None:
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


def _stopped(trace: Trace) -> bool:
    try:
        trace.stop()
    except Exception as error:
        logger.warning("profile lost: %s", reason(error))
        return False
    return True


def _log_first(problems: list[str | None]) -> str | None:
    for problem in problems:
        if problem is not None:
            logger.warning("%s", problem)
            return problem
    return None
