"""Where a device's time goes: five terms that sum to the window exactly.

With U the union of self intervals (the spans of asynchronous communication and transfers join
their kind; an asynchronous computation runs elsewhere, so only its ops on the op line count):
    compute               |U(compute)|
    exposed communication |U(comm) - U(compute)|
    exposed transfer      |U(transfer) - U(compute) - U(comm)|
    unattributed          |U(unknown) - U(compute) - U(comm) - U(transfer)|
    idle                  window - |U(all)|
Overlapped communication, |U(comm) & U(compute)|, is inside compute. The maps by kind apply the
same formulas to one kind; kinds that run at the same time may sum to more than their term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.base.columns import counts_of
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
    TRANSFERS,
)
from marin_profile.events.timeline import Int64s

HOST_KINDS = (HOST_TO_DEVICE, DEVICE_TO_HOST, "infeed", "outfeed")
WAIT_KINDS = (ON_CHIP, DEVICE_TO_DEVICE)


@dataclass(frozen=True)
class Ledger:
    """One device, one window; picoseconds. `host`, `waits` and `unknown_transfer` split the
    exposed transfer without overlap, in this order of precedence."""

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
    host: int
    waits: int
    unknown_transfer: int

    def __post_init__(self) -> None:
        total = (
            self.compute
            + self.exposed_communication
            + self.exposed_transfer
            + self.unattributed
            + self.idle
        )
        if total != self.end - self.start or self.idle < 0:
            raise AssertionError(f"ledger does not sum: {self}")
        if self.host + self.waits + self.unknown_transfer != self.exposed_transfer:
            raise AssertionError(f"transfer parts do not sum: {self}")


class DeviceTime:
    """The interval sets behind a device's ledgers."""

    def __init__(self, device: DeviceOps, facts: tuple[OpFacts, ...], spans: AsyncSpans) -> None:
        self._device = device
        self._spans = spans
        self._kinds = np.array([_KIND_INDEX.get(fact.kind, -1) for fact in facts], np.int64)
        self._groups = np.array([fact.group for fact in facts], np.int64)
        self._moves_data = np.isin(self._groups, (GROUP_COMMUNICATION, GROUP_TRANSFER))

    def _union(self, choose: Callable[[Int64s], Int64s]) -> Intervals:
        pieces = choose(self._device.op[self._device.piece_owner])
        spans = choose(self._spans.op) & self._moves_data[self._spans.op]
        return Intervals.union_of(
            self._device.piece_start[pieces], self._device.piece_end[pieces]
        ) | Intervals.union_of(self._spans.start[spans], self._spans.end[spans])

    def of_group(self, group: int) -> Intervals:
        return self._union(lambda op: self._groups[op] == group)

    def of_kind(self, kind: str) -> Intervals:
        return self._union(lambda op: self._kinds[op] == _KIND_INDEX[kind])

    @cached_property
    def compute(self) -> Intervals:
        return self.of_group(GROUP_COMPUTE)

    @cached_property
    def communication(self) -> Intervals:
        return self.of_group(GROUP_COMMUNICATION)

    @cached_property
    def exposed_communication(self) -> Intervals:
        return self.communication - self.compute

    @cached_property
    def overlapped_communication(self) -> Intervals:
        return self.communication & self.compute

    @cached_property
    def busy_without_transfer(self) -> Intervals:
        return self.compute | self.communication

    @cached_property
    def exposed_transfer(self) -> Intervals:
        return self.of_group(GROUP_TRANSFER) - self.busy_without_transfer

    @cached_property
    def unattributed(self) -> Intervals:
        known = self.busy_without_transfer | self.of_group(GROUP_TRANSFER)
        return self.of_group(GROUP_UNKNOWN) - known

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        size = len(self._kinds)
        present = counts_of(self._device.op, size) + counts_of(self._spans.op, size) > 0
        return tuple(_KINDS[index] for index in sorted(set(self._kinds[present])) if index >= 0)

    @cached_property
    def exposed_by_kind(self) -> dict[str, Intervals]:
        return {k: self.of_kind(k) - self.compute for k in self.kinds if k in COLLECTIVES}

    @cached_property
    def overlapped_by_kind(self) -> dict[str, Intervals]:
        return {k: self.of_kind(k) & self.compute for k in self.kinds if k in COLLECTIVES}

    @cached_property
    def transfer_by_kind(self) -> dict[str, Intervals]:
        return {
            k: self.of_kind(k) - self.busy_without_transfer for k in self.kinds if k in TRANSFERS
        }

    @cached_property
    def _transfer_parts(self) -> tuple[Intervals, Intervals]:
        """Exposed host transfers, and exposed waits outside them."""
        host = waits = Intervals.empty()
        for kind, exposed in self.transfer_by_kind.items():
            if kind in HOST_KINDS:
                host = host | exposed
            elif kind in WAIT_KINDS:
                waits = waits | exposed
        return host, waits - host

    def ledger(self, start: int, end: int) -> Ledger:
        """The ledger of [start, end), device clock."""
        return self.ledgers([(start, end)])[0]

    def ledgers(self, windows: Sequence[tuple[int, int]]) -> list[Ledger]:
        """The ledgers of several windows, each set of intervals measured once."""
        low = np.array([start for start, _ in windows], np.int64)
        high = np.array([max(window) for window in windows], np.int64)

        def inside(intervals: Intervals) -> list[int]:
            return intervals.covered(low, high).tolist()

        def each(sets: dict[str, Intervals]) -> dict[str, list[int]]:
            return {kind: inside(intervals) for kind, intervals in sets.items()}

        compute = inside(self.compute)
        overlapped = inside(self.overlapped_communication)
        exposed = inside(self.exposed_communication)
        transfer = inside(self.exposed_transfer)
        unattributed = inside(self.unattributed)
        host, waits = map(inside, self._transfer_parts)
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
                exposed_by_kind={kind: values[at] for kind, values in exposed_by_kind.items()},
                overlapped_by_kind={
                    kind: values[at] for kind, values in overlapped_by_kind.items()
                },
                transfer_by_kind={kind: values[at] for kind, values in transfer_by_kind.items()},
                host=host[at],
                waits=waits[at],
                unknown_transfer=transfer[at] - host[at] - waits[at],
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
