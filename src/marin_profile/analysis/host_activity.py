"""What the main threads of a host did while a device was idle.

Contract: a main thread is one of the step markers, or the one with the most launches. It compiled,
or ran the outermost event that covers half of the gap; events that hold the whole step do not
count. Host events are looked at only where the clocks of host and devices agree. Times are
picoseconds on the event clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marin_profile.analysis.clocks import ClockCheck
from marin_profile.analysis.device_ops import HostDevices
from marin_profile.base.intervals import Intervals
from marin_profile.events.timeline import Int64s, Timeline

COMPILE, HOST_EVENT = "compile", "host_event"

# The part of a gap that a host event, or compiling, must cover to be its cause.
LEAST_COVERED = 0.5
_COMPILES = re.compile(r"(?:^|[^a-z])(?:backend_|xla)?compil(?:e|ing|ation)", re.IGNORECASE)


@dataclass(frozen=True)
class IdleGap:
    """[start, end) before an op, inside the period [begin, finish) of its step; event clock."""

    before: str
    start: int
    end: int
    begin: int
    finish: int


class HostActivity:
    """What the main threads of a host did: those of the step markers, and the one with the most
    launches."""

    def __init__(self, host: HostDevices, clock: ClockCheck) -> None:
        self._host = host
        self._clocks_agree = clock.agrees

    @cached_property
    def _threads(self) -> list[_Thread]:
        timeline = self._host.timeline
        launches = np.union1d(timeline.run_id.rows, timeline.correlation_id.rows)
        launching = timeline.line[self._host.host_rows(launches)]
        marked = timeline.line[self._host.host_rows(timeline.step_num.rows)]
        lines = set(np.unique(marked).tolist())
        if len(launching):
            lines.add(int(np.argmax(np.bincount(launching))))
        return [_Thread(self._host, line) for line in sorted(lines)]

    def during(self, gap: IdleGap) -> tuple[str, str] | None:
        """COMPILE or HOST_EVENT with the event's name, if that covers enough of the gap; of several
        threads the one that covers most."""
        if not self._clocks_agree:
            return None
        enough = LEAST_COVERED * (gap.end - gap.start)
        found: list[tuple[bool, int, str]] = []
        for thread in self._threads:
            compiling, outermost = thread.during(gap)
            length, name = max(
                ((length, name) for name, length in outermost.items()), default=(0, "")
            )
            if max(compiling, length) >= enough:
                found.append((compiling >= enough, length, name))
        if not found:
            return None
        is_compile, _, name = max(found)
        return COMPILE if is_compile else HOST_EVENT, name


def lasting_rows(timeline: Timeline, line: int) -> Int64s:
    """The events of a line that last, without step markers, in order of their start and the longest
    first."""
    rows = timeline.rows_of(timeline.lines[line])
    is_marker, _ = timeline.step_num.find(rows)
    rows = rows[~is_marker & (timeline.duration[rows] > 0)]
    return rows[np.lexsort((-timeline.duration[rows], timeline.start[rows]))]


class _Thread:
    """The `lasting_rows` of one host line."""

    def __init__(self, host: HostDevices, line: int) -> None:
        timeline = host.timeline
        rows = lasting_rows(timeline, line)
        self._names = [op.name for op in timeline.ops]
        self._op = timeline.op[rows]
        self._start = timeline.start[rows]
        self._end = self._start + timeline.duration[rows]
        self._reached = np.maximum.accumulate(self._end) if len(rows) else self._end

    def during(self, gap: IdleGap) -> tuple[int, dict[str, int]]:
        """Time of compiling in a gap, and of the outermost events by name, leaving out those that
        hold the whole step."""
        low = int(np.searchsorted(self._reached, gap.start, side="right"))
        high = int(np.searchsorted(self._start, gap.end))
        rows = np.arange(low, high)
        holds_step = (self._start[rows] <= gap.begin) & (self._end[rows] >= gap.finish)
        rows = rows[(self._end[rows] > gap.start) & ~holds_step]
        begins = np.maximum(self._start[rows], gap.start)
        ends = np.minimum(self._end[rows], gap.end)
        names = [self._names[op] for op in self._op[rows].tolist()]
        compiles = np.array([bool(_COMPILES.search(name)) for name in names], np.bool_)
        compiling = Intervals.union_of(begins[compiles], ends[compiles]).total
        outermost: dict[str, int] = {}
        reached = gap.start
        for name, begin, stop in zip(names, begins.tolist(), ends.tolist(), strict=True):
            if stop > reached:
                outermost[name] = outermost.get(name, 0) + stop - max(begin, reached)
                reached = stop
        return compiling, outermost
