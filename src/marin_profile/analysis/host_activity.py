"""What the main thread of a host did while a device was idle.

Contract: it compiled (see `host_thread`), or ran the outermost event that covers half of the gap,
in a Python frame only where no other event does; events that hold the whole step do not count.
Host events are looked at only where the clocks of host and devices agree. Times are picoseconds on
the event clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from marin_profile.analysis.host_thread import HostThread, compilations
from marin_profile.base.intervals import Intervals
from marin_profile.events.host_events import COMPILE, FRAME
from marin_profile.events.host_events import NAMED as HOST_EVENT
from marin_profile.events.timeline import Int64s

# The part of a gap that a host event, or compiling, must cover to be its cause.
LEAST_COVERED: Final = 0.5


@dataclass(frozen=True)
class IdleGap:
    """[start, end) before an op, inside the period [begin, finish) of its step; event clock."""

    before: str
    start: int
    end: int
    begin: int
    finish: int


class HostActivity:
    """`thread`: see `thread_beside`."""

    def __init__(self, thread: HostThread | None) -> None:
        self._thread = thread

    @cached_property
    def _layers(self) -> tuple[tuple[HostThread, Int64s], ...]:
        """Events that are no frames, and frames; with the last end up to each."""
        assert self._thread is not None
        is_frame = self._thread.are(FRAME)
        parts = (self._thread.only(~is_frame), self._thread.only(is_frame))
        return tuple((part, np.maximum.accumulate(part.end)) for part in parts)

    @cached_property
    def _compiling(self) -> Intervals:
        assert self._thread is not None
        found = compilations(self._thread)
        starts = np.array([one.start for one in found], np.int64)
        return Intervals.union_of(starts, np.array([one.end for one in found], np.int64))

    def during(self, gap: IdleGap) -> tuple[str, str] | None:
        """COMPILE or HOST_EVENT with the event's name, if that covers enough of the gap."""
        if self._thread is None:
            return None
        enough = LEAST_COVERED * (gap.end - gap.start)
        compiling = self._compiling.clip(gap.start, gap.end).total
        for layer, reached in self._layers:
            events = _outermost(layer, reached, gap)
            length, name = max(((length, name) for name, length in events.items()), default=(0, ""))
            if length >= enough:
                return COMPILE if compiling >= enough else HOST_EVENT, name
        return (COMPILE, "") if compiling >= enough else None


def _outermost(thread: HostThread, reached: Int64s, gap: IdleGap) -> Counter[str]:
    """Time of the outermost events in a gap by name, without those that hold the whole step."""
    low = int(np.searchsorted(reached, gap.start, side="right"))
    high = int(np.searchsorted(thread.start, gap.end))
    rows = np.arange(low, high)
    holds_step = (thread.start[rows] <= gap.begin) & (thread.end[rows] >= gap.finish)
    rows = rows[(thread.end[rows] > gap.start) & ~holds_step]
    begins = np.maximum(thread.start[rows], gap.start)
    ends = np.minimum(thread.end[rows], gap.end)
    found: Counter[str] = Counter()
    covered = gap.start
    for op, begin, end in zip(
        thread.op[rows].tolist(), begins.tolist(), ends.tolist(), strict=True
    ):
        if end > covered:
            found[thread.names[op]] += end - max(begin, covered)
            covered = end
    return found
