"""The dependencies of a capture's devices as columns, and the time that a replay of them takes.

Contract
* A device does its own work in order. At a *meeting* (a collective's instance, or a host gap) it
  arrives, and it departs when all that it waits for have arrived and `after` more has passed. In a
  host gap the devices of a host arrive with their last work before it and depart with their first
  work after it: the host waits for all of them, then acts.
* A collective stops a device only where no compute covers it; before, its own work goes on. Of
  one in flight that stops its device no longer than LITTLE it is not known when it was done.
* Replayed unchanged, each device ends when it did. Making any own time or `after` shorter makes
  nothing later. The order of devices does not matter.
* Devices of one host share a clock; hosts are laid beside each other by the ends of the collectives
  that they share, else by the start of their windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.collectives.instances import NO_VALUE
from marin_profile.analysis.collectives.matching import (
    HostShare,
    Table,
    by_size,
    members_of,
    tables_of,
)
from marin_profile.analysis.collectives.waits import neighbours
from marin_profile.analysis.replay.track import DeviceTrack, HostTrack, Part, blocking
from marin_profile.base.columns import counts_of
from marin_profile.base.jit import jit_no_alloc
from marin_profile.base.times import PS_PER_US
from marin_profile.events.timeline import Int64s

GAP = -1
LITTLE = PS_PER_US
_FAR = np.iinfo(np.int64).max
_NEVER = np.iinfo(np.int64).min
_MOST_POINTS = 4_000_000


@dataclass(frozen=True)
class Points:
    """What all devices do, device after device, each in order. own: work since the point before;
    meeting: which; departs: whether it departs from it or arrives at it. after: from the last
    arrival to the departure; wire: the part of it in which the collective runs everywhere, of a
    host gap all of it; at: when it happened, on the common clock. place: which points are alike in
    every step; kind: of the meeting, an index into the graph's kinds, or GAP. own_from, own_to:
    where its own work lies, on the device's clock. hidden: of a departure, whether the collective
    was in flight and stopped the device no longer than LITTLE."""

    device: Int64s
    own: Int64s
    meeting: Int64s
    departs: NDArray[np.bool_]
    after: Int64s
    wire: Int64s
    at: Int64s
    place: Int64s
    kind: Int64s
    own_from: Int64s
    own_to: Int64s
    hidden: NDArray[np.bool_]


@dataclass(frozen=True)
class Graph:
    """begin, end: of each device's whole periods, on the common clock; tail: its own work after its
    last point; shift: of its own clock to the common one. periods: how many all devices have.
    waits, avoidable: see HostTrack, the least of all hosts; shared: on any of them."""

    hosts: tuple[str, ...]
    names: tuple[str, ...]
    tracks: tuple[DeviceTrack, ...]
    parts: tuple[tuple[Part, ...], ...]
    begin: Int64s
    end: Int64s
    shift: Int64s
    tail: Int64s
    points: Points
    kinds: tuple[str, ...]
    periods: int
    waits: bool
    avoidable: float
    shared: bool

    def step(self, ends: Int64s) -> float:
        """The mean period of a device, the median over devices."""
        return float(np.median(ends - self.begin)) / self.periods

    def replay(
        self,
        *,
        own: Int64s | None = None,
        after: Int64s | None = None,
        tail: Int64s | None = None,
        least: bool = False,
    ) -> Int64s | None:
        """When each device ends; None where the order of the points contradicts itself. Where it is
        not known what holds a device, the least holds it; with `least` the most: collectives in
        flight were done when they were seen to be, and no device departs from a host gap earlier
        than it did, unless the host waits for its devices."""
        points = self.points
        own = points.own if own is None else own
        after = points.after if after is None else after
        if not least:
            stopped = points.at - self.shift[points.device] - points.own_to
            own = own + np.where(points.hidden, stopped, 0)
            after = np.where(points.hidden, 0, after)
        held = (points.kind == GAP) & points.departs & (least and not self.waits)
        floor = np.where(held, points.at, -_FAR)
        first = np.searchsorted(points.device, np.arange(len(self.names) + 1))
        ends, complete = replay(
            first,
            self.begin,
            own,
            points.meeting,
            points.departs,
            after,
            floor,
            self.tail if tail is None else tail,
        )
        return ends if complete else None


def replay(
    first: Int64s,
    begin: Int64s,
    own: Int64s,
    meeting: Int64s,
    departs: NDArray[np.bool_],
    after: Int64s,
    floor: Int64s,
    tail: Int64s,
) -> tuple[Int64s, bool]:
    """(when each device ends, whether all of them do). first: of each device's points."""
    meetings = int(meeting.max(initial=-1)) + 1
    missing = counts_of(meeting[~departs], meetings)
    last = np.full(meetings, _NEVER, np.int64)
    at, point = begin.copy(), first[:-1].copy()
    _advance(first, own, meeting, departs, after, floor, missing, last, at, point)
    return at + tail, bool((point == first[1:]).all())


