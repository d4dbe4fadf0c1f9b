"""What a capture cannot tell: how the profiled steps compare with the others, and what it cost.

Contract: `profile_context.json` beside the capture's files, whole or not at all. It is written when
the capture ends and again when training does, with the steps that came after. Seconds are the wall
times of whole steps as Levanter takes them (`StepInfo.step_duration`).
"""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from marin_profile.filenames import CONTEXT_FILE

CONTEXT_VERSION = "profile_context.v1"

MOST_STEPS = 1000
FEWEST_QUIET_STEPS = 5
# A window is representative if its median step is that near the median of the other steps.
REPRESENTATIVE_WITHIN = 0.10


def _newest() -> deque[tuple[int, float]]:
    return deque(maxlen=MOST_STEPS)


@dataclass
class StepTimes:
    """The wall times of the steps outside all windows; the newest ones of a long run."""

    quiet: deque[tuple[int, float]] = field(default_factory=_newest)
    while_ingesting: deque[tuple[int, float]] = field(default_factory=_newest)


@dataclass
class CaptureContext:
    """One capture as training saw it."""

    run_id: str
    process_index: int
    process_count: int
    trigger: str
    folder: Path
    start_trace_seconds: float
    stop_trace_seconds: float | None = None
    profiled: list[tuple[int, float]] = field(default_factory=list)

    def write(self, times: StepTimes) -> None:
        target = self.folder / CONTEXT_FILE
        partial = target.with_name(f".{CONTEXT_FILE}")
        partial.write_text(json.dumps(self.content(times), indent=1, sort_keys=True) + "\n")
        os.replace(partial, target)

    def content(self, times: StepTimes) -> dict[str, Any]:
        return {
            "schema_version": CONTEXT_VERSION,
            "run_id": self.run_id,
            "process_index": self.process_index,
            "process_count": self.process_count,
            "trigger": self.trigger,
            "window": _described(self.profiled),
            "outside": _described(times.quiet),
            "outside_while_ingesting": _described(times.while_ingesting),
            "profiler": {
                "start_trace_seconds": _rounded(self.start_trace_seconds),
                "stop_trace_seconds": _rounded(self.stop_trace_seconds),
            },
            **_judged(self.profiled, times.quiet),
        }


def _judged(
    profiled: Sequence[tuple[int, float]], quiet: Sequence[tuple[int, float]]
) -> dict[str, Any]:
    """Whether the window stands for the run; None where too little is known.

    The first profiled step also carries the start of the tracers: it counts only if it is alone.
    """
    inside = [seconds for _, seconds in profiled[1:] or profiled]
    outside = [seconds for _, seconds in quiet]
    if not inside or len(outside) < FEWEST_QUIET_STEPS or median(outside) <= 0:
        reason = f"{len(inside)} profiled and {len(outside)} other steps: too few to compare"
        return {"representative": None, "window_to_outside": None, "reason": reason}
    ratio = median(inside) / median(outside)
    return {
        "representative": abs(ratio - 1) <= REPRESENTATIVE_WITHIN,
        "window_to_outside": _rounded(ratio),
        "reason": f"the median profiled step takes {ratio:.2f} times the median other step",
    }


def _described(steps: Iterable[tuple[int, float]]) -> dict[str, Any]:
    steps = list(steps)
    seconds = sorted(duration for _, duration in steps)
    return {
        "steps": [step for step, _ in steps],
        "seconds": [_rounded(duration) for _, duration in steps],
        "median_seconds": _rounded(median(seconds)) if seconds else None,
        "p90_seconds": _rounded(seconds[math.ceil(0.9 * len(seconds)) - 1]) if seconds else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
