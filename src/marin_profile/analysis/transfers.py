"""Transfers by kind: how many, how much, how long in flight, how long waited for.

Contract: a start/done pair is one transfer, in flight from the start's start to the done's end, so
its rate is at least bytes / span; a synchronous one (a memcpy, an infeed) lasts as long as its op.
Transfers that a capture's edge cuts are left out; what the device waits for them is not. `waited`
is the ledger's exposed transfer of the kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.base.columns import counts_of
from marin_profile.base.intervals import Intervals
from marin_profile.events.classify import SPARSECORE, TRANSFERS, memcpy_bytes
from marin_profile.events.shapes import array_bytes
from marin_profile.events.timeline import Int64s, Op


@dataclass(frozen=True)
class TransferTotals:
    """One kind over all devices; picoseconds. span sums what each transfer is in flight, in_flight
    is the time with at least one in flight, per device. payload (bytes) is None where the size of
    any transfer is not known."""

    kind: str
    count: int
    span: int
    in_flight: int
    waited: int
    payload: int | None

    @property
    def gbps(self) -> float | None:
        """Of one transfer while it is in flight, on average."""
        return _rate(self.payload, self.span)

    @property
    def throughput_gbps(self) -> float | None:
        """Of one device while any is in flight."""
        return _rate(self.payload, self.in_flight)


def _rate(payload: int | None, time: int) -> float | None:
    return payload * 1000 / time if payload and time else None  # bytes/ps = TB/s


def transfer_totals(
    host: HostDevices, device: DeviceOps, spans: AsyncSpans, waited: Mapping[str, int]
) -> list[TransferTotals]:
    """One device. `waited`: the exposed transfer of its capture ledger by kind, every kind that
    occurs."""
    kinds = [fact.kind for fact in host.facts]
    lasting = np.array(
        [fact.kind in TRANSFERS and not fact.op_class.role for fact in host.facts], np.bool_
    )
    alone = lasting[device.op]
    op = np.concatenate((device.op[alone], spans.op))
    start = np.concatenate((device.start[alone], spans.start))
    end = np.concatenate((device.end[alone], spans.end))
    stated_by = _stated_by(device, spans, device.op[alone])
    totals = []
    for kind, wait in waited.items():
        of_kind = np.array([one == kind for one in kinds], np.bool_)
        chosen = of_kind[op]
        totals.append(
            TransferTotals(
                kind=kind,
                count=int(chosen.sum()),
                span=int((end[chosen] - start[chosen]).sum()),
                in_flight=Intervals.union_of(start[chosen], end[chosen]).total,
                waited=wait,
                payload=_payload(host, stated_by[chosen]),
            )
        )
    return totals


def merge_transfers(parts: Iterable[TransferTotals]) -> list[TransferTotals]:
    merged: dict[str, TransferTotals] = {}
    for part in parts:
        known = merged.get(part.kind)
        merged[part.kind] = part if known is None else _add(known, part)
    return sorted(merged.values(), key=lambda row: (-row.waited, -row.span, row.kind))


def _add(a: TransferTotals, b: TransferTotals) -> TransferTotals:
    return replace(
        a,
        count=a.count + b.count,
        span=a.span + b.span,
        in_flight=a.in_flight + b.in_flight,
        waited=a.waited + b.waited,
        payload=None if a.payload is None or b.payload is None else a.payload + b.payload,
    )


def _stated_by(device: DeviceOps, spans: AsyncSpans, alone: Int64s) -> Int64s:
    """The op that tells the size of each transfer: of a pair the start, which has all shapes."""
    pair = spans.start_at >= 0
    starts = spans.op.copy()
    starts[pair] = device.op[spans.start_at[pair]]
    return np.concatenate((alone, starts))


def _payload(host: HostDevices, stated_by: Int64s) -> int | None:
    counts = counts_of(stated_by, len(host.facts))
    total = 0
    for op in np.flatnonzero(counts).tolist():
        size = moved_bytes(host.timeline.ops[op], host.facts[op])
        if size is None:
            return None
        total += size * int(counts[op])
    return total


def moved_bytes(op: Op, fact: OpFacts) -> int | None:
    """Bytes that one transfer moves; None where the file does not show them."""
    if fact.kind == SPARSECORE:
        return None
    stated = memcpy_bytes(op.memcpy_details)
    if stated is not None:
        return stated
    sizes = array_bytes(fact.shape)
    base = fact.op_class.base
    if base == "copy":  # (destination, source, context), or the destination alone
        return sizes[0] if sizes else None
    if base == "dynamic-update-slice":  # ((buffer, update, indices...), destination, context)
        return sizes[1] if len(sizes) > 3 else None
    if base in ("slice", "dynamic-slice"):  # ((source, indices...), destination, context)
        return sizes[-2] if len(sizes) > 2 else sizes[0] if len(sizes) == 1 else None
    known = [size for size in sizes if size is not None]
    if base == "infeed":
        return sum(known) if sizes and len(known) == len(sizes) else None
    return None
