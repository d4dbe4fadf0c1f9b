"""When to capture: the planned windows of a run, and the steps that are slow enough for one more.

Contract: steps and seconds in, ranges of steps out; nothing here knows JAX, Levanter or files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from marin_profile.levanter.config import ProfilerConfig

MEDIAN_OF = 64
FEWEST_FOR_MEDIAN = 8


@dataclass(frozen=True)
class Plan:
    """The windows within a run, clamped to its end, and the first steps of those after it."""

    windows: tuple[range, ...]
    behind: tuple[int, ...] = ()

    def at(self, step: int) -> range | None:
        """The window that `step` lies in, from `step` on."""
        for window in self.windows:
            if step in window:
                return range(step, window.stop)
        return None

    def after(self, step: int) -> int | None:
        """The first step of the next window from `step` on."""
        return next((window.start for window in self.windows if window.start >= step), None)


def plan(config: ProfilerConfig, num_train_steps: int, first_step: int) -> Plan:
    """The windows of a run of that length whose hooks allow a capture from `first_step` on.

    Raises ValueError for a window that could never start.
    """
    windows: list[range] = []
    behind: list[int] = []
    for base in config.base_windows:
        if base.start_step < first_step:
            raise ValueError(
                f"a window cannot start at step {base.start_step}: with this Levanter, step "
                f"{first_step} is the first one after a hook was called, so the first to profile"
            )
        if base.start_step >= num_train_steps:
            behind.append(base.start_step)
        stride = config.every or max(num_train_steps, 1)
        for start in range(base.start_step, num_train_steps, stride):
            windows.append(range(start, min(start + base.num_steps, num_train_steps)))
    return Plan(tuple(sorted(windows, key=lambda window: window.start)), tuple(behind))


def windows_over(windows: Iterable[range], step: int | None) -> list[range]:
    """The windows that `step` falls into."""
    return [window for window in windows if step is not None and step in window]


@dataclass
class SlowSteps:
    """Finds slow steps: those beyond `factor` running medians, at most `most` of them."""

    factor: float
    most: int
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=MEDIAN_OF))

    def is_slow(self, seconds: float) -> bool:
        """Whether a step that was not profiled was slow; a slow one is left out of the median."""
        if len(self._recent) < FEWEST_FOR_MEDIAN or seconds <= self.factor * median(self._recent):
            self._recent.append(seconds)
            return False
        if self.most == 0:
            return False
        self.most -= 1
        return True


def steps_text(window: range) -> str:
    """`steps 3 to 5`, or `step 3`."""
    if len(window) == 1:
        return f"step {window[0]}"
    return f"steps {window[0]} to {window[-1]}"
