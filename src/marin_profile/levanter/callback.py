"""ProfileCallback: captures a window of training steps and hands the capture to ingestion.

Contract
* It starts and stops JAX's profiler itself; Levanter's own profiler hook stays off.
* Nothing it does raises into training: what fails is said in one log line and profiling ends.
* No trace stays open: it is closed after the last step of the window, else by the forced call at
  the end of training, else when the interpreter exits.
* The forced call waits for ingestion, up to `ingest_timeout`: afterwards all outputs are there.
* Captures go to `<log_dir>/<run_id>/profiler`, with several processes to a `process_<n>` folder
  each below it, and process 0 ingests.
"""

from __future__ import annotations

import atexit
import logging
from enum import Enum
from pathlib import Path
from typing import Any

import jax
from levanter.callbacks import Callback, StepInfo
from levanter.trainer import Trainer

from marin_profile.levanter.config import ProfilerConfig
from marin_profile.levanter.worker import Ingestion, start_ingestion

logger = logging.getLogger(__name__)


class _Phase(Enum):
    WAITING = "waiting"
    CAPTURING = "capturing"
    DONE = "done"


class ProfileCallback(Callback):
    """Profiles the steps of `window`; must see every step (`add_hook(..., every=1)`)."""

    def __init__(
        self, config: ProfilerConfig, window: range, profile_dir: Path, output_dir: Path
    ) -> None:
        self._config = config
        self._window = window
        self._profile_dir = profile_dir
        self.output_dir = output_dir
        self._phase = _Phase.WAITING
        self._ingestion: Ingestion | None = None

    @property
    def ingesting(self) -> bool:
        """Whether the capture is being summarised right now."""
        return self._ingestion is not None and self._ingestion.running

    def on_step(self, info: StepInfo, force: bool = False) -> None:
        try:
            if self._phase is not _Phase.DONE:
                self._advance(info, force)
            if force:
                self._finish_ingestion()
        except Exception as error:
            logger.warning("profiling ended early: %s: %s", type(error).__name__, error)

    def _advance(self, info: StepInfo, force: bool) -> None:
        in_window = info.next_step in self._window and not force
        if self._phase is _Phase.WAITING and in_window:
            self._start(info.state)
        elif self._phase is _Phase.CAPTURING and not in_window:
            self._stop(info.state)
            if self._config.ingest and jax.process_index() == 0:
                self._ingestion = start_ingestion(self._profile_dir, self.output_dir)
        elif self._phase is _Phase.WAITING and force:
            self._phase = _Phase.DONE
            logger.warning("nothing was profiled: training did not pass %s", _steps(self._window))

    def _start(self, state: Any) -> None:
        self._phase = _Phase.DONE  # unless the trace really starts
        # The loss is there, the rest of the step may not be: its tail belongs to no step of ours.
        jax.block_until_ready(state)
        jax.profiler.start_trace(
            str(_process_dir(self._profile_dir)), profiler_options=_options(self._config)
        )
        self._phase = _Phase.CAPTURING
        atexit.register(self._close_trace)
        logger.info("profiling %s", _steps(self._window))

    def _stop(self, state: Any) -> None:
        try:
            jax.block_until_ready(state)
        finally:
            self._close_trace()
        logger.info("profile written to %s", self._profile_dir)

    def _close_trace(self) -> None:
        atexit.unregister(self._close_trace)
        self._phase = _Phase.DONE
        jax.profiler.stop_trace()

    def _finish_ingestion(self) -> None:
        ingestion, self._ingestion = self._ingestion, None
        if ingestion is None:
            return
        problem = ingestion.finish(self._config.ingest_timeout)
        if problem is None:
            logger.info("profile summary and report written to %s", self.output_dir)
        else:
            logger.warning("%s", problem)


def install(trainer: Trainer, config: ProfilerConfig | None = None) -> ProfileCallback | None:
    """Add the callback to `trainer`; None if the config is off or training ends too early."""
    config = config or ProfilerConfig()
    if not config.enabled:
        return None
    window = config.window(trainer.num_train_steps)
    if not window:
        logger.warning(
            "nothing will be profiled: the window starts at step %d, training ends with step %d",
            config.start_step,
            trainer.num_train_steps - 1,
        )
        return None
    run_dir = Path(trainer.config.log_dir) / trainer.run_id
    output_dir = Path(config.output_dir) if config.output_dir else run_dir
    callback = ProfileCallback(config, window, run_dir / "profiler", output_dir)
    trainer.add_hook(callback, every=1)
    return callback


def _steps(window: range) -> str:
    return f"steps {window[0]} to {window[-1]}"


def _process_dir(profile_dir: Path) -> Path:
    if jax.process_count() == 1:
        return profile_dir
    return profile_dir / f"process_{jax.process_index()}"


def _options(config: ProfilerConfig) -> jax.profiler.ProfileOptions:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = config.python_tracer_level
    if hasattr(options, "enable_hlo_proto"):
        options.enable_hlo_proto = config.enable_hlo_proto
    return options