@jit_no_alloc(views=True)
def _advance(first, own, meeting, departs, after, floor, missing, last, at, point):
    """Moves each device as far as it comes: `at` and `point`. Of each meeting, missing: how many
    have not arrived; last: when the last one did."""
    moved = True
    while moved:
        moved = False
        for device in range(len(at)):
            while point[device] < first[device + 1]:
                i = point[device]
                here = meeting[i]
                if departs[i]:
                    if missing[here]:
                        break
                    time = max(at[device] + own[i], floor[i])
                    if last[here] > _NEVER:
                        time = max(time, last[here] + after[i])
                    at[device] = time
                else:
                    at[device] += own[i]
                    last[here] = max(last[here], at[device])
                    missing[here] -= 1
                point[device] += 1
                moved = True


# --- building it ---


@dataclass
class _Meetings:
    """Rows of arrivals and departures, gathered; see Points. start: of the execution or gap."""

    count: int
    columns: dict[str, list[Int64s]]

    def add(self, **columns: Int64s) -> None:
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(values)

    def joined(self, name: str) -> Int64s:
        return np.concatenate(self.columns[name])


def build_graph(shares: Sequence[HostShare], tracks: Sequence[HostTrack | None]) -> Graph | None:
    """The tracks of the hosts of `shares`, in their order; None unless all hosts have one."""
    known = [track for track in tracks if track is not None]
    if not known or len(known) < len(tracks):
        return None
    owners = [(number, device) for number, track in enumerate(known) for device in track.devices]
    at = {(number, device.name): place for place, (number, device) in enumerate(owners)}
    members = members_of(shares)
    tables = list(tables_of(shares, members))
    if sum(table.start.size for table in tables) > _MOST_POINTS:
        return None
    of_member = np.array(
        [at.get((member.host, member.device.device), NO_VALUE) for member in members], np.int64
    )
    host_of = np.array([number for number, _ in owners], np.int64)
    shift = _shifts(tables, known)[host_of]
    begin = np.array([device.begin for _, device in owners], np.int64) + shift
    end = np.array([device.end for _, device in owners], np.int64) + shift
    kinds = tuple(sorted({table.kind for table in tables}))
    found = _Meetings(0, {})
    places = 0
    for table in tables:
        places += _add_table(found, table, of_member, begin, end, shift, kinds, places)
    for number, track in enumerate(known):
        _add_gaps(found, track, np.flatnonzero(host_of == number), shift, places + number)
    points, tail = _points(found, begin, end, [device for _, device in owners], shift)
    return Graph(
        hosts=tuple(shares[number].host for number, _ in owners),
        names=tuple(device.name for _, device in owners),
        tracks=tuple(device for _, device in owners),
        parts=tuple(known[number].parts for number, _ in owners),
        begin=begin,
        end=end,
        shift=shift,
        tail=tail,
        points=points,
        kinds=kinds,
        periods=min(track.periods for track in known),
        waits=all(track.waits for track in known),
        avoidable=min(track.avoidable for track in known),
        shared=any(track.shared for track in known),
    )


def _shifts(tables: Sequence[Table], tracks: Sequence[HostTrack]) -> Int64s:
    """Of each host's clock to the first host's."""
    shift = np.array(
        [
            tracks[0].devices[0].begin - min(device.begin for device in track.devices)
            for track in tracks
        ],
        np.int64,
    )
    for host in range(1, len(tracks)):
        for table in tables:
            own, base = table.hosts == host, table.hosts == 0
            if not own.any() or not base.any():
                continue
            end = np.where(table.duration >= 0, table.start + table.duration, -1)
            ends, bases = end[:, own].max(axis=1), end[:, base].max(axis=1)
            both = (ends >= 0) & (bases >= 0)
            if both.any():
                shift[host] = int(np.median(bases[both] - ends[both]))
                break
    return shift


def _add_table(
    found: _Meetings,
    table: Table,
    of_member: Int64s,
    begin: Int64s,
    end: Int64s,
    shift: Int64s,
    kinds: Sequence[str],
    places: int,
) -> int:
    """Returns how many places its ops have."""
    groups = table.groups()
    if not groups:  # who meets whom is not known: each runs for itself
        groups = [(column,) for column in range(len(table.members))]
    permutes = table.permutes
    sized = [neighbours(groups)] if permutes else by_size(groups)
    device = of_member[table.members]
    shifted = np.where(device >= 0, shift[device], 0)
    starts, stops = table.start + shifted, table.start + table.duration + shifted
    blocked = blocking(table.exposed, table.duration)
    inside = (
        (table.duration >= 0) & (device >= 0) & (starts >= begin[device]) & (stops <= end[device])
    )
    for place in sized:
        there = (place >= 0) & inside[:, place]
        rows, group = np.nonzero(there.any(axis=2))
        there = there[rows, group]
        columns = place[group]
        each = rows[:, None]
        start, stop = starts[each, columns], stops[each, columns]
        stops_for = blocked[each, columns]
        if permutes:  # each device is in a meeting of its own, with those it waits for
            repeated = np.zeros_like(there)
            repeated[:, 1:] = columns[:, 1:] == columns[:, :1]
            there &= ~repeated
        wire = np.where(there, stops_for, _FAR).min(axis=1)
        departing = there.copy()
        if permutes:
            departing[:, 1:] = False
        _add_meetings(
            found,
            start=start,
            stop=stop,
            stops_for=stops_for,
            device=device[columns],
            arrives=there,
            departs=departing,
            wire=wire,
            place=places + table.op[rows],
            kind=kinds.index(table.kind),
            in_flight=table.in_flight,
        )
    return int(table.op.max(initial=-1)) + 1


