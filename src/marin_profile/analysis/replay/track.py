"""One host's devices as a replay needs them: when they worked, and when all of them idled.

Contract
* A track covers a device's whole periods of the kept steps, on its device clock. There is none for
  a host without whole periods.
* A host gap is time in which no main device works and none is between the first and the last op of
  an execution; shorter ones than LEAST_GAP are the devices' own time. Of more than MOST_GAPS the
  longest count.
* A host that reads from its devices or waits for them at least once a step waits for them, and so
  does one whose step markers end when its devices do.
* Time of the host's hottest ops, scopes and of the recompute pass is kept between the points at
  which a device meets others, so that tracks stay small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.collectives.instances import DeviceInstances, HostCollectives
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.host_account import ON_DEVICE, HostAccount
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.ops import OpTotals
from marin_profile.analysis.planes import CPU, SPARSECORE
from marin_profile.analysis.steps.annotations import find_markers
from marin_profile.base.columns import extent_by, is_sorted
from marin_profile.base.intervals import Intervals, Window
from marin_profile.base.times import PS_PER_US
from marin_profile.events.classify import COMPUTE
from marin_profile.events.host_events import COMPILE, FRAME, NAMED, WAIT
from marin_profile.events.scopes import RECOMPUTE
from marin_profile.events.timeline import Int64s

OP, SCOPE, PASS = "op", "scope", "pass"
LEAST_GAP = PS_PER_US
MOST_GAPS = 20_000
MOST_OPS = 6
MOST_SCOPES = 4
NEAR = 0.05
NEARLY_ALL = 0.9
AVOIDABLE = frozenset({COMPILE, FRAME, NAMED})

Part = tuple[str, str]  # OP, SCOPE or PASS, and its name


@dataclass(frozen=True)
class DeviceTrack:
    """begin, end: of the whole periods. gap_from, gap_to: per host gap the end of the device's work
    before it and the start of that after it. times, spent: points of its time, ascending, and
    (parts, points) how long it had worked for each part of the host's before each of them."""

    name: str
    begin: int
    end: int
    gap_from: Int64s
    gap_to: Int64s
    times: Int64s
    spent: Int64s


@dataclass(frozen=True)
class HostTrack:
    """gap_start, gap_end: the host gaps, in order. waits: whether the host waits for its devices in
    each step, so that it launches no earlier than they are done. avoidable: the part of idle time
    in which it was seen to do what no launch needs, 0 without an account. shared: whether its
    devices share processors."""

    periods: int
    gap_start: Int64s
    gap_end: Int64s
    parts: tuple[Part, ...]
    waits: bool
    avoidable: float
    shared: bool
    devices: tuple[DeviceTrack, ...]


def host_track(
    host: HostDevices,
    windows: Sequence[Window],
    periods: int,
    collectives: HostCollectives,
    ops: Sequence[OpTotals],
    account: HostAccount | None,
    *,
    agrees: bool,
) -> HostTrack | None:
    """`windows`: the whole periods of each main device, none where there are no steps. `agrees`:
    whether the clocks of host and devices do."""
    if not windows or not periods or any(end <= begin for begin, end in windows):
        return None
    begin, end = min(begin for begin, _ in windows), max(end for _, end in windows)
    busy = [Intervals.union_of(device.start, device.end) for device in host.main]
    gaps = _host_gaps(host, busy, (begin, end))
    parts = hottest_parts(ops)
    part_of = _parts_of(host.facts, parts)
    instances = {device.device: device for device in collectives.devices}
    return HostTrack(
        periods=periods,
        gap_start=gaps.starts,
        gap_end=gaps.ends,
        parts=parts,
        waits=_waits(account, periods) or (agrees and _markers_wait(host, gaps, (begin, end))),
        avoidable=_avoidable(account),
        shared=len(host.main) > 1 and host.main[0].kind == CPU,
        devices=tuple(
            _track(device, window, own, gaps, instances.get(device.name), part_of, len(parts))
            for device, window, own in zip(host.main, windows, busy, strict=True)
        ),
    )


def _waits(account: HostAccount | None, periods: int) -> bool:
    if account is None:
        return False
    waits = sum(row.count for row in account.causes if row.kind == WAIT)
    return account.reads + waits >= periods


def _markers_wait(host: HostDevices, gaps: Intervals, window: Window) -> bool:
    """Whether nearly all markers end when the devices have just done their work, close to it for
    the work that ran inside the marker: not by chance."""
    annotations = find_markers(host.timeline)
    if not annotations or not len(gaps) or len(host.timeline.device_start):
        return False
    spans = annotations[0].spans
    inside = (spans.start >= window[0]) & (spans.end <= window[1])
    start, end = spans.start[inside], spans.end[inside]
    if len(end) < 2:
        return False
    busy = end - start - gaps.covered(start, end)
    before = np.searchsorted(gaps.starts, end, side="right") - 1
    after_work = end - gaps.starts[np.maximum(before, 0)]
    in_gap = (before >= 0) & (end <= gaps.ends[np.maximum(before, 0)])
    return float((in_gap & (after_work <= NEAR * busy)).mean()) >= NEARLY_ALL


