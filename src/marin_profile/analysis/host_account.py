"""Why all devices of a host idle at once: that time, split over what the host did then.

Contract
* The account covers whole periods of the kept steps, else the whole capture, on the event clock.
  Idle is what no main device works in; the rows sum to it exactly, and so do the steps' parts.
* Time inside an execution (between its first and its last op on some device) is the devices' own:
  ON_DEVICE. While the main thread (see `host_thread`) compiles it is COMPILE. Else it is QUEUED
  while something is launched and has not begun, whatever the main thread does then; or WRITE
  while some thread copies to the devices, which is what the program then waits for. Else it is
  what the main thread did: the outermost event that is no Python frame; else the outermost frame;
  else DISPATCH between two of launches, waits and reads that lie at most BETWEEN_LAUNCHES apart;
  else UNTRACED. Events that hold a whole marker (or step) tell nothing of it.
* Markers only tell inside from between them.
* Where the clocks of host and devices contradict each other, or no thread of the host is known,
  there is no account. Times are picoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from marin_profile.analysis.device_ops import HostDevices
from marin_profile.analysis.host_thread import Compiling, HostThread, compilations
from marin_profile.analysis.queued import queued
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.base.columns import (
    counts_of,
    distinct,
    extent_by,
    rows_with,
    sum_by,
    unique_pairs,
)
from marin_profile.base.intervals import Intervals
from marin_profile.base.times import PS_PER_US
from marin_profile.events.host_events import (
    COMPILE,
    DISPATCH,
    FRAME,
    READ,
    WAIT,
    WRITE,
    kind_of_host_event,
    launched_function,
)
from marin_profile.events.timeline import Int64s

ON_DEVICE: Final = "on_device"
QUEUED: Final = "queued"
UNTRACED: Final = "untraced"
# What JAX does in Python for a launch, outside of any event, takes some 10 us.
BETWEEN_LAUNCHES = 100 * PS_PER_US
_NONE = -1


@dataclass(frozen=True)
class HostCause:
    """Idle time of one cause. kind: ON_DEVICE, QUEUED, UNTRACED, or what the event is (see
    `host_events`); inside: within a step marker, None without markers. places: in
    HostAccount.steps, of those in whose periods some of it lies; in_place: how much. count: events
    that begin in the window, 0 for ON_DEVICE, QUEUED and UNTRACED. DISPATCH has no name."""

    kind: str
    name: str
    inside: bool | None
    idle: int
    places: Int64s
    in_place: Int64s
    count: int

    def per_step(self, steps: int) -> Int64s:
        """(steps,) the part of each step's period."""
        return sum_by(self.places, self.in_place, steps)


@dataclass(frozen=True)
class Compile:
    """One compilation: the function ("" if unknown), its time with tracing and lowering, and the
    position of the step in whose period it began (None: the account has no steps)."""

    function: str
    duration: int
    step: int | None


@dataclass(frozen=True)
class HostAccount:
    """See the module docstring. first, periods: the position of the first step whose period it
    covers, and how many they are, none where it covers the whole capture; length: of its window;
    some_idle: over all devices, idle while another one works; reads, launches: of the main thread
    in the window, launches by function. rounds: in each of `steps`, how often the host waited for
    a device, or read from it, and then launched again; own: when the main thread neither waited nor
    read."""

    first: int
    periods: int
    length: int
    idle: int
    some_idle: int
    causes: tuple[HostCause, ...]
    compiles: tuple[Compile, ...]
    reads: int
    launches: tuple[tuple[str, int], ...]
    rounds: tuple[int, ...] = ()
    own: int = 0

    @property
    def steps(self) -> range:
        """The positions of the steps."""
        return range(self.first, self.first + self.periods)


def host_account(
    host: HostDevices, steps: StepSeries, first: int, thread: HostThread | None
) -> HostAccount | None:
    """`first`: the position of the first kept step; `thread`: see `thread_beside`."""
    if thread is None:
        return None
    edges = _period_edges(host, steps, first)
    kept = range(first, steps.count - 1)
    if edges is None:
        starts = [int(device.event_start.min()) for device in host.main]
        ends = [int(device.event_end.max()) for device in host.main]
        edges, kept = np.array([min(starts), max(ends)], np.int64), range(0)
    return _account(host, kept, edges, thread)


def _period_edges(host: HostDevices, steps: StepSeries, first: int) -> Int64s | None:
    """Where the steps from `first` on begin, the earliest on any device; event clock. None where
    there is no whole period."""
    if first >= steps.whole.stop or steps.count - first < 2:
        return None
    edges = np.full(steps.count - first, np.iinfo(np.int64).max)
    for device, boundary, present in zip(host.main, steps.boundary, steps.present, strict=True):
        own = device.to_event_clock(boundary[first:])
        edges = np.where(present[first:], np.minimum(edges, own), edges)
    return edges if (np.diff(edges) > 0).all() else None


