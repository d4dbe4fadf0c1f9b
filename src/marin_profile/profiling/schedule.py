"""When to capture: the planned windows of a run, from the first step that can be profiled on.

Contract
* Steps in, ranges of steps out; nothing here knows JAX, Levanter or files. Steps are absolute:
  those of the run, however often it resumed.
* A window that lies before the first step that can be profiled, and that no record says was taken,
  is taken from there on, at its full length: once for all such windows, and for those that repeat
  only if the newest of them was missed.
* `Schedule.next` costs the same for every schedule and step.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from marin_profile.profiling.config import ProfilerConfig, Window


@dataclass(frozen=True)
class Planned:
    """Steps to profile; `planned_for`: the first steps of the windows they stand for."""

    steps: range
    planned_for: tuple[int, ...]

    @property
    def steps_text(self) -> str:
        return steps_text(self.steps)


@dataclass(frozen=True)
class Schedule:
    """The windows of a run of `num_steps` steps (None: no end is known); with `every`, each comes
    again after so many. `missed`: windows that lay before the run's first step, to be taken now."""

    windows: tuple[Window, ...]
    every: int | None
    num_steps: int | None
    missed: Planned | None = None

    def next(self, step: int) -> Planned | None:
        """The first window that begins at `step` or later."""
        regular = self._regular(step)
        if self.missed is None or self.missed.steps.start < step:
            return regular
        if regular is None or self.missed.steps.start <= regular.steps.start:
            return self._cut(self.missed)
        return regular

    def _regular(self, step: int) -> Planned | None:
        found = [
            (start, window.num_steps)
            for window in self.windows
            if (start := _from(window.start_step, self.every, step)) is not None
            and (self.num_steps is None or start < self.num_steps)
        ]
        if not found:
            return None
        start, length = min(found)
        stop = start + length
        if self.num_steps is not None:
            stop = min(stop, self.num_steps)
        return Planned(range(start, stop), (start,))

    def _cut(self, missed: Planned) -> Planned:
        """Not into the next window, nor beyond the end."""
        start, stop = missed.steps.start, missed.steps.stop
        following = self._regular(start)
        if following is not None and following.steps.start > start:
            stop = min(stop, following.steps.start)
        if self.num_steps is not None:
            stop = min(stop, self.num_steps)
        return Planned(range(start, stop), missed.planned_for)


def schedule_of(
    config: ProfilerConfig, num_steps: int | None, first_step: int, taken: Collection[int] = ()
) -> Schedule:
    """The schedule of a run of which `first_step` is the first one that can be profiled; `taken`:
    first steps of the windows that it took before."""
    whole = Schedule(config.base_windows, config.every, num_steps)
    missed = [
        (start, window.num_steps)
        for window in whole.windows
        if (start := _last_before(window.start_step, config.every, first_step)) is not None
        and start not in taken
    ]
    if not missed:
        return whole
    steps = range(first_step, first_step + max(length for _, length in missed))
    if num_steps is not None and first_step >= num_steps:
        return whole
    starts = tuple(sorted(start for start, _ in missed))
    return Schedule(whole.windows, whole.every, num_steps, Planned(steps, starts))


def beyond_the_end(config: ProfilerConfig, num_steps: int) -> list[int]:
    """First steps of the windows that training ends before."""
    return [w.start_step for w in config.base_windows if w.start_step >= num_steps]


def refuse_too_early(config: ProfilerConfig, first_step: int) -> None:
    """Raises ValueError for a window that no run could start: `first_step` is the first that a run
    from its beginning can profile."""
    for window in config.base_windows:
        if window.start_step < first_step:
            raise ValueError(
                f"start_step must be at least {first_step} with this Levanter, is "
                f"{window.start_step}: its first hook is called after step {first_step - 1}"
            )


def steps_text(steps: range) -> str:
    """`steps 3 to 5`, or `step 3`."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"steps {steps[0]} to {steps[-1]}"


def _from(start: int, every: int | None, step: int) -> int | None:
    """The first of start, start + every, ... that is `step` or later."""
    if start >= step:
        return start
    return None if every is None else start + -(-(step - start) // every) * every


def _last_before(start: int, every: int | None, step: int) -> int | None:
    """The last of start, start + every, ... that is before `step`."""
    if start >= step:
        return None
    return start if every is None else start + (step - 1 - start) // every * every
