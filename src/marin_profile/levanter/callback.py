"""ProfileCallback: captures windows of training steps and hands each capture to ingestion.

Contract
* It starts and stops JAX's profiler itself; Levanter's own profiler hook stays off.
* Nothing it does raises into training: a failure is one log line.
* No trace stays open: it is closed after the last step of its window, at the latest by the forced
  call at the end of training, or when the interpreter exits.
* A capture is summarised once enough steps after it are known to judge it by; no step waits.
* The forced call waits for summaries and for the tracker, up to `ingest_timeout`: afterwards all
  outputs are there. Training that ends without it logs a line on how to finish.
* Captures go to `<log_dir>/<run_id>/profiler/plugins/profile/<timestamp>`, with several processes
  to a `process_<n>` folder each below `profiler`. Context, summary and report lie next to their
  capture; the newest summary and report of the first process that captures, which takes those of
  the others in, also go to the output folder.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import levanter.tracker
from levanter.callbacks import Callback, StepInfo
from levanter.trainer import Trainer

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import is_url
from marin_profile.capture.filenames import PROFILE_FOLDERS
from marin_profile.levanter.config import ProfilerConfig
from marin_profile.levanter.context import FEWEST_QUIET_STEPS, CaptureNotes, StepTimes
from marin_profile.levanter.ingestion import Ingestions, Limits, Outcome
from marin_profile.levanter.job import Gather, Job, Publish
from marin_profile.levanter.lines import levanter_line
from marin_profile.levanter.publishing import Publishing
from marin_profile.levanter.run import Run, run_facts, shared_profile_dir
from marin_profile.levanter.trace import Trace, reason
from marin_profile.levanter.triggers import OnDemand
from marin_profile.levanter.windows import Plan, SlowSteps, plan, steps_text, windows_over

logger = logging.getLogger(__name__)

# So many captures get the steps after them into their context when training ends.
CONTEXTS_KEPT = 20
PLANNED, ON_DEMAND, SLOW_STEP = "planned", "on_demand", "slow_step"


@dataclass
class _Running:
    """The capture in progress."""

    window: range
    notes: CaptureNotes


class ProfileCallback(Callback):
    """Takes the captures of one process; must see every step (`add_hook(..., every=1)`).

    `facts()` gives what the run knows of itself, by the names of RunMetadata.
    """

    def __init__(
        self,
        config: ProfilerConfig,
        schedule: Plan,
        run: Run,
        facts: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._config = config
        self._plan = schedule
        self._run = run
        self._facts = facts
        self.output_dir = Path(config.output_dir) if config.output_dir else run.log_dir
        self._running: _Running | None = None
        self._taken: deque[CaptureNotes] = deque(maxlen=CONTEXTS_KEPT)
        self._settling: list[tuple[CaptureNotes, int]] = []
        self._failed: set[int] = set()
        self._times = StepTimes()
        self._on_demand = OnDemand(run.log_dir) if config.on_demand else None
        self._slow_steps = (
            SlowSteps(config.anomaly_factor, config.max_anomalies)
            if config.anomaly_factor is not None
            else None
        )
        self._ingestions = Ingestions(
            config.ingest_in, Limits(config.ingest_time_limit, config.ingest_memory_gb)
        )
        self._publishing = Publishing(run.run_id, config.ingest_timeout)
        # Logged at exit if training ends without its forced call, as it does when it raises.
        atexit.register(self._log_unfinished)

    @property
    def ingesting(self) -> bool:
        """Whether a capture is being summarised right now, or is about to be."""
        return bool(self._settling) or self._ingestions.running

    def on_step(self, info: StepInfo, force: bool = False) -> None:
        try:
            if not force:
                self._record(info)
            self._advance(info, force)
            self._ingest_settled(info.step, force)
            self._log(self._ingestions.advance())
            if force:
                self._finish()
        except Exception as error:
            logger.warning("profiling failed: %s: %s", type(error).__name__, error)

    def _record(self, info: StepInfo) -> None:
        if self._running is not None:
            steps: MutableSequence[tuple[int, float]] = self._running.notes.profiled
        else:
            busy = self._ingestions.running
            steps = self._times.while_ingesting if busy else self._times.quiet
        steps.append((info.step, info.step_duration))

    def _advance(self, info: StepInfo, force: bool) -> None:
        running = self._running
        if running is not None and (force or info.next_step not in running.window):
            self._stop(running, info.state)
        if force or self._running is not None:
            return
        window, trigger = self._due(info)
        if window:
            self._start(window, trigger, info.state)

    def _due(self, info: StepInfo) -> tuple[range | None, str]:
        """The window that begins with the next step, and why."""
        slow = self._is_slow(info)
        planned = self._plan.at(info.next_step)
        if planned and planned.stop not in self._failed:
            return planned, PLANNED
        if self._on_demand is not None and self._on_demand.requested():
            logger.info("a profile was requested")
            return self._triggered(info.next_step), ON_DEMAND
        if slow:
            logger.info("step %d took %.3f s: profiling", info.step, info.step_duration)
            return self._triggered(info.next_step), SLOW_STEP
        return None, ""

    def _is_slow(self, info: StepInfo) -> bool:
        if self._slow_steps is None or info.step == self._run.recompiles_at:
            return False
        is_quiet = bool(self._times.quiet) and self._times.quiet[-1][0] == info.step
        return is_quiet and self._slow_steps.is_slow(info.step_duration)

    def _triggered(self, step: int) -> range:
        stop = min(step + self._config.triggered_steps, self._run.num_train_steps)
        planned = self._plan.after(step)
        return range(step, stop if planned is None else min(stop, planned))

    def _start(self, window: range, trigger: str, state: Any) -> None:
        # The loss is there, but the rest of the step may still run: it is not part of the window.
        jax.block_until_ready(state)
        try:
            trace = Trace.start(
                self._run.own_dir,
                self._config.profile_options,
                perfetto_link=self._config.perfetto_link and self._run.index == 0,
                perfetto_trace=self._config.create_perfetto_trace,
            )
        except Exception as error:
            self._failed.add(window.stop)
            logger.warning("%s: not profiled: %s", steps_text(window), reason(error))
            return
        notes = CaptureNotes(
            self._run.run_id,
            self._run.index,
            self._run.count,
            self._config.capturing(self._run.count),
            trigger,
            trace,
        )
        self._running = _Running(window, notes)
        logger.info("profiling %s", steps_text(window))

    def _stop(self, running: _Running, state: Any) -> None:
        self._running = None
        notes = running.notes
        try:
            try:
                jax.block_until_ready(state)
            finally:
                notes.trace.stop()
        except Exception as error:
            self._failed.add(running.window.stop)
            logger.warning("%s: profile lost: %s", steps_text(running.window), reason(error))
            return
        logger.info("profile written to %s", notes.folder)
        self._taken.append(notes)
        self._write_context(notes)
        if self._config.ingest:
            self._settling.append((notes, running.window.stop - 1 + FEWEST_QUIET_STEPS))

    def _ingest_settled(self, step: int, force: bool) -> None:
        """Ingest the captures that are followed by enough steps to judge them by; never during
        another capture."""
        while self._settling and (
            force or (self._running is None and step >= self._settling[0][1])
        ):
            notes, _ = self._settling.pop(0)
            notes.settle(self._times)
            self._write_context(notes)
            self._log(self._ingestions.add(self._job(notes)))

    def _job(self, notes: CaptureNotes) -> Job:
        run, folder = self._run, notes.folder
        shared = None
        if run.own_shared is not None:
            shared = "/".join((run.own_shared, *PROFILE_FOLDERS, folder.name))
        capturing = self._config.capturing(run.count)
        is_first = run.index == capturing[0]
        gather = None
        if is_first and run.count > 1:
            root = run.shared or str(run.profile_dir)
            session = shared or str(folder)
            gather = Gather(root, session, capturing, self._config.hosts_timeout)
        publish = None
        if is_first and self._config.log:
            publish = Publish(run.run_id, self._config.upload, self._config.redact)
        return Job(
            capture_dir=folder,
            output_dir=folder,
            copy_dir=self.output_dir if is_first else None,
            run=self._facts(),
            leave_part=run.count > 1,
            shared=shared,
            gather=gather,
            publish=publish,
        )

    def _finish(self) -> None:
        atexit.unregister(self._log_unfinished)
        if not self._taken and self._plan.windows and not self._failed:
            logger.warning(
                "nothing was profiled: training did not pass %s",
                steps_text(self._plan.windows[0]),
            )
        deadline = time.monotonic() + self._config.ingest_timeout
        self._log(self._ingestions.finish(self._config.ingest_timeout))
        self._publishing.finish(max(deadline - time.monotonic(), 0))
        for notes in self._taken:
            self._write_context(notes)

    def _log_unfinished(self) -> None:
        waiting = [Job(notes.folder, notes.folder) for notes, _ in self._settling]
        for job in (*self._ingestions.left, *waiting):
            logger.warning(
                "training ended before the profile in %s was summarised; to finish it: %s",
                job.capture_dir,
                job.command,
            )

    def _write_context(self, notes: CaptureNotes) -> None:
        try:
            notes.write(self._times)
        except ProfileError as error:
            logger.warning("no context written next to the profile: %s", error)

    def _log(self, ended: Iterable[Outcome]) -> None:
        for outcome in ended:
            if outcome.problem is not None:
                logger.warning("%s", outcome.problem)
                continue
            job = outcome.job
            logger.info("profile summary and report written to %s", job.output_dir)
            if job.publish is not None:
                self._publishing.start(levanter.tracker.current_tracker(), job.output_dir)


def install(trainer: Trainer, config: ProfilerConfig | None = None) -> ProfileCallback | None:
    """Add the callback to `trainer`; None if it has nothing to do.

    Raises ValueError for a window that could never start and where Levanter's own profiler is on,
    UnsupportedLevanterError.
    """
    config = config or ProfilerConfig()
    line = levanter_line()
    if not config.enabled:
        return None
    # Refused in every process alike, so that none waits for one that is gone.
    if getattr(trainer.config.profiler, "is_enabled", False):
        # Its start_trace raises into training if a trace of ours is open.
        raise ValueError(
            "Levanter's own profiler is on (trainer.profiler.enabled), and a process can run only "
            "one: turn it off, or leave this one out."
        )
    schedule = plan(config, trainer.num_train_steps, line.first_step)
    index, count = jax.process_index(), jax.process_count()
    if index not in config.capturing(count):
        return None
    _warn_of_windows_out_of_reach(schedule, trainer.num_train_steps)
    if not schedule.windows and not config.on_demand and config.anomaly_factor is None:
        return None
    recompiles_at = line.recompiles_at(trainer.config.watch)
    for window in windows_over(schedule.windows, recompiles_at):
        logger.warning(
            "%s: Levanter recompiles the training step at step %d (trainer.watch.interval), "
            "which makes this profile large and slow to write",
            steps_text(window),
            recompiles_at,
        )
    log_dir = trainer.config.log_dir
    run = Run(
        run_id=trainer.run_id,
        log_dir=Path(log_dir) / trainer.run_id,
        num_train_steps=trainer.num_train_steps,
        index=index,
        count=count,
        shared=shared_profile_dir(Path(log_dir), config.shared_dir, trainer.run_id),
        recompiles_at=recompiles_at,
    )
    if count > 1:
        _claim(run.own_dir)
        if run.own_shared is not None and not is_url(run.own_shared):
            _claim(Path(run.own_shared))
    callback = ProfileCallback(config, schedule, run, lambda: run_facts(run, trainer))
    trainer.add_hook(callback, every=1)
    return callback


def _claim(folder: Path) -> None:
    """Show the other processes that this one sees the same folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        logger.warning("profiles cannot be written to %s: %s", folder, error.strerror)


def _warn_of_windows_out_of_reach(schedule: Plan, num_train_steps: int) -> None:
    if not schedule.behind:
        return
    what = "not every window will be profiled" if schedule.windows else "no window will be profiled"
    logger.warning(
        "%s: training ends with step %d, before step %s",
        what,
        num_train_steps - 1,
        " and step ".join(map(str, schedule.behind)),
    )