# --- causes ---

Key = tuple[str, str]


@dataclass(frozen=True)
class _Layer:
    """Disjoint intervals in order, and the cause of each: an index into the keys."""

    start: Int64s
    end: Int64s
    cause: Int64s

    def at(self, points: Int64s) -> Int64s:
        """The cause of the interval that holds each point, else _NONE."""
        if not len(self.start):
            return np.full(len(points), _NONE, np.int64)
        place = np.searchsorted(self.start, points, side="right") - 1
        last = np.maximum(place, 0)
        return np.where((place >= 0) & (points < self.end[last]), self.cause[last], _NONE)


class _Causes:
    """Numbers for causes, by kind and name; 0 is UNTRACED, 1 is ON_DEVICE, 2 is QUEUED."""

    def __init__(self) -> None:
        self.keys: list[Key] = [(UNTRACED, ""), (ON_DEVICE, ""), (QUEUED, "")]
        self._at = {key: at for at, key in enumerate(self.keys)}

    def of(self, kind: str, name: str) -> int:
        if (kind, name) not in self._at:
            self._at[kind, name] = len(self.keys)
            self.keys.append((kind, name))
        return self._at[kind, name]

    def layer(self, thread: HostThread) -> _Layer:
        """Disjoint events, each its own cause."""
        size = max(thread.names, default=-1) + 1
        cause = np.zeros(size, np.int64)
        for at in distinct(thread.op, size).tolist():
            kind = thread.kinds[at]
            cause[at] = self.of(kind, "" if kind == DISPATCH else thread.names[at])
        return _Layer(thread.start, thread.end, cause[thread.op])

    def compiling(self, found: Sequence[Compiling]) -> _Layer:
        return _Layer(
            np.array([one.start for one in found], np.int64),
            np.array([one.end for one in found], np.int64),
            np.array([self.of(COMPILE, one.function) for one in found], np.int64),
        )


def _launches(calls: HostThread) -> Counter[str]:
    """Calls of jitted functions, by the function."""
    found: Counter[str] = Counter()
    size = max(calls.names, default=-1) + 1
    for at, count in enumerate(counts_of(calls.op, size).tolist()):
        function = launched_function(calls.names[at]) if count else None
        if function is not None:
            found[function] += count
    return found


def _rounds(thread: HostThread, edges: Int64s) -> Int64s:
    calls = thread.of(DISPATCH, WAIT, READ).outermost
    starts = np.zeros(max(calls.names, default=-1) + 1, np.bool_)
    starts[[op for op in calls.names if launched_function(calls.names[op]) is not None]] = True
    waits = calls.are(WAIT, READ)
    calls, waits = calls.only(starts[calls.op] | waits), waits[starts[calls.op] | waits]
    again = calls.start[1:][waits[:-1] & ~waits[1:]]
    return np.diff(np.searchsorted(again, edges))


def _between_launches(causes: _Causes, calls: HostThread) -> _Layer:
    starts, ends = calls.end[:-1], calls.start[1:]
    near = (ends > starts) & (ends - starts <= BETWEEN_LAUNCHES)
    cause = np.full(int(near.sum()), causes.of(DISPATCH, ""), np.int64)
    return _Layer(starts[near], ends[near], cause)


def _waiting(causes: _Causes, host: HostDevices, waiting: Intervals) -> tuple[_Layer, ...]:
    """While copies to the devices run, and while none does."""
    timeline = host.timeline
    names = [op.name if kind_of_host_event(op.name) == WRITE else "" for op in timeline.ops]
    ops = [at for at, name in enumerate(names) if name]
    rows = host.host_rows(rows_with(timeline.op, ops, len(timeline.ops)))
    start, length = timeline.start[rows], timeline.duration[rows]
    taken: Counter[str] = Counter()
    for at, time in zip(timeline.op[rows].tolist(), length.tolist(), strict=True):
        taken[names[at]] += time
    name = min(taken, key=lambda one: (-taken[one], one), default="")
    copying = waiting & Intervals.union_of(start, start + length)
    return _layer(copying, causes.of(WRITE, name)), _layer(waiting - copying, 2)


def _layer(spans: Intervals, cause: int) -> _Layer:
    return _Layer(spans.starts, spans.ends, np.full(len(spans), cause, np.int64))


def _on_device(host: HostDevices) -> _Layer:
    """From the first to the last op of every execution."""
    starts, ends = [], []
    for device in host.main:
        executions = device.executions
        if executions is not None and len(executions.start):
            size = len(executions.start)
            first, last = extent_by(device.execution, device.event_start, device.event_end, size)
            has_ops = first < last
            starts.append(first[has_ops])
            ends.append(last[has_ops])
    whole = Intervals.empty()
    if starts:
        whole = Intervals.union_of(np.concatenate(starts), np.concatenate(ends))
    return _layer(whole, 1)


