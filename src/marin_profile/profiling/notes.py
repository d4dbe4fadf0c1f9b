"""What a capture does not hold: how the profiled steps compare with the others, and what it cost.

Contract: `profile_context.json` next to the capture's files, whole or not at all; written when the
capture ends, when the steps after it are known, and again when training ends. The judgement is
made once, before the capture is summarised: the summary quotes it. Seconds are the wall times of
whole steps as the loop takes them (with Levanter `StepInfo.step_duration`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from marin_profile.base.storage import write_file
from marin_profile.capture.context import (
    CompileSeconds,
    Judgement,
    ProfileContext,
    ProfilerCost,
    StepSeconds,
)
from marin_profile.capture.filenames import CONTEXT_FILE

if TYPE_CHECKING:
    from marin_profile.profiling.compiles import Compiles
    from marin_profile.profiling.trace import Trace

STEP_TIMES_KEPT = 1000
FEWEST_QUIET_STEPS = 5
STEPS_FOR_USUAL = 50
STEPS_NAMED = 3
# A window is representative if its median step is that near the median of the other steps.
REPRESENTATIVE_WITHIN = 0.10


def _newest() -> deque[tuple[int, float]]:
    return deque(maxlen=STEP_TIMES_KEPT)


@dataclass
class StepTimes:
    """The wall times of the steps outside all windows; the newest ones of a long run. `compiling`:
    those in which JAX compiled, inside a window or not."""

    quiet: deque[tuple[int, float]] = field(default_factory=_newest)
    while_ingesting: deque[tuple[int, float]] = field(default_factory=_newest)
    compiling: deque[tuple[int, float]] = field(default_factory=_newest)

    @property
    def usual(self) -> float | None:
        """Seconds of the median of the newest steps outside all windows, None before the first."""
        newest = [list(times)[-STEPS_FOR_USUAL:] for times in (self.quiet, self.while_ingesting)]
        seconds = [seconds for times in newest for _, seconds in times]
        return median(seconds) if seconds else None


@dataclass
class CaptureNotes:
    """One capture as training sees it, while it goes on and afterwards."""

    run_id: str
    process_index: int
    process_count: int
    capturing: list[int]
    trigger: str
    trace: Trace
    start_step: int
    profiled: list[tuple[int, float]] = field(default_factory=list)
    compiles: list[CompileSeconds] = field(default_factory=list)
    ingested_beside: bool = False
    """Whether another capture was summarised meanwhile."""
    waited: float = 0.0
    """Seconds from the end of the last step until the devices had done its work."""
    between: list[float] = field(default_factory=list)
    """See ProfileContext."""
    last_call: float = 0.0
    """When the callback was called last, by the clock of time.perf_counter."""
    is_written: bool = False
    _judgement: Judgement | None = None

    @property
    def folder(self) -> Path:
        return self.trace.folder

    def write(self, times: StepTimes) -> None:
        """Write what is known by now. Raises UsageError if that is not possible."""
        write_file(str(self.folder / CONTEXT_FILE), self.context(times).to_json())
        self.is_written = True

    def step(self, step: int, seconds: float, now: float) -> None:
        """A step of the window took so long; it is `now` by time.perf_counter."""
        self.profiled.append((step, seconds))
        self.between.append(max(0.0, now - self.last_call - seconds))
        self.last_call = now

    def compiled(self, step: int, what: Compiles) -> None:
        """JAX compiled in a step of the window."""
        self.compiles.append(
            CompileSeconds(step, what.programs, _rounded(what.seconds), what.cache_hits)
        )

    @property
    def compiled_text(self) -> str | None:
        """`JAX compiled for 1.2 s in step 9`."""
        if not self.compiles:
            return None
        seconds = sum(one.seconds for one in self.compiles)
        steps = ", ".join(str(one.step) for one in self.compiles[:STEPS_NAMED])
        more = len(self.compiles) - STEPS_NAMED
        steps += f" and {more} more" if more > 0 else ""
        noun = "step" if len(self.compiles) == 1 else "steps"
        return f"JAX compiled for {seconds:.1f} s in {noun} {steps}"

    def settle(self, times: StepTimes) -> None:
        """Judge the window by the steps that are known by now."""
        self._judgement = self._judged(times)

    def _judged(self, times: StepTimes) -> Judgement:
        return judge_window(self.profiled, list(times.quiet), self.waited)

    def context(self, times: StepTimes) -> ProfileContext:
        return ProfileContext(
            run_id=self.run_id,
            process_index=self.process_index,
            process_count=self.process_count,
            capturing=self.capturing,
            trigger=self.trigger,
            profiler=ProfilerCost(
                self.trace.start_ns,
                self.trace.stop_ns,
                _rounded(self.trace.start_seconds),
                _rounded(self.trace.stop_seconds),
            ),
            judgement=self._judgement
            or judge_window(self.profiled, list(times.quiet), self.waited),
            window=_described(self.profiled),
            outside=_described(list(times.quiet)),
            outside_while_ingesting=_described(list(times.while_ingesting)),
            compiles=self.compiles,
            ingested_beside=self.ingested_beside,
            between=[_rounded(seconds) for seconds in self.between],
        )


def judge_window(
    profiled: Sequence[tuple[int, float]],
    quiet: Sequence[tuple[int, float]],
    waited: float = 0.0,
) -> Judgement:
    """Whether the window is representative of the run.

    The first profiled step also carries the start of the tracers: it counts only if it is alone. A
    loop that was more than a step ahead of its devices at the end, by `waited` seconds, does not
    show what its steps take.
    """
    inside = [seconds for _, seconds in profiled[1:] or profiled]
    outside = [seconds for _, seconds in quiet]
    middle = median(outside) if outside else None
    if not inside or not middle or len(outside) < FEWEST_QUIET_STEPS:
        reason = f"{len(inside)} profiled and {len(outside)} other steps are too few to compare"
        return Judgement(None, None, len(outside), middle and _rounded(middle), reason)
    if waited > median(inside):
        reason = (
            f"the loop ran {waited:.3g} s ahead of the devices: its steps' times are not theirs"
        )
        return Judgement(None, None, len(outside), _rounded(middle), reason)
    ratio = median(inside) / middle
    return Judgement(
        representative=abs(ratio - 1) <= REPRESENTATIVE_WITHIN,
        window_to_outside=_rounded(ratio),
        num_steps_outside=len(outside),
        outside_median_seconds=_rounded(middle),
        reason=f"the median profiled step takes {ratio:.2f} times the median other step",
    )


def _described(steps: Iterable[tuple[int, float]]) -> StepSeconds:
    steps = list(steps)
    seconds = sorted(duration for _, duration in steps)
    return StepSeconds(
        steps=[step for step, _ in steps],
        seconds=[_rounded(duration) for _, duration in steps],
        median_seconds=_rounded(median(seconds)) if seconds else None,
        p90_seconds=_rounded(seconds[math.ceil(0.9 * len(seconds)) - 1]) if seconds else None,
    )


def _rounded(value: float) -> float:
    return round(value, 6)
