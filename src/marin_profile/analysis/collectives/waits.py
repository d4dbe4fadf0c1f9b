"""Wire times and waits of instances over all hosts, and who caused the waits.

Contract
* Wire time is the shortest duration over all members: durations compare without a common clock, and
  the last to arrive did not wait. Of a start/done pair it is an upper bound, for compute may hide
  the wire. It is known only for whole instances with all members captured. A permute's
  instance is a pair of source and target.
* A member's wait is how much longer it was blocked (in the op, in the done) than the member blocked
  least. It ends with the last arrival, so it is booked on that member. With members missing the
  waits are lower bounds, and nobody is known to have caused them.
* What an instance takes on the wire beyond the fastest one of the same op and group size is neither
  its size nor a late member: it varies. Of start/done pairs it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.collectives.bandwidth import bus_factor
from marin_profile.analysis.collectives.instances import NO_VALUE
from marin_profile.analysis.collectives.matching import (
    HostShare,
    Member,
    Table,
    by_size,
    members_of,
    tables_of,
)
from marin_profile.events.timeline import Int64s

# Of all executions: more in instances whose members were not in them at one time, and the groups
# are not what the order of devices says.
MOST_APART = 0.1
_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class CollectiveTotals:
    """One (kind, group size) over all devices, the whole capture; picoseconds.

    count: executions on devices. instances, groups, members_seen, wire and wait are None where it
    is not known who meets whom; members_seen: of the group that was captured least, at its best.
    payload: bytes of all executions; timed_payload and wire: of the members of whole instances.
    """

    kind: str
    group_size: int | None
    count: int
    duration: int
    exposed: int
    overlapped: int
    payload: int | None
    instances: int | None
    groups: int | None
    members_seen: int | None
    timed_payload: int | None
    wire: int | None
    wire_is_upper_bound: bool
    wait: int | None
    wait_is_lower_bound: bool


@dataclass(frozen=True, slots=True)
class MemberWaits:
    """One device in the headline window; picoseconds. exposed_*: the part that no compute covers.
    instances: those it was in with known partners; arrived_last: how many of them it held up;
    caused_on_host: the wait of devices of its own host that it caused."""

    host: str
    device: str
    instances: int
    arrived_last: int
    wait: int
    exposed_wait: int
    wait_caused: int
    caused_on_host: int
    exposed_wait_caused: int


@dataclass(frozen=True)
class MergedCollectives:
    """rows by duration; members in the order of hosts and devices, empty where nobody's wait is
    known. exposed_wait and exposed_varying, which has no wait in it: per kind; exposed_wait_caused:
    per kind, one value per member."""

    rows: tuple[CollectiveTotals, ...] = ()
    members: tuple[MemberWaits, ...] = ()
    exposed_wait: dict[str, int] = field(default_factory=dict)
    exposed_varying: dict[str, int] = field(default_factory=dict)
    exposed_wait_caused: dict[str, tuple[int, ...]] = field(default_factory=dict)
    waits_are_lower_bounds: bool = False


def bandwidth(row: CollectiveTotals) -> tuple[float | None, float | None]:
    """(algorithm, bus) in GB/s; None where members are missing. Lower bounds where the wire time is
    an upper bound."""
    seen_whole = row.group_size is None or row.members_seen == row.group_size
    if not row.timed_payload or not row.wire or not seen_whole:
        return None, None
    algorithm = row.timed_payload * 1000 / row.wire  # bytes/ps = TB/s
    factor = bus_factor(row.kind, row.group_size)
    return algorithm, None if factor is None else algorithm * factor


def merge_collectives(shares: Sequence[HostShare], *, steady: bool) -> MergedCollectives:
    """Join the hosts, which are in the order of their devices' logical ids. `steady`: whether waits
    per member cover the steady window or the whole capture."""
    members = members_of(shares)
    rows = _Rows(shares)
    waits = _Waits(len(members))
    for table in tables_of(shares, members):
        rows.add(table, waits, steady)
    totals = rows.totals()
    return MergedCollectives(
        rows=totals,
        members=waits.rows(members),
        exposed_wait=dict(sorted(waits.exposed_by_kind.items())),
        exposed_varying=dict(sorted(waits.varying_by_kind.items())),
        exposed_wait_caused={
            kind: tuple(values.tolist()) for kind, values in sorted(waits.caused_by_kind.items())
        },
        waits_are_lower_bounds=any(row.wait_is_lower_bound for row in totals),
    )


@dataclass
class _Row:
    kind: str
    group_size: int | None
    payload: int | None = 0
    groups_known: bool = True
    instances: int = 0
    groups: int = 0
    seen: dict[tuple[object, ...], Int64s] = field(default_factory=dict)
    timed_payload: int | None = 0
    wire: int | None = None
    wire_is_upper_bound: bool = False
    wait: int | None = None
    wait_is_lower_bound: bool = False


class _Rows:
    def __init__(self, shares: Sequence[HostShare]) -> None:
        self._shares = shares
        self._rows: dict[tuple[str, int | None], _Row] = {}

    def add(self, table: Table, waits: _Waits, steady: bool) -> None:
        key = table.kind, table.group_size
        row = self._rows.setdefault(key, _Row(*key))
        executions = (table.duration >= 0).sum(axis=1)
        row.payload = _plus(row.payload, table.payload, executions)
        groups = table.groups()
        of_sizes = [_Found(table, place) for place in by_size(groups)]
        if not groups or sum(found.apart for found in of_sizes) > MOST_APART * sum(executions):
            row.groups_known = False
            row.wait_is_lower_bound = True
            return
        row.groups = max(row.groups, len(groups))
        for found in of_sizes:
            _count(row, found)
            if not table.permutes:
                waits.add(found, steady)
                _add_wait(row, found)
        if table.permutes:
            of_each = _Found(table, neighbours(groups), of_each=True)
            waits.add(of_each, steady)
            _add_wait(row, of_each)

    def totals(self) -> tuple[CollectiveTotals, ...]:
        sums: dict[tuple[str, int | None], list[int]] = {}
        for share in self._shares:
            for total in share.collectives.totals:
                values = sums.setdefault((total.kind, total.group_size), [0, 0, 0, 0])
                own = (total.count, total.duration, total.exposed, total.overlapped)
                sums[total.kind, total.group_size] = [
                    a + b for a, b in zip(values, own, strict=True)
                ]
        merged = [
            _total(self._rows[key], *values) for key, values in sums.items() if key in self._rows
        ]
        return tuple(sorted(merged, key=lambda row: (-row.duration, row.kind, row.group_size or 0)))


def _total(row: _Row, count: int, duration: int, exposed: int, overlapped: int) -> CollectiveTotals:
    return CollectiveTotals(
        kind=row.kind,
        group_size=row.group_size,
        count=count,
        duration=duration,
        exposed=exposed,
        overlapped=overlapped,
        payload=row.payload,
        instances=row.instances if row.groups_known else None,
        groups=row.groups if row.groups_known else None,
        members_seen=min((int(seen.min()) for seen in row.seen.values()), default=None)
        if row.groups_known
        else None,
        timed_payload=row.timed_payload,
        wire=row.wire,
        wire_is_upper_bound=row.wire_is_upper_bound,
        wait=row.wait,
        wait_is_lower_bound=row.wait is not None and row.wait_is_lower_bound,
    )


def _count(row: _Row, found: _Found) -> None:
    row.instances += int(found.exists.sum())
    key = found.table.partners, found.table.members.tobytes(), found.size
    row.seen[key] = np.maximum(found.seen, row.seen.get(key, 0))
    if found.timed.any():
        row.wire = (row.wire or 0) + int(found.wire[found.timed].sum()) * found.size
        members = found.timed.sum(axis=1) * found.size
        row.timed_payload = _plus(row.timed_payload, found.table.payload, members)
        row.wire_is_upper_bound |= found.table.in_flight


def _add_wait(row: _Row, found: _Found) -> None:
    row.wait_is_lower_bound |= not found.tells_all
    if found.measurable.any():
        row.wait = (row.wait or 0) + int(found.wait.sum())


def _plus(total: int | None, payload: Int64s, count: Int64s) -> int | None:
    """Bytes added, `payload` each; None from where one is not known."""
    if total is None or ((payload < 0) & (count > 0)).any():
        return None
    return total + int((payload * count).sum())


def neighbours(pairs: Iterable[tuple[int, ...]]) -> Int64s:
    """Per device that sends or receives: itself, then those it waits for, filled up with itself."""
    partners: dict[int, set[int]] = {}
    for source, target in pairs:
        partners.setdefault(source, set()).add(target)
        partners.setdefault(target, set()).add(source)
    rows = [[device, *sorted(others - {device})] for device, others in sorted(partners.items())]
    width = max(map(len, rows))
    return np.array([[*row, *[row[0]] * (width - len(row))] for row in rows], np.int64)


class _Found:
    """The instances of one op by groups of one size: arrays (row, group), or (row, group, member).

    place: (groups, size) columns of the table, -1 for members that were not captured. of_each: a
    group is the first member and its partners, and only the first member's wait is meant.
    """

    def __init__(self, table: Table, place: Int64s, *, of_each: bool = False) -> None:
        self.table = table
        self.place = place
        self.size = place.shape[1]
        captured = place >= 0
        span = np.where(captured, table.span[:, place], NO_VALUE)
        blocked = np.where(captured, table.blocked[:, place], NO_VALUE)
        present = captured & (table.duration[:, place] >= 0)
        matches = self._matches(present, of_each)
        self.exists = present.any(axis=2)
        self.apart = int(present.sum(axis=2)[~matches].sum())
        seen = np.where(matches, present.sum(axis=2), self.exists)
        best = seen.max(axis=0)
        self.seen = best
        self.wire = np.where(span >= 0, span, _FAR).min(axis=2)
        self.timed = matches & (span >= 0).all(axis=2)
        self.varying = self._beyond_fastest()
        # Whose wait is known: at least two members that were blocked.
        waited = blocked >= 0
        self.measurable = matches & ((waited.sum(axis=2) >= 2) | (self.size == 1)) & self.exists
        least = np.where(waited, blocked, _FAR)
        self.last = least.argmin(axis=2)
        self.complete = self.measurable & waited.all(axis=2)
        wait = blocked - least.min(axis=2)[:, :, None]
        self.wait = np.where(waited & self.measurable[:, :, None], wait, 0)
        self.meant = self.measurable[:, :, None] & present
        if of_each:
            self.wait[:, :, 1:] = 0
            self.meant[:, :, 1:] = False
        self.tells_all = bool((self.complete | ~self.exists).all())

    def _beyond_fastest(self) -> Int64s:
        """Wire time of each instance less that of the fastest one of its op; 0 if not known."""
        if self.table.in_flight:
            return np.zeros(self.wire.shape, np.int64)
        wire = np.where(self.timed, self.wire, _FAR)
        fastest = np.full(int(self.table.op.max(initial=-1)) + 1, _FAR, np.int64)
        np.minimum.at(fastest, self.table.op, wire.min(axis=1, initial=_FAR))
        return np.where(self.timed, self.wire - fastest[self.table.op][:, None], 0)

    def _matches(self, present: NDArray[np.bool_], of_each: bool) -> NDArray[np.bool_]:
        """Members on one clock must be in it at the same time."""
        table, place = self.table, self.place
        start, end = table.start[:, place], (table.start + table.duration)[:, place]
        hosts, whole = table.hosts[place], present & (table.span[:, place] >= 0)
        # Each is compared with the one before it, or with the one that is meant.
        left, right = slice(0, 1) if of_each else slice(0, -1), slice(1, None)
        one_clock = hosts[:, left] == hosts[:, right]
        known = one_clock & whole[:, :, left] & whole[:, :, right]
        apart = (start[:, :, left] > end[:, :, right]) | (start[:, :, right] > end[:, :, left])
        meet: NDArray[np.bool_] = ~(known & apart).any(axis=2)
        return meet


class _Waits:
    """Sums per member, in the headline window."""

    def __init__(self, members: int) -> None:
        def zeros() -> Int64s:
            return np.zeros(members, np.int64)

        self.instances, self.arrived_last = zeros(), zeros()
        self.wait, self.exposed_wait = zeros(), zeros()
        self.caused, self.caused_on_host, self.exposed_caused = zeros(), zeros(), zeros()
        self.exposed_by_kind: dict[str, int] = {}
        self.varying_by_kind: dict[str, int] = {}
        self.caused_by_kind: dict[str, Int64s] = {}

    def add(self, found: _Found, steady: bool) -> None:
        if not found.measurable.any() or found.size < 2:
            return
        table, place, kind = found.table, found.place, found.table.kind
        counted = found.meant & (table.steady[:, place] | (not steady))
        if not counted.any():
            return
        wait = np.where(counted, found.wait, 0)
        uncovered = np.maximum(table.exposed[:, place], 0)
        exposed = np.minimum(wait, uncovered)
        varying = np.minimum(found.varying[:, :, None], uncovered - exposed)[counted].sum()
        member = np.broadcast_to(table.members[place], wait.shape)
        np.add.at(self.instances, member, counted)
        np.add.at(self.wait, member, wait)
        np.add.at(self.exposed_wait, member, exposed)
        self.exposed_by_kind[kind] = self.exposed_by_kind.get(kind, 0) + int(exposed.sum())
        self.varying_by_kind[kind] = self.varying_by_kind.get(kind, 0) + int(varying)
        last = np.take_along_axis(member, found.last[:, :, None], axis=2)[:, :, 0]
        hosts = table.hosts[place]
        host_of_last = np.take_along_axis(
            np.broadcast_to(hosts, wait.shape), found.last[:, :, None], axis=2
        )
        of_all, of_exposed = wait.sum(axis=2), exposed.sum(axis=2)
        of_host = np.where(hosts == host_of_last, wait, 0).sum(axis=2)
        known = found.complete & counted.any(axis=2)
        caused = self.caused_by_kind.setdefault(kind, np.zeros(len(self.wait), np.int64))
        np.add.at(self.arrived_last, last[known], of_all[known] > 0)
        np.add.at(self.caused, last[known], of_all[known])
        np.add.at(self.caused_on_host, last[known], of_host[known])
        np.add.at(self.exposed_caused, last[known], of_exposed[known])
        np.add.at(caused, last[known], of_exposed[known])

    def rows(self, members: Sequence[Member]) -> tuple[MemberWaits, ...]:
        if not self.instances.any():
            return ()
        return tuple(
            MemberWaits(
                host=member.share.host,
                device=member.device.device,
                instances=int(self.instances[number]),
                arrived_last=int(self.arrived_last[number]),
                wait=int(self.wait[number]),
                exposed_wait=int(self.exposed_wait[number]),
                wait_caused=int(self.caused[number]),
                caused_on_host=int(self.caused_on_host[number]),
                exposed_wait_caused=int(self.exposed_caused[number]),
            )
            for number, member in enumerate(members)
        )
