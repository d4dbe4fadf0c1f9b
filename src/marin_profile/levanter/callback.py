"""ProfileCallback: captures windows of training steps and hands each capture to ingestion.

Contract
* It starts and stops JAX's profiler itself; Levanter's own profiler hook stays off.
* Nothing it does raises into training: what fails is said in one log line.
* No trace stays open: it is closed after the last step of its window, else by the forced call at
  the end of training, else when the interpreter exits.
* The forced call waits for ingestion, up to `ingest_timeout`: afterwards all outputs are there.
* Captures go to `<log_dir>/<run_id>/profiler/plugins/profile/<timestamp>`, with several processes
  to a `process_<n>` folder each below `profiler`. Context, summary and report lie beside their
  capture; the newest summary and report of process 0 also go to the output folder.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import levanter.tracker
from levanter.callbacks import Callback, StepInfo
from levanter.trainer import Trainer

from marin_profile.levanter.config import ProfilerConfig
from marin_profile.levanter.context import CaptureContext, StepTimes
from marin_profile.levanter.ingestion import Ingestions, Limits, Outcome
from marin_profile.levanter.lines import levanter_line
from marin_profile.levanter.publish import publish
from marin_profile.levanter.trace import Trace, reason
from marin_profile.levanter.triggers import OnDemand
from marin_profile.levanter.windows import Plan, SlowSteps, plan, steps_text, windows_over
from marin_profile.levanter.worker import Job

logger = logging.getLogger(__name__)

# So many captures are told at the end of training which steps came after them.
CONTEXTS_KEPT = 20
PLANNED, ON_DEMAND, SLOW_STEP = "planned", "on_demand", "slow_step"


@dataclass(frozen=True)
class RunFacts:
    """What the callback must know about the run; `run_dir` is the run's log folder."""

    run_id: str
    run_dir: Path
    num_train_steps: int
    recompiles_at: int | None = None

    @property
    def profile_dir(self) -> Path:
        return self.run_dir / "profiler"


@dataclass
class _Running:
    """The capture in progress."""

    window: range
    trace: Trace
    context: CaptureContext


