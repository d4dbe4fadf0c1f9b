"""Which executions on the devices of all hosts are one instance.

Contract: an instance is one execution of one collective by one group, matched by program, op and
occurrence within steps of equal number; without step numbers by `alignment`. Members that have an
op more often in a step than others do not meet those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.collectives import alignment
from marin_profile.analysis.collectives.instances import (
    NO_VALUE,
    CollectiveOp,
    DeviceInstances,
    HostCollectives,
    Partners,
)
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.base.columns import counts_of, unique_pairs
from marin_profile.events.replica_groups import columns_of_groups, columns_of_pairs
from marin_profile.events.timeline import Int64s

PERMUTE = "collective-permute"
# Labels that no other host has lie this far apart; executions of an op in a unit are fewer than
# _MOST_OFTEN.
_APART = 1 << 28
_MOST_OFTEN = 1 << 20
_MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class HostShare:
    """What one host brings: its executions, and the steps they are numbered by."""

    host: str
    collectives: HostCollectives
    steps: StepSeries


@dataclass(frozen=True)
class Member:
    """One device: the number of its host, and its executions."""

    host: int
    share: HostShare
    device: DeviceInstances


@dataclass(frozen=True)
class Table:
    """Ops whose executions the same members share in the same groups: a row per instance that some
    of the members may have together (per op, label and occurrence), a column per member. NO_VALUE
    where a member has no such execution; op and payload, of an execution in bytes, per row."""

    kind: str
    group_size: int | None
    partners: Partners
    in_flight: bool
    op: Int64s
    payload: Int64s
    members: Int64s
    hosts: Int64s
    ordinals: Int64s
    start: Int64s
    duration: Int64s
    span: Int64s
    blocked: Int64s
    exposed: Int64s
    steady: NDArray[np.bool_]

    @property
    def permutes(self) -> bool:
        """Whether its devices meet in pairs of a source and a target."""
        return self.kind == PERMUTE and bool(self.partners.pairs)

    def groups(self) -> list[tuple[int, ...]]:
        """Who meets, as columns: groups, or pairs where it permutes. Empty where not known."""
        captured = list(zip(self.hosts.tolist(), self.ordinals.tolist(), strict=True))
        if self.permutes:
            return columns_of_pairs(self.partners.pairs, captured) or []
        return columns_of_groups(self.partners.groups, captured) or []


def by_size(groups: Sequence[tuple[int, ...]]) -> list[Int64s]:
    """Groups of one size as the rows of an array each, the smallest size first."""
    return [
        np.array([group for group in groups if len(group) == size], np.int64)
        for size in sorted({len(group) for group in groups})
    ]


def members_of(shares: Sequence[HostShare]) -> list[Member]:
    return [
        Member(number, share, device)
        for number, share in enumerate(shares)
        for device in share.collectives.devices
    ]


def tables_of(shares: Sequence[HostShare], members: Sequence[Member]) -> Iterator[Table]:
    if not members:
        return
    partners, described, numbers_of = _numbered_ops(shares)
    ops = [numbers_of[member.host][member.device.op] for member in members]
    labels, occurrences = _places(shares, members, ops)
    member = np.repeat(np.arange(len(members)), list(map(len, ops)))
    executions = _Executions(
        member=member,
        op=np.concatenate(ops),
        label=np.concatenate(labels),
        occurrence=np.concatenate(occurrences),
        columns={
            name: np.concatenate([getattr(member.device, name) for member in members])
            for name in ("start", "duration", "whole", "blocked", "exposed", "steady")
        },
    )
    alike = _alike(described, executions)
    table_of_op = np.zeros(len(described), np.int64)
    for number, (numbers, _) in enumerate(alike):
        table_of_op[numbers] = number
    table = table_of_op[executions.op]
    rows_of_table = np.split(
        np.argsort(table, kind="stable"), np.cumsum(counts_of(table, len(alike)))[:-1]
    )
    for (numbers, columns), rows in zip(alike, rows_of_table, strict=True):
        ops_of_table = [described[number] for number in numbers]
        meeting = partners[ops_of_table[0].partners]
        yield _table(executions, rows, ops_of_table, meeting, numbers, columns, members)


@dataclass(frozen=True)
class _Executions:
    """Of all members; columns by the names of DeviceInstances."""

    member: Int64s
    op: Int64s
    label: Int64s
    occurrence: Int64s
    columns: dict[str, Int64s]


def _table(
    executions: _Executions,
    rows: Int64s,
    described: Sequence[CollectiveOp],
    partners: Partners,
    numbers: Sequence[int],
    columns: Int64s,
    members: Sequence[Member],
) -> Table:
    """`rows` of the executions, `numbers` of the ops, which are described; `columns`: the numbers
    of the members."""
    op_of_unit, _, unit = unique_pairs(executions.op[rows], executions.label[rows])
    unit_of_slot, _, slot = unique_pairs(unit, executions.occurrence[rows])
    column = np.searchsorted(columns, executions.member[rows])

    def filled(name: str) -> Int64s:
        values = np.full((len(unit_of_slot), len(columns)), NO_VALUE, np.int64)
        values[slot, column] = executions.columns[name][rows]
        return values

    first = described[0]
    duration = filled("duration")
    payload = np.array(
        [NO_VALUE if op.payload is None else op.payload for op in described], np.int64
    )
    op = np.searchsorted(numbers, op_of_unit[unit_of_slot])
    return Table(
        kind=first.kind,
        group_size=first.group_size,
        partners=partners,
        in_flight=first.in_flight,
        op=op,
        payload=payload[op],
        members=columns,
        hosts=np.array([members[number].host for number in columns.tolist()], np.int64),
        ordinals=np.array(
            [members[number].device.ordinal for number in columns.tolist()], np.int64
        ),
        start=filled("start"),
        duration=duration,
        span=np.where(filled("whole") == 1, duration, NO_VALUE),
        blocked=filled("blocked"),
        exposed=filled("exposed"),
        steady=filled("steady") == 1,
    )


def _numbered_ops(
    shares: Sequence[HostShare],
) -> tuple[list[Partners], list[CollectiveOp], list[Int64s]]:
    """The partners and the ops of all hosts, and per host the number of each of its ops."""
    partners: dict[Partners, int] = {}
    ops_of = []
    for share in shares:
        own = [partners.setdefault(one, len(partners)) for one in share.collectives.partners]
        ops_of.append([replace(op, partners=own[op.partners]) for op in share.collectives.ops])
    at: dict[tuple[object, ...], int] = {}
    described: list[CollectiveOp] = []
    numbers: list[Int64s] = []
    for ops, keys in zip(ops_of, _keys(ops_of), strict=True):
        for op, key in zip(ops, keys, strict=True):
            if at.setdefault(key, len(at)) == len(described):
                described.append(op)
        numbers.append(np.array([at[key] for key in keys], np.int64))
    return list(partners), described, numbers


def _keys(ops_of: Sequence[Sequence[CollectiveOp]]) -> list[list[tuple[object, ...]]]:
    """What is equal for the same op on two hosts: its program's id where they number their programs
    alike, else its name and module if each host has one such program."""

    def base(op: CollectiveOp) -> tuple[object, ...]:
        return (op.kind, op.group_size, op.name, op.module, op.device_kind, op.partners)

    programs: dict[tuple[object, ...], dict[int, set[int | None]]] = {}
    for host, ops in enumerate(ops_of):
        for op in ops:
            programs.setdefault(base(op), {}).setdefault(host, set()).add(op.program_id)

    def program(op: CollectiveOp, host: int) -> object:
        by_host = list(programs[base(op)].values())
        if all(ids == by_host[0] for ids in by_host):
            return op.program_id
        return "" if all(len(ids) == 1 for ids in by_host) else (host, op.program_id)

    return [[(*base(op), program(op, host)) for op in ops] for host, ops in enumerate(ops_of)]


def _alike(
    described: Sequence[CollectiveOp], executions: _Executions
) -> list[tuple[list[int], Int64s]]:
    """Numbers of ops that one table can hold, ascending, with the members that ran them. A table
    has some _MOST_CELLS executions, or one op."""
    ops, members, _ = unique_pairs(executions.op, executions.member)
    executed = counts_of(executions.op, len(described))
    _, firsts = np.unique(ops, return_index=True)
    found: dict[tuple[object, ...], tuple[list[int], Int64s]] = {}
    taking_part = np.split(members, firsts[1:])
    for number, own in zip(ops[firsts].tolist(), taking_part, strict=True):
        op = described[number]
        key = (op.kind, op.group_size, op.partners, op.in_flight, own.tobytes())
        found.setdefault(key, ([], own))[0].append(number)
    tables = []
    for numbers, own in found.values():
        block = np.cumsum(executed[numbers]) // _MOST_CELLS
        for part in np.unique(block):
            tables.append((np.array(numbers)[block == part].tolist(), own))
    return tables


def _places(
    shares: Sequence[HostShare], members: Sequence[Member], ops: Sequence[Int64s]
) -> tuple[list[Int64s], list[Int64s]]:
    """For each execution a label, and which one it is there: executions of one op with the same
    label and occurrence are the same. In steps the label tells the unit, and how often the member
    has the op in it."""
    units = _unit_labels(shares)
    if units is None:
        return _aligned_places(members, ops)
    labels, occurrences = [], []
    for member, op in zip(members, ops, strict=True):
        unit = units[member.host][member.device.unit]
        pairs, _, place = unique_pairs(op, unit)
        count = counts_of(place, len(pairs))
        labels.append(unit * _MOST_OFTEN + count[place])
        occurrences.append(_rank_in(place, count))
    return labels, occurrences


def _rank_in(place: Int64s, count: Int64s) -> Int64s:
    """For each row which of the rows of its place it is."""
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(place), np.int64)
    rank[order] = np.arange(len(place)) - (np.cumsum(count) - count)[place[order]]
    return rank


def _aligned_places(
    members: Sequence[Member], ops: Sequence[Int64s]
) -> tuple[list[Int64s], list[Int64s]]:
    size = 1 + max(int(op.max()) for op in ops)
    counts = [counts_of(op, size) for op in ops]
    occurrences = [_rank_in(op, count) for op, count in zip(ops, counts, strict=True)]
    labels = [np.zeros(len(op), np.int64) for op in ops]
    one_host = len({member.host for member in members}) == 1
    for number in range(size):
        taking_part = [at for at, count in enumerate(counts) if count[number]]
        if one_host and len({int(counts[at][number]) for at in taking_part}) == 1:
            continue
        rows = [np.flatnonzero(ops[at] == number) for at in taking_part]
        parts = [(members[at], own) for at, own in zip(taking_part, rows, strict=True)]
        for at, own, shift in zip(taking_part, rows, _shifts(parts), strict=True):
            labels[at][own] = 0 if shift is not None else 1 + at
            occurrences[at][own] += shift or 0
    return labels, occurrences


def _shifts(parts: Sequence[tuple[Member, Int64s]]) -> list[int | None]:
    """By how much each member's first execution lies behind that of the longest sequence."""
    ends = [member.device.start[rows] + member.device.duration[rows] for member, rows in parts]
    hosts = [member.host for member, _ in parts]
    longest: dict[int, int] = {}
    for at, host in enumerate(hosts):
        if host not in longest or len(ends[at]) > len(ends[longest[host]]):
            longest[host] = at
    reference = max(longest.values(), key=lambda at: (len(ends[at]), -at))
    between = {
        host: 0 if at == reference else alignment.shift_between(ends[reference], ends[at])
        for host, at in longest.items()
    }
    shifts: list[int | None] = []
    for at, host in enumerate(hosts):
        own, base, outside = ends[at], ends[longest[host]], between[host]
        # Devices of one host are captured together: as many executions are the same ones.
        alike = len(own) == len(base)
        inside = 0 if alike else alignment.shift_between(base, own, one_clock=True)
        shifts.append(None if inside is None or outside is None else inside + outside)
    return shifts


