"""One trace of JAX's profiler, from start to stop, in a folder known beforehand.

Contract
* `start` raises ProfilerBusy if a profiler runs in this process already, else what JAX raises.
* `stop` closes the trace once, whatever happens; the interpreter's exit closes one left open, and
  logs its folder in one line.
* Two traces never share a folder: each gets a timestamp that is still free.
"""

from __future__ import annotations

import atexit
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import jax

from marin_profile.capture.filenames import PROFILE_FOLDERS, STAMP_FORMAT
from marin_profile.levanter.config import ProfileOptions
from marin_profile.levanter.job import Job

logger = logging.getLogger(__name__)


class ProfilerBusy(RuntimeError):
    """Another profiler is running in this process."""


def reason(error: Exception) -> str:
    """Why there is no trace, for a log line."""
    return str(error) if isinstance(error, ProfilerBusy) else f"{type(error).__name__}: {error}"


@dataclass
class Trace:
    """A running, or finished, trace. `start_ns`, `stop_ns`: Unix times before the first and after
    the last of JAX's calls; `start_seconds`, `stop_seconds`: what the two calls took."""

    folder: Path
    """`<root>/plugins/profile/<timestamp>`, which holds the files once the trace is stopped."""
    start_ns: int
    start_seconds: float
    stop_ns: int = 0
    stop_seconds: float = 0.0
    _open: bool = field(default=True, repr=False)

    @staticmethod
    def start(
        root: Path,
        options: ProfileOptions,
        *,
        perfetto_link: bool = False,
        perfetto_trace: bool = False,
    ) -> Trace:
        folder = _free_session(root)
        started, before = time.time_ns(), time.perf_counter()
        try:
            jax.profiler.start_trace(
                str(root),
                create_perfetto_link=perfetto_link,
                create_perfetto_trace=perfetto_trace,
                profiler_options=_jax_options(options, folder.name),
            )
        except RuntimeError as error:
            if "already been started" in str(error):
                raise ProfilerBusy("another profiler is running in this process") from error
            raise
        trace = Trace(folder, started, time.perf_counter() - before)
        atexit.register(trace._stop_at_exit)
        return trace

    def stop(self) -> None:
        if not self._open:
            return
        self._open = False
        atexit.unregister(self._stop_at_exit)
        before = time.perf_counter()
        try:
            jax.profiler.stop_trace()
        except BaseException:
            _forget_trace()
            raise
        self.stop_ns, self.stop_seconds = time.time_ns(), time.perf_counter() - before

    def _stop_at_exit(self) -> None:
        ended = "training ended while it was profiled"
        try:
            self.stop()
        except Exception as error:
            logger.warning("%s: profile lost: %s", ended, reason(error))
        else:
            command = Job(self.folder, self.folder).command
            logger.warning(
                "%s; the profile is in %s; to summarise it: %s", ended, self.folder, command
            )


def _forget_trace() -> None:
    """JAX keeps a trace that it could not write, and then refuses every other one."""
    try:
        from jax._src.profiler import _profile_state

        with _profile_state.lock:
            _profile_state.reset()
    except (ImportError, AttributeError):
        pass


def _free_session(root: Path) -> Path:
    now = datetime.now()  # local, as JAX's own names are
    while True:
        folder = root.joinpath(*PROFILE_FOLDERS, now.strftime(STAMP_FORMAT))
        if not folder.exists():
            return folder
        now += timedelta(seconds=1)


def _jax_options(config: ProfileOptions, session: str) -> jax.profiler.ProfileOptions:
    options = jax.profiler.ProfileOptions()
    options.session_id = session
    for name in (
        "host_tracer_level",
        "python_tracer_level",
        "enable_hlo_proto",
        "include_dataset_ops",
    ):
        value = getattr(config, name)
        if value is not None:
            setattr(options, name, value)
    advanced = dict(config.advanced_configuration)
    if config.device_tracer_level is not None:
        advanced["device_tracer_level"] = config.device_tracer_level
    if advanced:
        options.advanced_configuration = advanced
    return options
