"""One host's executions of collectives, as columns small enough to be handed to another process.

Contract: a start/done pair is one execution, also where the async line shows the start and the op
line the done; it lasts from the start's start to the done's end. A plain collective lasts as long
as its op. Where the capture's edge cut a pair, the half that is left is one execution that is not
whole. Times are picoseconds on the host's device clock.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.async_spans import AsyncSpans, start_of
from marin_profile.analysis.collectives.bandwidth import payload_bytes
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.ledger import DeviceIntervals
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.planes import GPU
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.base.columns import distinct, find_sorted, sum_by
from marin_profile.base.errors import InternalError
from marin_profile.base.intervals import Intervals
from marin_profile.events.classify import COLLECTIVES
from marin_profile.events.replica_groups import Groups
from marin_profile.events.timeline import Int32s, Int64s

NO_VALUE = -1
_START = re.compile(r"-start((?:\.\d+)?)$")


@dataclass(frozen=True, slots=True)
class Partners:
    """Which devices meet: groups, or a permute's pairs of source and target."""

    groups: Groups
    pairs: Groups


@dataclass(frozen=True, slots=True)
class CollectiveOp:
    """One collective of one program; a pair goes by the name of its done. partners: index into the
    host's; payload: bytes of the full tensor; in_flight: it runs beside other ops, between a start
    and a done."""

    kind: str
    name: str
    module: str
    program_id: int | None
    device_kind: str
    group_size: int | None
    partners: int
    payload: int | None
    in_flight: bool


@dataclass(frozen=True)
class DeviceInstances:
    """Columns, one row per execution on one device, by `start`.

    op: index into the host's ops. unit: 2k + 1 inside step k, 2k + 2 between it and the next one, 0
    before the first step and where steps tell nothing. blocked: how long the device did nothing
    else, in the op or in the done (NO_VALUE where neither is on the op line). exposed: the part of
    that which no compute covers; of executions in the steady window, the part in the window.
    """

    device: str
    ordinal: int
    op: Int32s
    unit: Int32s
    start: Int64s
    duration: Int64s
    blocked: Int64s
    exposed: Int64s
    whole: NDArray[np.bool_]
    steady: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class KindTotals:
    """One (kind, group size) on one host's devices. exposed: time of its ops on the op line that no
    compute covers; overlapped: time in flight during which compute ran."""

    kind: str
    group_size: int | None
    count: int
    duration: int
    exposed: int
    overlapped: int


@dataclass(frozen=True)
class HostCollectives:
    partners: tuple[Partners, ...]
    ops: tuple[CollectiveOp, ...]
    devices: tuple[DeviceInstances, ...]
    totals: tuple[KindTotals, ...]


class HostInstances:
    """Gathers the executions of a host's devices, one device after the other."""

    def __init__(
        self, host: HostDevices, steps: StepSeries, steady: tuple[int, int] | None
    ) -> None:
        self._steps = steps
        self._steady = steady
        self._rows = _step_rows(host, steps)
        self._described = _Described(host.facts)
        self._devices: list[DeviceInstances] = []
        self._totals: dict[tuple[str, int | None], KindTotals] = {}

    def add(self, device: DeviceOps, spans: AsyncSpans, time: DeviceIntervals) -> None:
        """Raises InternalError if the exposed times are not the ledger's."""
        if not self._described.chosen.any():
            return
        on_line = _OnLine(self._described, device, spans, time, self._steady)
        exposed, expected = int(on_line.exposed.sum()), time.exposed_communication.total
        if exposed != expected:
            raise InternalError(
                "collectives are exposed for as long as the ledger says",
                f"{device.name}: {exposed} ps of {expected} ps",
            )
        row = self._rows[device.name]
        found = _device_instances(self._described, on_line, self._steps, row, self._steady)
        if len(found.op):
            self._devices.append(found)
        for total in _totals(self._described, on_line, found, time.compute):
            key = total.kind, total.group_size
            known = self._totals.get(key)
            self._totals[key] = total if known is None else _add(known, total)

    def gathered(self) -> HostCollectives:
        return HostCollectives(
            partners=tuple(self._described.partners),
            ops=tuple(self._described.ops),
            devices=tuple(self._devices),
            totals=tuple(self._totals.values()),
        )


def _add(a: KindTotals, b: KindTotals) -> KindTotals:
    return KindTotals(
        a.kind,
        a.group_size,
        a.count + b.count,
        a.duration + b.duration,
        a.exposed + b.exposed,
        a.overlapped + b.overlapped,
    )


