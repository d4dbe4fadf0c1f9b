"""The main thread of a host: which one it is, its events, and when it compiles.

Contract
* It is that of the step markers, else the one with most calls of jitted functions, else the one
  with most launches.
* It compiles from the start of the outermost call around compiling to the end of compiling, with
  tracing and lowering.
* A wait of which two events of one name and flow tell begin and end is one event.
* Step markers and events that take no time are left out. Times are picoseconds on the event clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.clocks import ClockCheck
from marin_profile.analysis.device_ops import HostDevices
from marin_profile.analysis.steps.annotations import find_markers
from marin_profile.base.columns import distinct, rows_with
from marin_profile.base.intervals import Intervals
from marin_profile.events.host_events import (
    COMPILE,
    DISPATCH,
    WAIT,
    kind_of_host_event,
    launched_function,
)
from marin_profile.events.timeline import Flow, Int64s, Timeline


@dataclass(frozen=True)
class HostThread:
    """Events in order of their start, the longest first, and the step markers. names, kinds (see
    `host_events`): of the ops that occur."""

    op: Int64s
    start: Int64s
    end: Int64s
    markers: Intervals
    names: Mapping[int, str]
    kinds: Mapping[int, str]

    def only(self, chosen: NDArray[np.bool_] | Int64s) -> HostThread:
        return replace(self, op=self.op[chosen], start=self.start[chosen], end=self.end[chosen])

    def are(self, *kinds: str) -> NDArray[np.bool_]:
        """Which events are of one of these kinds."""
        chosen = np.zeros(max(self.kinds, default=-1) + 1, np.bool_)
        chosen[[op for op, kind in self.kinds.items() if kind in kinds]] = True
        return chosen[self.op]

    def of(self, *kinds: str) -> HostThread:
        return self.only(self.are(*kinds))

    @property
    def outermost(self) -> HostThread:
        """Without the events that lie in another one."""
        if not len(self.op):
            return self
        reached = np.maximum.accumulate(self.end)
        return self.only(np.concatenate(([True], self.start[1:] >= reached[:-1])))

    def without_holders(self, starts: Int64s, ends: Int64s) -> HostThread:
        """Without the events that hold one of the intervals, which are in order, as a whole."""
        following = np.searchsorted(starts, self.start)
        holds = np.append(ends, np.iinfo(np.int64).max)[following] <= self.end
        return self.only(~holds) if holds.any() else self


@dataclass(frozen=True)
class Compiling:
    """function: what is compiled, "" if not known."""

    function: str
    start: int
    end: int


def thread_beside(host: HostDevices, clock: ClockCheck) -> HostThread | None:
    """The main thread, where its times can be laid beside those of the devices."""
    return main_thread(host) if clock.agrees and host.main else None


def main_thread(host: HostDevices) -> HostThread | None:
    timeline = host.timeline
    annotations = find_markers(timeline)
    markers = Intervals.empty()
    if annotations and not annotations[0].is_lone:
        spans = annotations[0].spans
        line = int(np.argmax(np.bincount(spans.line)))
        own = spans.line == line
        markers = Intervals.union_of(spans.start[own], spans.end[own])
    else:
        launching = _launching_line(host)
        if launching is None:
            return None
        line = launching
    rows = timeline.rows_of(timeline.lines[line])
    is_marker, _ = timeline.step_num.find(rows)
    rows = rows[~is_marker & (timeline.duration[rows] > 0)]
    op = timeline.op[rows].astype(np.int64)
    names = {at: timeline.ops[at].name for at in distinct(op, len(timeline.ops)).tolist()}
    kinds = {at: kind_of_host_event(name) for at, name in names.items()}
    start, end = timeline.start[rows], timeline.start[rows] + timeline.duration[rows]
    first, last = _waits(timeline, rows, [at for at, kind in kinds.items() if kind == WAIT])
    end[first] = end[last]
    kept = np.ones(len(rows), np.bool_)
    kept[last] = False
    op, start, end = op[kept], start[kept], end[kept]
    order = np.lexsort((start - end, start))
    return HostThread(op[order], start[order], end[order], markers, names, kinds)


def _waits(timeline: Timeline, rows: Int64s, ops: list[int]) -> tuple[Int64s, Int64s]:
    """Positions in `rows`, which ascend, of the events with which waits begin and end."""
    produced, consumed = timeline.produced, timeline.consumed
    begins: dict[tuple[int, int, int], int] = {}
    for flow, at in _flows_of(timeline, produced, rows, ops):
        begins[flow] = at
    pairs = [
        (begins.pop(flow), at)
        for flow, at in _flows_of(timeline, consumed, rows, ops)
        if begins.get(flow, at) < at
    ]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _flows_of(
    timeline: Timeline, flow: Flow, rows: Int64s, ops: list[int]
) -> Iterator[tuple[tuple[int, int, int], int]]:
    """(op, type, id) and the position in `rows` of its ends at events of these ops."""
    at = np.searchsorted(rows, flow.rows)
    known = (at < len(rows)) & np.isin(timeline.op[flow.rows], ops)
    known[known] = rows[at[known]] == flow.rows[known]
    columns = (timeline.op[flow.rows], flow.types, flow.ids, at)
    for op, kind, number, place in zip(*(one[known].tolist() for one in columns), strict=True):
        yield (op, kind, number), place


def _launching_line(host: HostDevices) -> int | None:
    timeline = host.timeline
    calls = [at for at, op in enumerate(timeline.ops) if launched_function(op.name) is not None]
    rows = rows_with(timeline.op, calls, len(timeline.ops))
    if not len(rows):
        launches = np.union1d(timeline.run_id.rows, timeline.correlation_id.rows)
        rows = host.host_rows(launches)
    return int(np.argmax(np.bincount(timeline.line[rows]))) if len(rows) else None


def compilations(thread: HostThread) -> list[Compiling]:
    """Disjoint, in order."""
    compiling, calls = thread.of(COMPILE).outermost, thread.of(DISPATCH).outermost
    begins, call = compiling.start, np.full(len(compiling.start), -1, np.int64)
    if len(calls.start):
        place = np.searchsorted(calls.start, begins, side="right") - 1
        is_in_call = (place >= 0) & (begins < calls.end[place])
        begins = np.where(is_in_call, calls.start[place], begins)
        call[is_in_call] = calls.op[place[is_in_call]]
    names = {at: launched_function(thread.names[at]) or "" for at in set(call.tolist()) - {-1}}
    found: dict[int, Compiling] = {}
    for start, end, at in zip(begins.tolist(), compiling.end.tolist(), call.tolist(), strict=True):
        first = found.get(start)
        if first is None:
            found[start] = Compiling(names.get(at, ""), start, end)
        elif end > first.end:
            found[start] = replace(first, end=end)
    return sorted(found.values(), key=lambda one: one.start)