# --- the account ---


def _account(host: HostDevices, kept: range, edges: Int64s, thread: HostThread) -> HostAccount:
    begin, end = int(edges[0]), int(edges[-1])
    idle, some_idle = _idle(host, begin, end)
    causes = _Causes()
    if len(thread.markers):
        thread = thread.without_holders(thread.markers.starts, thread.markers.ends)
    else:
        thread = thread.without_holders(edges[:-1], edges[1:])
    is_frame = thread.are(FRAME)
    calls = thread.of(DISPATCH).outermost
    compiles = compilations(thread)
    events, frames = thread.only(~is_frame).outermost, thread.only(is_frame).outermost
    layers = (
        _on_device(host),
        causes.compiling(compiles),
        *_waiting(causes, host, queued(host, thread)),
        causes.layer(events),
        causes.layer(frames),
        _between_launches(causes, thread.of(DISPATCH, WAIT, READ).outermost),
    )
    sides = [side for layer in layers for side in (layer.start, layer.end)]
    starts, amount = _cut(idle, [edges, thread.markers.starts, thread.markers.ends, *sides])
    cause = np.zeros(len(starts), np.int64)
    unknown = np.arange(len(starts))
    for layer in layers:
        found = layer.at(starts[unknown])
        is_known = found != _NONE
        cause[unknown[is_known]] = found[is_known]
        unknown = unknown[~is_known]
    markers = _layer(thread.markers, 1)
    inside = np.maximum(markers.at(starts), 0)
    step = np.searchsorted(edges, starts, side="right") - 1
    counts: Counter[Key] = Counter()
    for layer in (layers[1], layers[2], *layers[4:]):
        here = layer.cause[(layer.start >= begin) & (layer.start < end)]
        for at, count in enumerate(counts_of(here, len(causes.keys)).tolist()):
            counts[causes.keys[at]] += count
    reads, waits = thread.of(READ), thread.of(READ, WAIT)
    launches = _launches(calls.only((calls.start >= begin) & (calls.start < end)))
    counts[DISPATCH, ""] = sum(launches.values())
    rows = []
    group, place, index = unique_pairs(cause, inside)
    per_step = np.zeros((len(group), len(edges) - 1), np.int64)
    np.add.at(per_step, (index, step), amount)
    for at, (key, is_inside) in enumerate(zip(group.tolist(), place.tolist(), strict=True)):
        kind, name = causes.keys[key]
        places = np.flatnonzero(per_step[at]) if kept else np.zeros(0, np.int64)
        rows.append(
            HostCause(
                kind=kind,
                name=name,
                inside=bool(is_inside) if len(thread.markers) else None,
                idle=int(per_step[at].sum()),
                places=places,
                in_place=per_step[at][places],
                count=counts[kind, name],
            )
        )
    return HostAccount(
        first=kept.start,
        periods=len(kept),
        length=end - begin,
        idle=idle.total,
        some_idle=some_idle,
        causes=tuple(sorted(rows, key=lambda row: (-row.idle, row.kind, row.name, not row.inside))),
        compiles=tuple(
            Compile(
                one.function,
                one.end - one.start,
                kept[int(np.searchsorted(edges, one.start, side="right")) - 1] if kept else None,
            )
            for one in compiles
            if begin <= one.start < end
        ),
        reads=int(((reads.start >= begin) & (reads.start < end)).sum()),
        launches=tuple(sorted(launches.items(), key=lambda item: (-item[1], item[0]))),
        rounds=tuple(_rounds(thread, edges).tolist()) if kept else (),
        own=end - begin - Intervals.union_of(waits.start, waits.end).clip(begin, end).total,
    )


def _cut(idle: Intervals, cuts: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """Idle time in pieces: cut wherever what the host does may change; starts and lengths."""
    inside = []
    for points in cuts:
        place = np.searchsorted(idle.starts, points) - 1  # -1: before all
        inside.append(points[(place >= 0) & (points < np.append(idle.ends, 0)[place])])
    starts = np.sort(np.concatenate((idle.starts, *inside)))
    own = idle.ends[np.searchsorted(idle.starts, starts, side="right") - 1]
    length = np.minimum(own, np.append(starts[1:], own[-1:])) - starts
    return starts[length > 0], length[length > 0]


def _idle(host: HostDevices, begin: int, end: int) -> tuple[Intervals, int]:
    """When all main devices idle, and how long devices idle while another one works, summed."""
    window = Intervals(np.array([begin], np.int64), np.array([end], np.int64))
    busy = Intervals.empty()
    each = 0
    for device in host.main:
        own = Intervals.union_of(device.event_start, device.event_end) & window
        each += end - begin - own.total
        busy = busy | own
    idle = window - busy
    return idle, each - len(host.main) * idle.total
