"""The profiler as training's thread sees it: told of every step, it starts and stops the captures.

Contract
* Nothing it does raises into training: a failure is one log line.
* A step outside all windows costs microseconds, whatever the schedule: no disk, no network.
* No trace stays open: it is closed after the last step of its window, at the latest by
  `training_ended` or `close`, or when the interpreter exits.
* A change of a capture's state is a transition of its record; what follows from it is the keeper's.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from marin_profile.base.owner import Owner
from marin_profile.profiling.compiles import compiles
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.job import newest_outputs
from marin_profile.profiling.keeper import Keeper
from marin_profile.profiling.leftovers import Leftovers
from marin_profile.profiling.notes import CaptureNotes, StepTimes
from marin_profile.profiling.publishing import Tracker
from marin_profile.profiling.record import (
    PLANNED_TRIGGER,
    SLOW_STEP,
    CaptureRecord,
    State,
)
from marin_profile.profiling.records import Records
from marin_profile.profiling.run import Run
from marin_profile.profiling.schedule import Planned, Schedule, schedule_of
from marin_profile.profiling.slow_steps import SlowSteps
from marin_profile.profiling.trace import Trace, reason, stop_left_open
from marin_profile.profiling.triggers import NEVER, Agreement, Requests

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Open:
    """The capture that is being taken."""

    number: int
    stop_step: int
    notes: CaptureNotes
    trace: Trace
    ingestions: int  # begun before it


class Profiler:
    """Takes the captures of one process of a run.

    `facts()` gives what the run knows of itself, by the names of RunMetadata; it is called in a
    thread. `tracker`: where summaries are logged. `leftovers`: what earlier processes of the run
    left behind. `agreement`: with several processes, what makes them start at one step.
    `wait(state)`: returns when the device work is done that belongs to the steps before.
    """

    def __init__(
        self,
        config: ProfilerConfig,
        run: Run,
        *,
        tracker: Tracker | None = None,
        facts: Callable[[], dict[str, Any]] = dict,
        leftovers: Leftovers | None = None,
        agreement: Agreement | None = None,
        wait: Callable[[Any], object] = jax.block_until_ready,
    ) -> None:
        _end_the_one_before(self)
        self._config = config
        self._run = run
        self._wait = wait
        self._leftovers = leftovers or Leftovers.of(run)
        self._times = StepTimes()
        self._keeper = Keeper(config, run, self._times, tracker, facts)
        self._beside = self._keeper.beside
        self._records: Records = self._keeper.records
        self._requests = Requests(run.folder if config.on_demand else None, agreement)
        self._keeper.watches.append(self._look_for_requests)
        self._keeper.closing.append(self._requests.withdraw)
        self._slow_steps = (
            SlowSteps(config.anomaly_factor) if config.anomaly_factor is not None else None
        )
        self._anomalies_left = config.max_anomalies
        self._schedule: Schedule | None = None
        self._coming: Planned | None = None
        self._look_at = -1  # the step before which nothing is planned
        self._open: _Open | None = None
        self._compiled = compiles()
        self._has_ended = self._is_closed = False
        for record in self._leftovers.lost:
            self._records.add(record)
        if config.ingest:
            for record in self._leftovers.to_finish(Owner.this_process()):
                self._keeper.take_up(record)
        self._keeper.start()
        atexit.register(self.close)

    @property
    def output_dir(self) -> Path:
        """Where the newest summary and report are."""
        return newest_outputs(self._config, self._run)

    @property
    def ingesting(self) -> bool:
        """Whether a capture is being summarised right now, or is about to be."""
        states = (State.SETTLING, State.INGESTING)
        return bool(self._records.in_state(*states)) if self._config.ingest else False

    @property
    def records(self) -> list[CaptureRecord]:
        """The captures so far; of a long run the newest ones."""
        return self._records.every()

    @property
    def is_tracing(self) -> bool:
        return self._open is not None

    def after_step(self, step: int, seconds: float | None, state: Any = None) -> None:
        """Step `step` has ended and took so long, if that is known; the next one has not begun. A
        capture that begins or ends here first waits for the arrays in `state`."""
        try:
            self._after_step(step, seconds, state)
        except Exception as error:
            logger.warning("profiling failed: %s: %s", type(error).__name__, error)

    def training_ended(self, state: Any = None) -> None:
        """No step follows. Returns without waiting for anything but the arrays of an open trace."""
        self._has_ended = True
        try:
            self._stop(state)
        finally:
            self._keeper.hurry()

    def close(self, *, wait: bool = True) -> None:
        """The end: close what is open, and wait, at most `ingest_timeout` seconds, until every
        capture is summarised and logged; then say what is left."""
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self.close)
        _forget(self)
        try:
            self._stop(None)
            if self._has_ended:
                self._say_if_nothing_was_profiled()
            try:
                self._keeper.finish(self._config.ingest_timeout if wait else 0.0)
            finally:
                self._requests.give_back()
        except Exception as error:
            logger.warning("profiling failed: %s: %s", type(error).__name__, error)

    def _look_for_requests(self) -> None:
        """In the keeper's thread."""
        self._requests.look(self._beside.last_step, self._times.usual)

    # --- one step --------------------------------------------------------------------------------

    def _after_step(self, step: int, seconds: float | None, state: Any) -> None:
        beside = self._beside
        beside.last_step = step
        compiled = compiles()
        if seconds is None:
            self._compiled = compiled
            self._begin(step + 1, state)
            return
        if compiled is not self._compiled:
            self._note_compiles(step, compiled)
            self._times.compiling.append((step, seconds))
            is_quiet = False
        elif self._open is not None:
            is_quiet = False
        else:
            is_quiet = not beside.is_ingesting
            (self._times.quiet if is_quiet else self._times.while_ingesting).append((step, seconds))
        following = step + 1
        running = self._open
        if running is not None:
            running.notes.step(step, seconds, time.perf_counter())
            if following < running.stop_step:
                return
            self._stop(state)
            self._requests.captured(range(running.notes.start_step, following))
        is_slow = is_quiet and self._slow_steps is not None and self._slow_steps.is_slow(seconds)
        if is_slow and self._anomalies_left > 0:
            logger.info("step %d took %.3f s", step, seconds)
            self._requests.ask(SLOW_STEP, step)
        if following >= self._look_at or following >= self._requests.due:
            self._begin(following, state)

    def _begin(self, step: int, state: Any) -> None:
        """Start the capture that is due before `step`, if one is."""
        coming = self._coming_from(step)
        if coming is not None and coming.steps.start == step:
            self._start(coming, PLANNED_TRIGGER, state)
            return
        trigger = self._requests.take(step)
        if trigger is None:
            return
        has_begun = self._start(self._triggered(step), trigger, state)
        if has_begun and trigger == SLOW_STEP:
            self._anomalies_left -= 1

    def _coming_from(self, step: int) -> Planned | None:
        if self._schedule is None:
            self._schedule = schedule_of(
                self._config, self._run.num_steps, step, self._leftovers.taken
            )
        if step >= self._look_at:
            self._coming = self._schedule.next(step)
            self._look_at = self._coming.steps.start if self._coming is not None else NEVER
        return self._coming

    def _triggered(self, step: int) -> Planned:
        """So many steps, up to the next planned window or the end."""
        stop = min(step + self._config.triggered_steps, self._run.num_steps or NEVER)
        if self._coming is not None:
            stop = min(stop, self._coming.steps.start)
        return Planned(range(step, stop), ())

    def _note_compiles(self, step: int, compiled: Any) -> None:
        if self._open is not None:
            self._open.notes.compiled(step, compiled.since(self._compiled))
        self._compiled = compiled

    # --- one capture -----------------------------------------------------------------------------

    def _start(self, planned: Planned, trigger: str, state: Any) -> bool:
        """Whether the profiler runs."""
        if not planned.steps or self._has_ended:
            return False
        run, config = self._run, self._config
        number = self._records.add(
            CaptureRecord(
                run_id=run.run_id,
                process_index=run.index,
                trigger=trigger,
                start_step=planned.steps.start,
                stop_step=planned.steps.stop,
                planned_for=planned.planned_for,
                owner=Owner.this_process(),
            )
        )
        if self._beside.why_not is not None:
            self._records.fail(number, self._beside.why_not)
            return False
        ingestions = self._beside.num_ingestions
        try:
            # The step's result is there, but its device work may go on: it is not of the window.
            self._wait(state)
            trace = Trace.start(
                run.own_dir,
                config.profile_options,
                perfetto_link=config.perfetto_link and run.index == 0,
                perfetto_trace=config.create_perfetto_trace,
            )
        except Exception as error:
            self._records.fail(number, reason(error))
            return False
        notes = CaptureNotes(
            run.run_id,
            run.index,
            run.count,
            config.capturing(run.count),
            trigger,
            trace,
            planned.steps.start,
            ingested_beside=self._beside.is_ingesting,
        )
        self._open = _Open(number, planned.steps.stop, notes, trace, ingestions)
        self._beside.is_tracing = True
        notes.last_call = time.perf_counter()
        self._records.move(number, State.TRACING, folder=str(trace.folder))
        return True

    def _stop(self, state: Any) -> None:
        running, self._open = self._open, None
        if running is None:
            return
        notes = running.notes
        try:
            since = time.perf_counter()
            try:
                self._wait(state)
                notes.waited = time.perf_counter() - since
            finally:
                running.trace.stop()
        except Exception as error:
            self._records.fail(running.number, reason(error))
            return
        finally:
            self._beside.is_tracing = False
        if self._has_ended and not notes.profiled:
            self._records.fail(running.number, "training ended before its first step")
            return
        notes.ingested_beside |= self._beside.num_ingestions != running.ingestions
        self._keeper.took(running.number, notes)
        last = notes.profiled[-1][0] if notes.profiled else notes.start_step
        self._records.move(
            running.number,
            State.SETTLING,
            stop_step=last + 1,
            compiled=notes.compiled_text,
        )
        if self._config.ingest_in == "inline":
            self._keeper.wait(threading.TIMEOUT_MAX)

    def _has_windows_in_reach(self) -> bool:
        end = self._run.num_steps
        starts = [window.start_step for window in self._config.base_windows]
        return end is None or min(starts) < end

    def _say_if_nothing_was_profiled(self) -> None:
        if self._records.num_begun or not self._has_windows_in_reach():
            return
        first = self._config.base_windows[0].start_step
        if self._schedule is None and self._leftovers.taken:
            return  # training had ended before, and was profiled
        if self._schedule is None:
            why = "no step was run"
        elif self._coming is not None:
            why = (
                f"training ended with step {self._beside.last_step}, before "
                f"{self._coming.steps_text}"
            )
        elif self._leftovers.taken:
            logger.info("nothing was profiled: earlier starts of this run took every window")
            return
        else:
            why = f"training ended before step {first}"
        logger.warning("nothing was profiled: %s", why)


_newest: Profiler | None = None


def _end_the_one_before(profiler: Profiler) -> None:
    """A run that begins in this process ends an earlier one that was never closed."""
    global _newest
    before, _newest = _newest, profiler
    if before is not None:
        before.close(wait=False)
    stop_left_open()


def _forget(profiler: Profiler) -> None:
    global _newest
    if _newest is profiler:
        _newest = None
