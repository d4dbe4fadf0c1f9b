"""The profiler on a Levanter Trainer: `install(trainer, config)`.

Contract
* The hook must see every step (`add_hook(..., every=1)`); what it does with it is the Profiler's
  contract. Levanter's own profiler hook stays off.
* The forced call at the end of training closes an open trace and waits for nothing, so that the
  hooks after it, which may be collectives, are not held up. The wait for summaries and the tracker
  is when the Trainer's block ends, or the process does.
* A block that ends by an exception is not waited in: the next start of the run goes on.
"""

from __future__ import annotations

import logging
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import levanter.tracker
from levanter.callbacks import Callback, StepInfo
from levanter.trainer import Trainer

from marin_profile.levanter.facts import facts_of
from marin_profile.levanter.lines import levanter_line
from marin_profile.levanter.tracker import LevanterTracker
from marin_profile.profiling.agreement import agreement_of
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.hosts import claim
from marin_profile.profiling.profiler import Profiler
from marin_profile.profiling.run import Run, shared_profile_dir
from marin_profile.profiling.schedule import beyond_the_end, refuse_too_early

logger = logging.getLogger(__name__)


class ProfileCallback(Callback):
    """Tells a Profiler of every step; as a context manager, of the end of the Trainer's block."""

    def __init__(self, profiler: Profiler, trainer: Any) -> None:
        self.profiler = profiler
        self._trainer: Any = trainer

    def on_step(self, info: StepInfo, force: bool = False) -> None:
        if self._trainer is not None:
            self.end_with_the_block()
        if force:
            self.profiler.training_ended(info.state)
        else:
            self.profiler.after_step(info.step, info.step_duration, info.state)

    def end_with_the_block(self) -> None:
        """Be told when the Trainer's block ends; before it is entered this has no effect."""
        managers = getattr(self._trainer, "_cmanagers", None)
        if managers:
            managers.append(self)
            self._trainer = None

    def __enter__(self) -> ProfileCallback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.profiler.close(wait=kind is None)


def install(
    trainer: Trainer,
    config: ProfilerConfig | None = None,
    *,
    training_config: Any | None = None,
) -> ProfileCallback | None:
    """Add the callback to `trainer`; None if it has nothing to do.

    `training_config`: the whole config that the run is made from (a dataclass that draccus encodes,
    or a mapping), for `config_hash`, which tells other trainings from repeats of this one. Without
    it the hash is of `trainer.config` alone, and the same for another model or learning rate.

    Raises ValueError for a window that could never start and where Levanter's own profiler is on,
    UnsupportedLevanterError.
    """
    config = config or ProfilerConfig()
    line = levanter_line()
    if not config.is_on:
        return None
    # Refused in every process alike, so that none waits for one that is gone.
    if getattr(trainer.config.profiler, "is_enabled", False):
        # Its start_trace raises into training if a trace of ours is open.
        raise ValueError(
            "Levanter's own profiler is on (trainer.profiler.enabled), and a process can run only "
            "one: turn it off, or leave this one out."
        )
    refuse_too_early(config, line.first_step)
    index, count = jax.process_index(), jax.process_count()
    if index not in config.capturing(count):
        if index == 0 and not config.capturing(count):
            logger.warning(
                "no step will be profiled: process_index %s names none of the processes 0 to %d",
                config.process_index,
                count - 1,
            )
        return None
    behind = beyond_the_end(config, trainer.num_train_steps)
    _warn_of_windows_beyond_the_end(behind, config, trainer.num_train_steps)
    none_in_reach = len(behind) == len(config.base_windows)
    if none_in_reach and not config.on_demand and config.anomaly_factor is None:
        return None
    log_dir = Path(trainer.config.log_dir)
    run = Run(
        run_id=trainer.run_id,
        folder=log_dir / trainer.run_id,
        num_steps=trainer.num_train_steps,
        index=index,
        count=count,
        shared=shared_profile_dir(log_dir, config.shared_dir, trainer.run_id),
    )
    claim(run)
    profiler = Profiler(
        config,
        run,
        tracker=LevanterTracker(lambda: _tracker_of(trainer)),
        facts=lambda: facts_of(run, trainer, _tracker_of(trainer), training_config),
        agreement=agreement_of(config, run),
    )
    callback = ProfileCallback(profiler, trainer)
    trainer.add_hook(callback, every=1)
    callback.end_with_the_block()
    return callback


def _tracker_of(trainer: Any) -> Any:
    """The tracker of the block, which a script may have replaced."""
    try:
        return levanter.tracker.current_tracker()
    except RuntimeError:
        return trainer.tracker


def _warn_of_windows_beyond_the_end(
    behind: list[int], config: ProfilerConfig, num_train_steps: int
) -> None:
    if not behind:
        return
    some = len(behind) < len(config.base_windows)
    logger.warning(
        "%s: training ends with step %d, before step %s",
        "not every window will be profiled" if some else "no window will be profiled",
        num_train_steps - 1,
        " and step ".join(map(str, behind)),
    )