def _step_rows(host: HostDevices, steps: StepSeries) -> dict[str, int | None]:
    """Each device's row of the step series; sparse cores have none."""
    rows = {device.name: row for row, device in enumerate(host.main)} if steps.linked else {}
    return {device.name: rows.get(device.name) for device in host.devices}


class _Described:
    """The ops of a host as CollectiveOps, made when they are first seen."""

    def __init__(self, facts: tuple[OpFacts, ...]) -> None:
        self.facts = facts
        self.chosen = np.array([fact.kind in COLLECTIVES for fact in facts], np.bool_)
        self.ops: list[CollectiveOp] = []
        self.partners: dict[Partners, int] = {}
        self._at: dict[CollectiveOp, int] = {}
        self._index: dict[tuple[int, str], int] = {}
        starts = {
            (fact.name, fact.module, fact.program_id): index
            for index, fact in enumerate(facts)
            if fact.op_class.role == "start"
        }
        self._start_of = {
            index: start
            for index in np.flatnonzero(self.chosen).tolist()
            if facts[index].op_class.role == "done"
            and (start := start_of(facts[index], starts)) is not None
        }
        self._done_of = {start: done for done, start in self._start_of.items()}

    def ops_of(self, device_kind: str, facts: Int64s, in_flight: Set[int]) -> Int32s:
        """The index of the CollectiveOp of each row of facts; those `in_flight` are shown so by
        the async line, whatever they are called."""
        index = np.full(len(self.facts), NO_VALUE, np.int32)
        for row in distinct(facts, len(self.facts)).tolist():
            if (row, device_kind) not in self._index:
                op = self._describe(row, device_kind, row in in_flight)
                self._index[row, device_kind] = self._at.setdefault(op, len(self._at))
                if len(self._at) > len(self.ops):
                    self.ops.append(op)
            index[row] = self._index[row, device_kind]
        return index[facts]

    def _describe(self, row: int, device_kind: str, in_flight: bool) -> CollectiveOp:
        fact = self.facts[self._done_of.get(row, row)]
        start = self.facts[self._start_of.get(self._done_of.get(row, row), row)]
        groups = fact.replica_groups or start.replica_groups
        sizes = {len(group) for group in groups}
        group_size = sizes.pop() if len(sizes) == 1 else None
        partners = Partners(groups, fact.source_target_pairs or start.source_target_pairs)
        payload = payload_bytes(fact, group_size)
        return CollectiveOp(
            kind=fact.kind,
            name=_START.sub(r"-done\1", fact.hlo_op or fact.name),
            module=fact.module,
            program_id=fact.program_id,
            device_kind=device_kind,
            group_size=group_size,
            partners=self.partners.setdefault(partners, len(self.partners)),
            payload=payload_bytes(start, group_size) if payload is None else payload,
            in_flight=in_flight or bool(_role(fact, device_kind)),
        )


def _role(fact: OpFacts, device_kind: str) -> str:
    """A GPU's kernel does the whole work, also if its HLO op is a start."""
    return "" if device_kind == GPU else fact.op_class.role