def _unit_labels(shares: Sequence[HostShare]) -> list[Int64s] | None:
    """Per host the label of each unit (see DeviceInstances), equal where units are the same on two
    hosts; None where steps cannot tell, on any of them."""
    if any(not share.steps.linked or not share.steps.count for share in shares):
        return None
    positions = [_numbers(share.steps) for share in shares]
    sources = {share.steps.source for share in shares}
    if len(sources) > 1 or any(position is None for position in positions):
        positions = _aligned_positions(shares)
    labels = []
    for host, position in enumerate(positions):
        steps = np.arange(shares[host].steps.count) + (host + 1) * _APART
        steps = steps if position is None else position
        before = np.array([-(host + 1) * _APART], np.int64)
        labels.append(np.concatenate((before, np.stack((2 * steps, 2 * steps + 1), 1).ravel())))
    return labels


def _numbers(steps: StepSeries) -> Int64s | None:
    if None in steps.numbers or len(set(steps.numbers)) < steps.count:
        return None
    return np.array(steps.numbers, np.int64)


def _aligned_positions(shares: Sequence[HostShare]) -> list[Int64s | None]:
    ends = [_step_ends(share) for share in shares]
    reference = max(ends, key=len)
    aligned: list[Int64s | None] = []
    for own in ends:
        shift = 0 if own is reference else alignment.shift_between(reference, own)
        aligned.append(None if shift is None else np.arange(len(own)) + shift)
    return aligned


def _step_ends(share: HostShare) -> Int64s:
    """Per step the end of its last collective; of a step without one, of its last op."""
    last = np.zeros(share.steps.count, np.int64)
    for device in share.collectives.devices:
        inside = device.unit % 2 == 1
        end = device.start + device.duration
        np.maximum.at(last, device.unit[inside] // 2, end[inside])
    of_ops = np.where(share.steps.present, share.steps.end, 0).max(axis=0)
    return np.where(last > 0, last, of_ops)