def _add_gaps(
    found: _Meetings, track: HostTrack, devices: Int64s, shift: Int64s, place: int
) -> None:
    gaps = len(track.gap_start)
    if not gaps:
        return
    moved = int(shift[devices[0]])
    start = np.stack([device.gap_from for device in track.devices], axis=1)
    stop = np.stack([device.gap_to for device in track.devices], axis=1)
    # A device that rests through several gaps arrives at the first and departs from the last.
    goes_on = np.zeros(stop.shape, np.bool_)
    goes_on[:-1] = stop[:-1] == stop[1:]
    rested = np.zeros(stop.shape, np.bool_)
    rested[1:] = goes_on[:-1]
    begin = np.array([device.begin for device in track.devices])
    end = np.array([device.end for device in track.devices])
    inside = (stop > begin) & (start < end)
    _add_meetings(
        found,
        start=start + moved,
        stop=stop + moved,
        stops_for=stop - start,
        device=np.broadcast_to(devices, start.shape),
        arrives=inside & ~rested,
        departs=inside & ~goes_on,
        wire=track.gap_end - track.gap_start,
        place=np.full(gaps, place, np.int64),
        kind=GAP,
        in_flight=False,
    )


def _add_meetings(
    found: _Meetings,
    *,
    start: Int64s,
    stop: Int64s,
    stops_for: Int64s,
    device: Int64s,
    arrives: NDArray[np.bool_],
    departs: NDArray[np.bool_],
    wire: Int64s,
    place: Int64s,
    kind: int,
    in_flight: bool,
) -> None:
    """(meetings, members) arrays, wire and place per meeting. Who arrives when another has departed
    already is not waited for."""
    leaves = np.where(departs, stop, _FAR).min(axis=1)
    arrives = arrives & (start <= leaves[:, None])
    last = np.where(arrives, start, -_FAR).max(axis=1)
    number = found.count + np.arange(len(start))
    found.count += len(start)
    for chosen, departing in ((arrives, False), (departs, True)):
        rows, columns = np.nonzero(chosen)
        size = len(rows)
        at = (stop if departing else start)[rows, columns]
        held_for = stops_for[rows, columns]
        known = departing & (last[rows] > -_FAR)
        after = np.where(known, at - np.where(known, last[rows], 0), 0)
        found.add(
            device=device[rows, columns],
            meeting=number[rows],
            departs=np.full(size, departing),
            at=at,
            start=start[rows, columns],
            stops_for=held_for * departing,
            after=after,
            wire=np.minimum(wire[rows], after) * departing,
            place=2 * place[rows] + departing,
            kind=np.full(size, kind, np.int64),
            hidden=((held_for <= LITTLE) & in_flight & departing).astype(np.int64),
        )


def _points(
    found: _Meetings,
    begin: Int64s,
    end: Int64s,
    tracks: Sequence[DeviceTrack],
    shift: Int64s,
) -> tuple[Points, Int64s]:
    if not found.columns:
        nothing = np.zeros(0, np.int64)
        none = nothing.astype(np.bool_)
        blank = (nothing,) * 7
        return Points(nothing, nothing, nothing, none, *blank, none), end - begin
    device, at, start = found.joined("device"), found.joined("at"), found.joined("start")
    departs = found.joined("departs").astype(np.bool_)
    order = np.lexsort((found.joined("meeting"), departs, start, at, device))
    device, at = device[order], at[order]
    before = np.concatenate(([0], at[:-1]))
    is_first = np.concatenate(([True], device[1:] != device[:-1]))
    before = np.where(is_first, begin[device], before)
    own_to = np.maximum(at - found.joined("stops_for")[order], before)
    reached = begin.copy()
    np.maximum.at(reached, device, at)
    return Points(
        device=device,
        own=own_to - before,
        meeting=found.joined("meeting")[order],
        departs=departs[order],
        after=found.joined("after")[order],
        wire=found.joined("wire")[order],
        at=at,
        place=found.joined("place")[order],
        kind=found.joined("kind")[order],
        own_from=before - shift[device],
        own_to=own_to - shift[device],
        hidden=found.joined("hidden")[order].astype(np.bool_),
    ), end - reached
