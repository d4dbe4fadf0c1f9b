"""What to profile, and what happens to the captures.

Contract: plain values only, which draccus reads from YAML and flags; an invalid config raises
ValueError, which names the field, when it is built, before training starts; one that is off is
never invalid. Steps count from 0, as in Levanter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True)
class Window:
    """Steps `start_step` to `start_step + num_steps - 1`."""

    start_step: int
    num_steps: int


@dataclass(frozen=True)
class ProfileOptions:
    """What JAX's profiler records; None leaves JAX's own default. The defaults keep captures small.

    Python frames make nine tenths of a capture and take seconds to write: they are off. HLO protos
    carry the scope names of ops on CPU and GPU: they are on.
    """

    host_tracer_level: int | None = None
    python_tracer_level: int | None = 0
    device_tracer_level: int | None = None
    enable_hlo_proto: bool | None = True
    include_dataset_ops: bool | None = None
    advanced_configuration: dict[str, bool | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProfilerConfig:
    """One window by default: `num_steps` steps from `start_step` on; with `num_steps` 0 and no
    `windows` all is off, as in Levanter."""

    enabled: bool = True
    start_step: int = 5
    num_steps: int = 25
    windows: list[Window] = field(default_factory=list)
    """Several windows, in place of `start_step` and `num_steps`."""
    every: int | None = None
    """Repeat the window, or the windows, every this many steps."""
    on_demand: bool = True
    """Capture when the file `profile_now` in the run's folder is touched, and on SIGUSR2."""
    anomaly_factor: float | None = None
    """Capture after a step that took more than this many running medians."""
    max_anomalies: int = 3
    """At most this many captures per run after slow steps."""
    triggered_steps: int = 5
    """Steps of a capture on demand or after a slow step."""
    process_index: int | list[int] | None = None
    """The process, or processes, that capture; all if not given."""
    profile_options: ProfileOptions = field(default_factory=ProfileOptions)
    perfetto_link: bool = False
    """Let process 0 wait, after its capture, until the trace is opened in Perfetto."""
    create_perfetto_trace: bool = False
    """Write `perfetto_trace.json.gz` as well; nothing here reads it."""
    device_memory: bool = True
    """Write `device_memory.prof`, JAX's device memory profile, beside each capture."""
    output_dir: str | None = None
    """Where the newest summary and report also go; the run's log folder if not given."""
    ingest: bool = True
    """Summarise each capture while training goes on."""
    ingest_in: Literal["subprocess", "thread", "inline"] = "subprocess"
    """`thread` takes the GIL from training; `inline` holds training up, for debugging."""
    ingest_timeout: float = 120.0
    """Seconds that the end of training waits for what is still being summarised."""
    ingest_time_limit: float = 1800.0
    """Seconds that the summarising of one capture may take while training goes on (subprocess)."""
    ingest_memory_gb: float = 32.0
    """Address space of the summarising process, more than it uses: libraries reserve much."""

    shared_dir: str | None = None
    """A folder, or fsspec URL such as gs://bucket/runs, that all processes see: captures are copied
    to `<shared_dir>/<run_id>/profiler`. Not needed where the run's log folder is such a folder."""
    hosts_timeout: float = 60.0
    """Seconds that process 0 waits, while training goes on, for the other processes' captures."""

    keep_captures: int | None = None
    """Keep the files of the newest so many captures of each process; the profiler's own files of
    older ones are removed once they are published, or taken if `ingest` is off, and summaries,
    reports and records stay. No artifact then refers to files on this machine's disk."""
    min_free_disk_gb: float = 1.0
    """Start no capture while less is free where captures are written."""
    max_capture_gb: float | None = None
    """Start no capture once those of a process, of earlier starts too, take so much."""

    log: bool = True
    """Log summary, report and figures to the run's tracker."""
    upload: Literal["auto", "always", "reference", "never"] = "auto"
    """The capture too: `auto` up to 20,000,000 bytes, else, as `reference`, where it lies."""
    redact: bool = True
    """Mask home folders, user and host names and source stacks in what is logged."""

    def __post_init__(self) -> None:
        if not self.is_on:
            return
        _require_positive(self, "triggered_steps", "ingest_time_limit", "ingest_memory_gb")
        _require_not_negative(self, "ingest_timeout", "hosts_timeout", "max_anomalies")
        _require_not_negative(self, "keep_captures", "min_free_disk_gb", "max_capture_gb")
        if self.anomaly_factor is not None and self.anomaly_factor <= 1:
            raise ValueError(f"anomaly_factor must be above 1, is {self.anomaly_factor}")
        self._check_windows()

    def _check_windows(self) -> None:
        for index, window in enumerate(self.windows):
            _check_window(window, f"windows[{index}].")
        if not self.windows:
            _check_window(self.base_windows[0], "")
        windows = self.base_windows
        for before, after in pairwise(windows):
            if before.start_step + before.num_steps > after.start_step:
                raise ValueError(f"windows overlap: {before} and {after}")
        last = windows[-1]
        span = last.start_step + last.num_steps - windows[0].start_step
        if self.every is not None and self.every < span:
            raise ValueError(f"every must be at least {span}, the steps it repeats: {self.every}")

    @property
    def is_on(self) -> bool:
        """Whether anything is profiled."""
        return self.enabled and (bool(self.windows) or self.num_steps != 0)

    @property
    def base_windows(self) -> tuple[Window, ...]:
        """The windows before repetition, in order."""
        windows = self.windows or [Window(self.start_step, self.num_steps)]
        return tuple(sorted(windows, key=lambda window: window.start_step))

    def capturing(self, process_count: int) -> list[int]:
        """The processes that take captures."""
        chosen = self.process_index
        if chosen is None:
            return list(range(process_count))
        wanted = chosen if isinstance(chosen, list) else [chosen]
        return sorted({index for index in wanted if 0 <= index < process_count})


def _check_window(window: Window, where: str) -> None:
    for name in ("start_step", "num_steps"):
        value = getattr(window, name)
        if value < 1:
            raise ValueError(f"{where}{name} must be at least 1, is {value}")


def _require_not_negative(config: ProfilerConfig, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and value < 0:
            raise ValueError(f"{name} must not be negative, is {value}")


def _require_positive(config: ProfilerConfig, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value <= 0:
            raise ValueError(f"{name} must be positive, is {value}")
