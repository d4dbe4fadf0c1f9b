"""For loops without a Trainer: `profiler`, which the loop tells of each of its steps.

Contract
* Windows, triggers, records, resuming, ingestion and publishing are those of the Profiler, as under
  Levanter. The first step that can be profiled is the one after the first that was told of.
* A step takes from one call of `step` to the next, without what the profiler does in between; how
  long the first one took is not known. In a loop that does not wait for its devices these are the
  times of dispatch.
* The devices are waited for where a capture begins and where it ends, nowhere else: a capture holds
  all work of its steps, and no other.
* While a capture is taken, each step carries a step marker of its own name, which the summary finds
  steps by; with markers of the loop's own there, those that hold more of the work count.
* Nothing here raises into the loop. What the loop raises passes: its capture is closed, after at
  most a few seconds for the devices, and left to the next start of the run or to
  `marin-profile finish`.
* A process has one at a time; another one profiles nothing, and says so. Several processes of a run
  have a folder each below the run's.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import jax

from marin_profile.profiling.agreement import agreement_of
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.devices import DeviceWork
from marin_profile.profiling.hosts import claim
from marin_profile.profiling.profiler import Profiler
from marin_profile.profiling.run import Run, shared_profile_dir
from marin_profile.profiling.wandb_run import LiveRun, live_run, wandb_facts

logger = logging.getLogger(__name__)

STEP_MARKER = "profiled_step"
SECONDS_AFTER_A_FAILURE = 5.0

_at_work: Stepper | None = None


def profiler(
    folder: str | Path,
    config: ProfilerConfig | None = None,
    *,
    run_id: str | None = None,
    num_steps: int | None = None,
    mark_steps: bool = True,
) -> Stepper:
    """Profile a loop: `with profiler("runs/mine") as p:`, and `p.step(i)` at the end of each step.

    `folder` is the run's, the same at every start of it. `run_id` names it in artifacts: by default
    as the live W&B run, else as the folder. `num_steps`: where the loop ends, if that is known.
    `mark_steps`: off for a loop whose own StepTraceAnnotations are to be the only ones.
    """
    return Stepper(Path(folder), config or ProfilerConfig(), run_id, num_steps, mark_steps)


class Stepper:
    """Made by `profiler`, and entered once."""

    def __init__(
        self,
        folder: Path,
        config: ProfilerConfig,
        run_id: str | None,
        num_steps: int | None,
        mark_steps: bool,
    ) -> None:
        self._folder = folder.absolute()
        self._config = config
        self._run_id = run_id
        self._num_steps = num_steps
        self._marks_steps = mark_steps
        self._profiler: Profiler | None = None
        self._work: DeviceWork | None = None
        self._mark: jax.profiler.StepTraceAnnotation | None = None
        self._has_failed = False
        self._last = -1
        self._since: float | None = None  # when the step that goes on began

    @property
    def profiler(self) -> Profiler | None:
        """None outside the block, and where this process profiles nothing."""
        return self._profiler

    def step(self, number: int | None = None) -> None:
        """Step `number` has ended; without a number, the one after the last, beginning with 0."""
        now = time.perf_counter()
        profiler, since = self._profiler, self._since
        if profiler is None:
            return
        self._last = number = self._last + 1 if number is None else number
        if self._mark is not None:
            self._leave_mark()
        profiler.after_step(number, None if since is None else now - since)
        if self._marks_steps and profiler.is_tracing:
            self._mark_step(number + 1)
        self._since = time.perf_counter()

    def __enter__(self) -> Stepper:
        global _at_work
        if _at_work is not None:
            logger.warning("not profiled: the profiler of %s is at work", _at_work._folder)
            return self
        try:
            self._profiler = self._started()
        except Exception as error:
            logger.warning("not profiled: %s: %s", type(error).__name__, error)
        if self._profiler is not None:
            _at_work = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _at_work
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        _at_work = None
        try:
            self._has_failed = kind is not None
            if kind is None:
                profiler.training_ended()
            profiler.close(wait=kind is None)
        except Exception as problem:
            logger.warning("profiling failed: %s: %s", type(problem).__name__, problem)
        finally:
            # After the trace, so that a step that did not end is not recorded as one.
            self._leave_mark()

    # --- the parts -------------------------------------------------------------------------------

    def _started(self) -> Profiler | None:
        index, count = jax.process_index(), jax.process_count()
        if not self._config.is_on or index not in self._config.capturing(count):
            return None
        run = self._run(index, count)
        claim(run)
        self._work = DeviceWork()
        return Profiler(
            self._config,
            run,
            tracker=LiveRun(),
            facts=lambda: _facts(run),
            agreement=agreement_of(self._config, run),
            wait=lambda _: self._wait_for_devices(),
        )

    def _run(self, index: int, count: int) -> Run:
        live = live_run()
        run_id = self._run_id or (live.id if live is not None else None) or self._folder.name
        log_dir = self._folder.parent
        shared = self._config.shared_dir
        return Run(
            run_id=run_id,
            folder=self._folder,
            num_steps=self._num_steps,
            index=index,
            count=count,
            shared=shared_profile_dir(log_dir, shared, run_id) if shared else None,
        )

    def _wait_for_devices(self) -> None:
        if self._work is None:
            return
        if self._has_failed:
            self._work.wait_at_most(SECONDS_AFTER_A_FAILURE)
        else:
            self._work.wait()

    def _mark_step(self, number: int) -> None:
        self._mark = jax.profiler.StepTraceAnnotation(STEP_MARKER, step_num=number)
        self._mark.__enter__()

    def _leave_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)


def _facts(run: Run) -> dict[str, Any]:
    """By the names of RunMetadata; a commit that W&B does not know is the worker's to find."""
    return wandb_facts() | {
        "run_id": run.run_id,
        "hardware_type": jax.devices()[0].device_kind,
        "num_devices": jax.device_count(),
        "num_hosts": run.count,
    }
