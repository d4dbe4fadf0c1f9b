"""Where a device's time goes: five terms that sum to the window exactly.

With U the union of self intervals on the op line (see `ownership`):
    compute               |U(compute)|
    exposed communication |U(comm) - U(compute)|
    exposed transfer      |U(transfer) - U(compute) - U(comm)|
    unattributed          |U(unknown) - U(compute) - U(comm) - U(transfer)|
    idle                  window - |U(all)|
An asynchronous operation is exposed where an op blocks on it, its `*-done`; while it is in flight
and no op runs, the device is idle. The maps by kind book each instant on the op that owns it, so
they sum to their term.
Overlapped communication is inside compute: the part of compute during which communication ran, also
asynchronous communication in flight. By kind it may sum to more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.ownership import OwnedTime, is_serial, owned_time
from marin_profile.base.columns import distinct
from marin_profile.base.errors import InternalError
from marin_profile.base.intervals import Intervals
from marin_profile.events.classify import (
    COLLECTIVES,
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
    HOST_TO_DEVICE,
    ON_CHIP,
    SPARSECORE,
    TRANSFERS,
    UNKNOWN_TRANSFER,
)
from marin_profile.events.timeline import Int64s

HOST_KINDS = (HOST_TO_DEVICE, DEVICE_TO_HOST, "infeed", "outfeed")
WAIT_KINDS = (ON_CHIP, DEVICE_TO_DEVICE, SPARSECORE)


@dataclass(frozen=True)
class Ledger:
    """One device, one window; picoseconds. exposed_by_kind: of communication; transfer_by_kind: of
    the exposed transfer."""

    start: int
    end: int
    compute: int
    overlapped_communication: int
    exposed_communication: int
    exposed_transfer: int
    unattributed: int
    idle: int
    exposed_by_kind: dict[str, int]
    overlapped_by_kind: dict[str, int]
    transfer_by_kind: dict[str, int]

    def __post_init__(self) -> None:
        total = (
            self.compute
            + self.exposed_communication
            + self.exposed_transfer
            + self.unattributed
            + self.idle
        )
        if total != self.end - self.start or self.idle < 0:
            raise InternalError("a ledger sums to its window", str(self))
        if sum(self.exposed_by_kind.values()) != self.exposed_communication:
            raise InternalError("exposed communication by kind sums to its term", str(self))
        if sum(self.transfer_by_kind.values()) != self.exposed_transfer:
            raise InternalError("exposed transfer by kind sums to its term", str(self))
        by_kind = self.overlapped_by_kind.values()
        if not 0 <= self.overlapped_communication <= min(self.compute, sum(by_kind)):
            raise InternalError("overlapped communication is part of compute", str(self))
        if max(by_kind, default=0) > self.overlapped_communication:
            raise InternalError("a kind overlaps no longer than all do", str(self))

    @property
    def host(self) -> int:
        """Exposed transfers between host and device."""
        return self._transfer(HOST_KINDS)

    @property
    def waits(self) -> int:
        """Exposed waits for moves inside the device or between devices, and for sparse cores."""
        return self._transfer(WAIT_KINDS)

    @property
    def unknown_transfer(self) -> int:
        return self._transfer((UNKNOWN_TRANSFER,))

    def _transfer(self, kinds: Iterable[str]) -> int:
        return sum(self.transfer_by_kind.get(kind, 0) for kind in kinds)


class DeviceIntervals:
    """The interval sets behind a device's ledgers."""

    def __init__(self, host: HostDevices, device: DeviceOps, spans: AsyncSpans) -> None:
        self._host = host
        self._device = device
        self._spans = spans
        self._kinds = np.array([_KIND_INDEX.get(fact.kind, -1) for fact in host.facts], np.int64)
        self._groups = np.array([fact.group for fact in host.facts], np.int64)

    @cached_property
    def is_serial(self) -> bool:
        """Whether every op owns its self time whole."""
        return is_serial(self._device)

    @cached_property
    def owned(self) -> OwnedTime:
        device = self._device
        if self.is_serial:
            return OwnedTime(device.piece_start, device.piece_end, device.piece_owner)
        return owned_time(device, self._groups, self._host.name_ranks)

    @cached_property
    def _owner_op(self) -> Int64s:
        return self._device.op[self.owned.owner]

    def _owned_by(self, chosen: NDArray[np.bool_]) -> Intervals:
        return Intervals.union_of(self.owned.start[chosen], self.owned.end[chosen])

    def _owned_by_group(self, group: int) -> Intervals:
        return self._owned_by(self._groups[self._owner_op] == group)

    def _running(self, columns: Int64s, wanted: int) -> Intervals:
        """Where ops with the wanted entry in `columns` run or are in flight."""
        pieces = columns[self._device.op[self._device.piece_owner]] == wanted
        spans = columns[self._spans.op] == wanted
        return Intervals.union_of(
            self._device.piece_start[pieces], self._device.piece_end[pieces]
        ) | Intervals.union_of(self._spans.start[spans], self._spans.end[spans])

    @cached_property
    def compute(self) -> Intervals:
        return self._owned_by_group(GROUP_COMPUTE)

    @cached_property
    def exposed_communication(self) -> Intervals:
        return self._owned_by_group(GROUP_COMMUNICATION)

    @cached_property
    def exposed_transfer(self) -> Intervals:
        return self._owned_by_group(GROUP_TRANSFER)

    @cached_property
    def unattributed(self) -> Intervals:
        return self._owned_by_group(GROUP_UNKNOWN)

    @cached_property
    def overlapped_communication(self) -> Intervals:
        return self._running(self._groups, GROUP_COMMUNICATION) & self.compute

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        ops = np.concatenate((self._device.op, self._spans.op))
        present = set(self._kinds[distinct(ops, len(self._kinds))].tolist())
        return tuple(kind for kind in _KINDS if _KIND_INDEX[kind] in present)

    @cached_property
    def exposed_by_kind(self) -> dict[str, Intervals]:
        return self._owned_by_kind(COLLECTIVES)

    @cached_property
    def overlapped_by_kind(self) -> dict[str, Intervals]:
        return {
            kind: self._running(self._kinds, _KIND_INDEX[kind]) & self.compute
            for kind in self.kinds
            if kind in COLLECTIVES
        }

    @cached_property
    def transfer_by_kind(self) -> dict[str, Intervals]:
        return self._owned_by_kind(TRANSFERS)

    def _owned_by_kind(self, kinds: Sequence[str]) -> dict[str, Intervals]:
        owner_kind = self._kinds[self._owner_op]
        return {
            kind: self._owned_by(owner_kind == _KIND_INDEX[kind])
            for kind in self.kinds
            if kind in kinds
        }

    def ledger(self, start: int, end: int) -> Ledger:
        """The ledger of [start, end), device clock."""
        return self.ledgers([(start, end)])[0]

    def ledgers(self, windows: Sequence[tuple[int, int]]) -> list[Ledger]:
        """The ledgers of several windows, each set of intervals measured once."""
        low = np.array([start for start, _ in windows], np.int64)
        high = np.array([max(window) for window in windows], np.int64)

        def inside(intervals: Intervals) -> list[int]:
            return intervals.covered(low, high).tolist()

        def each(sets: dict[str, Intervals]) -> list[dict[str, int]]:
            measured = {kind: inside(intervals) for kind, intervals in sets.items()}
            return [
                {kind: values[at] for kind, values in measured.items()}
                for at in range(len(windows))
            ]

        compute = inside(self.compute)
        overlapped = inside(self.overlapped_communication)
        exposed = inside(self.exposed_communication)
        transfer = inside(self.exposed_transfer)
        unattributed = inside(self.unattributed)
        exposed_by_kind = each(self.exposed_by_kind)
        overlapped_by_kind = each(self.overlapped_by_kind)
        transfer_by_kind = each(self.transfer_by_kind)
        return [
            Ledger(
                start=start,
                end=end,
                compute=compute[at],
                overlapped_communication=overlapped[at],
                exposed_communication=exposed[at],
                exposed_transfer=transfer[at],
                unattributed=unattributed[at],
                idle=end - start - compute[at] - exposed[at] - transfer[at] - unattributed[at],
                exposed_by_kind=exposed_by_kind[at],
                overlapped_by_kind=overlapped_by_kind[at],
                transfer_by_kind=transfer_by_kind[at],
            )
            for at, (start, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
        ]

    def step_terms(self, starts: Int64s, ends: Int64s) -> dict[str, Int64s]:
        """The five terms, and the window's length, for many windows at once."""
        parts = {
            "compute": self.compute.covered(starts, ends),
            "exposed_communication": self.exposed_communication.covered(starts, ends),
            "exposed_transfer": self.exposed_transfer.covered(starts, ends),
            "unattributed": self.unattributed.covered(starts, ends),
        }
        busy = sum(parts.values(), np.zeros(len(starts), np.int64))
        window = ends - starts
        return {**parts, "idle": window - busy, "window": window}


_KINDS = COLLECTIVES + TRANSFERS
_KIND_INDEX = {kind: index for index, kind in enumerate(_KINDS)}
