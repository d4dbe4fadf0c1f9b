"""What training notes beside a capture, `profile_context.json`: its format, to write and to read.

Contract: a context that is missing, damaged or of another version says nothing and is no error; a
store that cannot be reached raises RemoteError.
Seconds are wall times as training takes them; `*_ns` are Unix times of that host's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from marin_profile.base.errors import ProfileError, RemoteError
from marin_profile.base.json_text import read_json
from marin_profile.base.storage import read_at_most

CONTEXT_VERSION = "profile_context.v1"
_LARGEST = 10_000_000  # bytes


@dataclass(frozen=True)
class StepSeconds:
    """The wall times of some steps of training."""

    steps: list[int]
    seconds: list[float]
    median_seconds: float | None
    p90_seconds: float | None


@dataclass(frozen=True)
class ProfilerCost:
    """When the profiler ran, and what its two calls took."""

    start_ns: int
    stop_ns: int
    start_trace_seconds: float
    stop_trace_seconds: float


@dataclass(frozen=True)
class CompileSeconds:
    """What JAX compiled in one step: programs, seconds, and those found in its cache instead."""

    step: int
    count: int
    seconds: float
    cache_hits: int


@dataclass(frozen=True)
class Judgement:
    """Whether the window stands for the run: its median step against that of `num_steps_outside`
    other steps. None where too little is known."""

    representative: bool | None
    window_to_outside: float | None
    num_steps_outside: int
    outside_median_seconds: float | None
    reason: str


@dataclass(frozen=True)
class ProfileContext:
    """One capture as one process of the training saw it; `capturing` are all that take it."""

    run_id: str
    process_index: int
    process_count: int
    capturing: list[int]
    trigger: str
    profiler: ProfilerCost
    judgement: Judgement
    window: StepSeconds
    outside: StepSeconds
    outside_while_ingesting: StepSeconds
    compiles: list[CompileSeconds] = field(default_factory=list)
    """Of the window."""
    ingested_beside: bool = False
    """Whether another capture was summarised, beside training, while this one was taken."""
    between: list[float] = field(default_factory=list)
    """For each step of the window the seconds of training's loop before it, since the callback's
    call after the step before: other hooks, such as an evaluation or a checkpoint, and data."""
    schema_version: str = CONTEXT_VERSION

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"


def read_context(path: str) -> ProfileContext | None:
    """The context in one file; None if it says nothing."""
    try:
        found = msgspec.convert(read_json(read_at_most(path, _LARGEST)), ProfileContext)
    except RemoteError:
        raise
    except (ProfileError, OSError, ValueError):
        return None
    return found if found.schema_version == CONTEXT_VERSION else None


def read_contexts(paths: Iterable[str]) -> list[ProfileContext]:
    """What the files say, in the order of the processes."""
    found = [context for path in paths if (context := read_context(path)) is not None]
    return sorted(found, key=lambda context: context.process_index)


def read_window(path: str) -> tuple[int, int] | None:
    """When the profiler ran, as (start, stop) in nanoseconds."""
    context = read_context(path)
    return (context.profiler.start_ns, context.profiler.stop_ns) if context else None