def _avoidable(account: HostAccount | None) -> float:
    if account is None:
        return 0.0
    idle = sum(row.idle for row in account.causes if row.kind != ON_DEVICE)
    avoidable = sum(row.idle for row in account.causes if row.kind in AVOIDABLE)
    return avoidable / idle if idle else 0.0


def _host_gaps(host: HostDevices, busy: Sequence[Intervals], window: Window) -> Intervals:
    used = Intervals.empty()
    for device, own in zip(host.main, busy, strict=True):
        used = used | own
        if device.executions is not None and len(device.executions.start):
            size = len(device.executions.start)
            first, last = extent_by(device.execution, device.start, device.end, size)
            used = used | Intervals.union_of(first, last)
    idle = Intervals.union_of(np.array(window[:1]), np.array(window[1:])) - used
    length = idle.ends - idle.starts
    least = LEAST_GAP
    if len(length) > MOST_GAPS:
        least = max(least, int(np.sort(length)[-MOST_GAPS]))
    chosen = length >= least
    return Intervals(idle.starts[chosen], idle.ends[chosen])


def _track(
    device: DeviceOps,
    window: Window,
    busy: Intervals,
    gaps: Intervals,
    instances: DeviceInstances | None,
    part_of: Int64s,
    parts: int,
) -> DeviceTrack:
    begin, end = window
    following = np.searchsorted(busy.starts, gaps.starts)
    ends = np.concatenate(([begin], busy.ends))
    starts = np.concatenate((busy.starts, [end]))
    gap_from = np.clip(ends[following], begin, end)
    gap_to = np.clip(starts[following], begin, end)
    points = [np.array(window), gap_from, gap_to]
    if instances is not None:
        stop = instances.start + instances.duration
        points += [instances.start, stop - blocking(instances.exposed, instances.duration), stop]
    times = np.unique(np.concatenate(points).astype(np.int64))
    spent = spent_before(
        times, device.piece_start, device.piece_end, device.op[device.piece_owner], part_of, parts
    )
    return DeviceTrack(device.name, begin, end, gap_from, gap_to, times, spent)


def blocking(exposed: Int64s, duration: Int64s) -> Int64s:
    """How long before its end a collective stops its device."""
    return np.clip(exposed, 0, np.maximum(duration, 0))


# --- parts ---


def hottest_parts(ops: Sequence[OpTotals]) -> tuple[Part, ...]:
    """Of compute in whole periods; ties by name."""
    names: Counter[str] = Counter()
    scopes: Counter[str] = Counter()
    recompute = 0
    for op in ops:
        if op.facts.kind != COMPUTE or op.device_kind == SPARSECORE or not op.period_exclusive:
            continue
        names[op.facts.canonical] += op.period_exclusive
        if len(op.facts.scope) > 1:
            scopes[_scope(op.facts)] += op.period_exclusive
        recompute += op.period_exclusive * (op.facts.pass_name == RECOMPUTE)
    return (
        *((OP, name) for name in _largest(names, MOST_OPS)),
        *((SCOPE, name) for name in _largest(scopes, MOST_SCOPES)),
        *([(PASS, RECOMPUTE)] if recompute else []),
    )


def _scope(fact: OpFacts) -> str:
    """Without the op's own name."""
    return "/".join(fact.scope[:-1])


def _largest(times: Counter[str], most: int) -> list[str]:
    return sorted(times, key=lambda name: (-times[name], name))[:most]


def _parts_of(facts: Sequence[OpFacts], parts: Sequence[Part]) -> Int64s:
    """(3, facts) the part of each op as OP, SCOPE and PASS, -1 for none."""
    at = {part: number for number, part in enumerate(parts)}
    rows = [
        (
            at.get((OP, fact.canonical), -1),
            at.get((SCOPE, _scope(fact)), -1),
            at.get((PASS, fact.pass_name), -1),
        )
        if fact.kind == COMPUTE
        else (-1, -1, -1)
        for fact in facts
    ]
    return np.array(rows, np.int64).reshape(len(facts), 3).T.copy()


def spent_before(
    times: Int64s,
    piece_start: Int64s,
    piece_end: Int64s,
    op: Int64s,
    part_of: Int64s,
    parts: int,
) -> Int64s:
    """(parts, points) the time of the pieces of each part before each point, from the first point
    on. part_of: (3, ops) the parts of an op, -1 for none; the pieces are in order of their
    start."""
    spent = np.zeros((parts, len(times)), np.int64)
    for part in range(parts):
        in_part = (part_of == part).any(axis=0)
        own = np.flatnonzero(in_part[op])
        if len(own):
            spent[part] = _covered_before(times, piece_start[own], piece_end[own])
    return spent


def _covered_before(times: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """How much of [times[0], times[i]) the intervals take together; they are sorted by start."""
    ends = ends if is_sorted(ends) else np.sort(ends)
    elapsed = _elapsed(times, starts) - _elapsed(times, ends)
    return elapsed - elapsed[0]


def _elapsed(times: Int64s, since: Int64s) -> Int64s:
    """At each time how long ago the sorted instants before it are, together. It may not fit its 64
    bits; differences that fit are right all the same."""
    count = np.searchsorted(since, times)
    return count * times - np.append(0, np.cumsum(since))[count]