class ProfileCallback(Callback):
    """Takes the captures of one process; must see every step (`add_hook(..., every=1)`)."""

    def __init__(self, config: ProfilerConfig, schedule: Plan, run: RunFacts) -> None:
        self._config = config
        self._plan = schedule
        self._run = run
        self.output_dir = Path(config.output_dir) if config.output_dir else run.run_dir
        self._running: _Running | None = None
        self._taken: deque[CaptureContext] = deque(maxlen=CONTEXTS_KEPT)
        self._failed: set[int] = set()
        self._times = StepTimes()
        self._on_demand = OnDemand(run.run_dir) if config.on_demand else None
        self._slow_steps = (
            SlowSteps(config.anomaly_factor, config.max_anomalies)
            if config.anomaly_factor is not None
            else None
        )
        self._ingestions = Ingestions(
            config.ingest_in, Limits(config.ingest_time_limit, config.ingest_memory_gb)
        )

    @property
    def ingesting(self) -> bool:
        """Whether a capture is being summarised right now."""
        return self._ingestions.running

    def on_step(self, info: StepInfo, force: bool = False) -> None:
        try:
            if not force:
                self._record(info)
            self._advance(info, force)
            self._say(self._ingestions.advance())
            if force:
                self._finish()
        except Exception as error:
            logger.warning("profiling failed: %s: %s", type(error).__name__, error)

    def _record(self, info: StepInfo) -> None:
        if self._running is not None:
            steps: MutableSequence[tuple[int, float]] = self._running.context.profiled
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
        if self._on_demand is not None and self._on_demand.asked():
            logger.info("a profile was asked for")
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
        index, count = jax.process_index(), jax.process_count()
        root = self._run.profile_dir
        # The loss is there, the rest of the step may not be: its tail belongs to no step of ours.
        jax.block_until_ready(state)
        try:
            trace = Trace.start(
                root if count == 1 else root / f"process_{index}",
                self._config.profile_options,
                perfetto_link=self._config.perfetto_link and index == 0,
                perfetto_trace=self._config.create_perfetto_trace,
            )
        except Exception as error:
            self._failed.add(window.stop)
            logger.warning("%s: not profiled: %s", steps_text(window), reason(error))
            return
        context = CaptureContext(
            self._run.run_id, index, count, trigger, trace.folder, trace.start_seconds
        )
        self._running = _Running(window, trace, context)
        logger.info("profiling %s", steps_text(window))

    def _stop(self, running: _Running, state: Any) -> None:
        self._running = None
        try:
            try:
                jax.block_until_ready(state)
            finally:
                running.trace.stop()
        except Exception as error:
            self._failed.add(running.window.stop)
            logger.warning("%s: profile lost: %s", steps_text(running.window), reason(error))
            return
        logger.info("profile written to %s", running.trace.folder)
        context = running.context
        context.stop_trace_seconds = running.trace.stop_seconds
        self._taken.append(context)
        self._write_context(context)
        if self._config.ingest:
            self._say(self._ingestions.add(self._job(context)))

    def _job(self, context: CaptureContext) -> Job:
        if context.process_index != 0:
            return Job(context.folder, context.folder)
        # The folder above all processes: the hosts that are there already are summarised together.
        together = context.folder if context.process_count == 1 else self._run.profile_dir
        return Job(together, context.folder, self.output_dir)

    def _finish(self) -> None:
        for context in self._taken:
            self._write_context(context)
        if not self._taken and self._plan.windows and not self._failed:
            logger.warning(
                "nothing was profiled: training did not pass %s",
                steps_text(self._plan.windows[0]),
            )
        self._say(self._ingestions.finish(self._config.ingest_timeout))

    def _write_context(self, context: CaptureContext) -> None:
        try:
            context.write(self._times)
        except OSError as error:
            logger.warning("no context beside the profile: %s", reason(error))

    def _say(self, ended: Iterable[Outcome]) -> None:
        for outcome in ended:
            if outcome.problem is None:
                logger.info("profile summary and report written to %s", outcome.job.output_dir)
                self._publish(outcome.job)
            else:
                logger.warning("%s", outcome.problem)

    def _publish(self, job: Job) -> None:
        if not self._config.log or jax.process_index() != 0:
            return
        try:
            upload = publish(
                levanter.tracker.current_tracker(),
                outputs=job.output_dir,
                capture=job.output_dir,
                run={
                    "run_id": self._run.run_id,
                    "hardware_type": jax.devices()[0].device_kind,
                    "num_devices": jax.device_count(),
                    "num_hosts": jax.process_count(),
                },
                upload=self._config.upload,
            )
        except Exception as error:
            logger.warning("the profile in %s was not logged: %s", job.output_dir, reason(error))
        else:
            what = "with its capture" if upload.wanted else "without its capture"
            logger.info("profile summary handed to the tracker, %s (%s)", what, upload.why)


def install(trainer: Trainer, config: ProfilerConfig | None = None) -> ProfileCallback | None:
    """Add the callback to `trainer`; None if it has nothing to do.

    Raises ValueError for a window that could never start, UnsupportedLevanterError.
    """
    config = config or ProfilerConfig()
    line = levanter_line()
    if not config.enabled or not config.captures_on(jax.process_index()):
        return None
    schedule = plan(config, trainer.num_train_steps, line.first_step)
    _say_what_is_planned(schedule, trainer.num_train_steps)
    if not schedule.windows and not config.on_demand and config.anomaly_factor is None:
        return None
    recompiles_at = line.recompiles_at(trainer.config.watch)
    for window in windows_over(schedule.windows, recompiles_at):
        logger.warning(
            "%s: Levanter compiles the training step anew at step %d (trainer.watch.interval), "
            "which makes this profile large and slow to write",
            steps_text(window),
            recompiles_at,
        )
    run = RunFacts(
        run_id=trainer.run_id,
        run_dir=Path(trainer.config.log_dir) / trainer.run_id,
        num_train_steps=trainer.num_train_steps,
        recompiles_at=recompiles_at,
    )
    callback = ProfileCallback(config, schedule, run)
    trainer.add_hook(callback, every=1)
    return callback


def _say_what_is_planned(schedule: Plan, num_train_steps: int) -> None:
    if not schedule.behind:
        return
    what = "not every window will be profiled" if schedule.windows else "no window will be profiled"
    logger.warning(
        "%s: training ends with step %d, before step %s",
        what,
        num_train_steps - 1,
        " and step ".join(map(str, schedule.behind)),
    )
