"""One trace of JAX's profiler, from start to stop, in a folder known beforehand.

Contract
* `start` raises ProfilerBusy if a profiler runs in this process already, else what JAX raises.
* `stop` closes the trace once, whatever happens; `stop_left_open`, called also by the interpreter's
  exit, closes one that nobody did.
* Two traces of a process never share a folder. Nothing but JAX's own calls touches a disk.
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
from marin_profile.profiling.config import ProfileOptions

logger = logging.getLogger(__name__)

_open_trace: Trace | None = None
_newest_stamp = datetime(1970, 1, 1)


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
        folder = _new_session(root)
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
        global _open_trace
        _open_trace = Trace(folder, started, time.perf_counter() - before)
        return _open_trace

    def stop(self) -> None:
        if not self._open:
            return
        self._open = False
        global _open_trace
        _open_trace = None
        before = time.perf_counter()
        try:
            jax.profiler.stop_trace()
        except BaseException:
            _forget_trace()
            raise
        self.stop_ns, self.stop_seconds = time.time_ns(), time.perf_counter() - before


@atexit.register
def stop_left_open() -> None:
    """Close the trace that nobody closed, if there is one; its capture is kept."""
    if _open_trace is None:
        return
    try:
        _open_trace.stop()
    except Exception as error:
        logger.warning("a profile was left open, and is lost: %s", reason(error))


def device_memory_profile() -> bytes:
    """What lies in the devices' memory, and where it was made: a gzipped pprof."""
    return bytes(jax.profiler.device_memory_profile())


def _forget_trace() -> None:
    """JAX keeps a trace that it could not write, and then refuses every other one."""
    try:
        from jax._src.profiler import _profile_state

        with _profile_state.lock:
            _profile_state.reset()
    except (ImportError, AttributeError):
        pass


def _new_session(root: Path) -> Path:
    """Named after the local time, as JAX's own are, or the second after the newest one of ours."""
    global _newest_stamp
    now = datetime.now().replace(microsecond=0)
    _newest_stamp = max(now, _newest_stamp + timedelta(seconds=1))
    return root.joinpath(*PROFILE_FOLDERS, _newest_stamp.strftime(STAMP_FORMAT))


# What is set in JAX's ProfileOptions.
LEVELS = ("host_tracer_level", "python_tracer_level", "enable_hlo_proto", "include_dataset_ops")
SET = ("session_id", *LEVELS, "advanced_configuration")


def options_lacking() -> list[str]:
    """What the installed JAX's ProfileOptions do not have of what is set. No backend is started."""
    kind = getattr(jax.profiler, "ProfileOptions", None)
    if kind is None:
        return ["ProfileOptions"]
    options = kind()
    return [name for name in SET if not hasattr(options, name)]


def _jax_options(config: ProfileOptions, session: str) -> jax.profiler.ProfileOptions:
    options = jax.profiler.ProfileOptions()
    options.session_id = session
    for name in LEVELS:
        value = getattr(config, name)
        if value is not None:
            setattr(options, name, value)
    advanced = dict(config.advanced_configuration)
    if config.device_tracer_level is not None:
        advanced["device_tracer_level"] = config.device_tracer_level
    if advanced:
        options.advanced_configuration = advanced
    return options