class _OnLine:
    """The executions of collective ops on one device's op line: columns, by start. exposed: the
    time that each owns (see `ownership`); exposed_steady: the part in the steady window."""

    def __init__(
        self,
        described: _Described,
        device: DeviceOps,
        spans: AsyncSpans,
        time: DeviceIntervals,
        steady: tuple[int, int] | None,
    ) -> None:
        rows = np.flatnonzero(described.chosen[device.op])
        self.device = device
        self.spans = spans
        self.span_rows = np.flatnonzero(described.chosen[spans.op])
        self.op = device.op[rows]
        self.start, self.end = device.start[rows], device.end[rows]
        facts = described.facts
        roles = np.array([_role(fact, device.kind) for fact in facts])
        self.is_start, self.is_done = (roles == "start")[self.op], (roles == "done")[self.op]
        self.in_flight = {*distinct(spans.op, len(facts)).tolist()}
        self.done_of_span = _places(rows, spans.done_at[self.span_rows])
        paired = np.zeros(len(rows), np.bool_)
        for places in (self.done_of_span, _places(rows, spans.start_at[self.span_rows])):
            paired[places[places >= 0]] = True
        self.alone = np.flatnonzero(~paired & ~self._other_halves(facts, paired))
        owned = time.owned
        mine = np.flatnonzero(described.chosen[device.op[owned.owner]])
        place = _places(rows, owned.owner[mine])
        self.exposed = sum_by(place, (owned.end - owned.start)[mine], len(rows))
        self.exposed_steady = self.exposed
        if steady is not None:
            self.exposed_steady = sum_by(place, owned.inside(steady)[mine], len(rows))

    def _other_halves(
        self, facts: tuple[OpFacts, ...], paired: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Unpaired starts of kinds that have unpaired dones: an operation counts once."""
        kinds = {kind: number for number, kind in enumerate(COLLECTIVES)}
        kind = np.array([kinds.get(fact.kind, NO_VALUE) for fact in facts])[self.op]
        ended = np.unique(kind[self.is_done & ~paired])
        return self.is_start & ~paired & np.isin(kind, ended)


def _places(rows: Int64s, wanted: Int64s) -> Int64s:
    """Where ascending `rows` hold what is wanted, NO_VALUE where it is not on the line."""
    found = find_sorted(rows, np.arange(len(rows)), wanted)
    return np.where(found[0], found[1], NO_VALUE)


def _device_instances(
    described: _Described,
    on_line: _OnLine,
    steps: StepSeries,
    row: int | None,
    steady: tuple[int, int] | None,
) -> DeviceInstances:
    alone, spans, chosen = on_line.alone, on_line.spans, on_line.span_rows
    start = np.concatenate((on_line.start[alone], spans.start[chosen]))
    end = np.concatenate((on_line.end[alone], spans.end[chosen]))
    op = np.concatenate((on_line.op[alone], spans.op[chosen]))
    half = on_line.is_start[alone] | on_line.is_done[alone]
    whole = np.concatenate((~half, np.ones(len(chosen), np.bool_)))
    # Where the device waits: in the op, or in the done. A start whose done was cut tells nothing.
    waits_at = np.where(on_line.is_start[alone], NO_VALUE, alone)
    waits_at = np.concatenate((waits_at, on_line.done_of_span))
    known = np.flatnonzero(waits_at >= 0)
    at = waits_at[known]
    blocked = np.full(len(op), NO_VALUE, np.int64)
    blocked[known] = on_line.end[at] - on_line.start[at]
    waits_from = start.copy()
    waits_from[known] = on_line.start[at]
    kept = np.zeros(len(op), np.bool_)
    if steady is not None and row is not None:
        kept = (waits_from >= steady[0]) & (waits_from < steady[1])
    exposed = np.zeros(len(op), np.int64)
    exposed[known] = np.where(kept[known], on_line.exposed_steady[at], on_line.exposed[at])
    order = np.argsort(start, kind="stable")
    return DeviceInstances(
        device=on_line.device.name,
        ordinal=on_line.device.ordinal,
        op=described.ops_of(on_line.device.kind, op, on_line.in_flight)[order],
        unit=_units(steps, row, waits_from)[order],
        start=start[order],
        duration=(end - start)[order],
        blocked=blocked[order],
        exposed=exposed[order],
        whole=whole[order],
        steady=kept[order],
    )


def _units(steps: StepSeries, row: int | None, points: Int64s) -> Int32s:
    units = np.zeros(len(points), np.int32)
    if row is None:
        return units
    present = np.flatnonzero(steps.present[row])
    start, end = steps.start[row][present], steps.end[row][present]
    at = np.searchsorted(start, points, side="right") - 1
    known = at >= 0
    at = at[known]
    units[known] = 2 * present[at] + 1 + (points[known] >= end[at])
    return units


def _totals(
    described: _Described, on_line: _OnLine, found: DeviceInstances, compute: Intervals
) -> list[KindTotals]:
    op = described.ops_of(on_line.device.kind, on_line.op, on_line.in_flight)
    exposed = sum_by(op.astype(np.int64), on_line.exposed, len(described.ops))
    keys = [(op.kind, op.group_size) for op in described.ops]
    totals = []
    used = np.union1d(found.op, op).tolist()
    for kind, group_size in dict.fromkeys(keys[index] for index in used):
        of_key = np.array([key == (kind, group_size) for key in keys], np.bool_)
        chosen = of_key[found.op]
        start, duration = found.start[chosen], found.duration[chosen]
        in_flight = Intervals.union_of(start, start + duration)
        totals.append(
            KindTotals(
                kind=kind,
                group_size=group_size,
                count=int(chosen.sum()),
                duration=int(duration.sum()),
                exposed=int(exposed[of_key].sum()),
                overlapped=(in_flight & compute).total,
            )
        )
    return totals
