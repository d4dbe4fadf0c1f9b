"""Collectives per (kind, group size): instances, bytes, time, what hides them, bandwidth.

Contract: a start/done pair is one instance that lasts from the start's start to the done's end; a
plain collective lasts as long as its op. Bandwidth follows nccl-tests: algorithm = bytes / time,
bus = algorithm x c, c = 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and
all-to-all, else 1. Wire time of an instance is its shortest duration over the devices of one
replica group on a host (the last to arrive did not wait); what the others took longer is wait.
Where it is not known which of the captured devices meet, both are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.base.columns import distinct, unique_pairs
from marin_profile.base.intervals import Intervals
from marin_profile.events.classify import COLLECTIVES
from marin_profile.events.replica_groups import Groups, groups_of_captured
from marin_profile.events.shapes import array_bytes
from marin_profile.events.timeline import Int64s


@dataclass(frozen=True, slots=True)
class CollectiveTotals:
    """One (kind, group size) over all devices; picoseconds. Where an instance's payload or its
    partners are unknown, bytes or wire (and wait) are None."""

    kind: str
    group_size: int | None
    count: int
    duration: int
    exposed: int
    overlapped: int
    payload: int | None
    wire: int | None
    wait: int | None


@dataclass(frozen=True)
class _Instances:
    """Collective instances of one device, sorted by start. group_size is 0 where not known; groups
    are those of each op."""

    ordinal: int
    groups: dict[int, Groups]
    op: Int64s
    group_size: Int64s
    start: Int64s
    end: Int64s


def collective_totals(
    host: HostDevices, spans: Sequence[AsyncSpans], compute: Sequence[Intervals]
) -> list[CollectiveTotals]:
    """spans[i] and compute[i] (the union of compute) belong to host.devices[i]."""
    instances = [
        _instances(host.facts, device, span)
        for device, span in zip(host.devices, spans, strict=True)
    ]
    groups = sorted(
        {
            (host.facts[op].kind, size)
            for one in instances
            for op, size in zip(
                *(c.tolist() for c in unique_pairs(one.op, one.group_size)[:2]), strict=True
            )
        }
    )
    return [_total(host.facts, instances, compute, kind, size) for kind, size in groups]


def merge_collectives(parts: Iterable[CollectiveTotals]) -> list[CollectiveTotals]:
    merged: dict[tuple[str, int | None], CollectiveTotals] = {}
    for part in parts:
        known = merged.get((part.kind, part.group_size))
        merged[part.kind, part.group_size] = part if known is None else _add(known, part)
    return sorted(merged.values(), key=lambda row: (-row.duration, row.kind, row.group_size or 0))


def _add(a: CollectiveTotals, b: CollectiveTotals) -> CollectiveTotals:
    def both(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    return replace(
        a,
        count=a.count + b.count,
        duration=a.duration + b.duration,
        exposed=a.exposed + b.exposed,
        overlapped=a.overlapped + b.overlapped,
        payload=both(a.payload, b.payload),
        wire=both(a.wire, b.wire),
        wait=both(a.wait, b.wait),
    )


def bandwidth(row: CollectiveTotals) -> tuple[float | None, float | None]:
    """(algorithm, bus) in GB/s."""
    if not row.payload or not row.wire:
        return None, None
    algorithm = row.payload * 1000 / row.wire  # bytes/ps = TB/s
    factor = bus_factor(row.kind, row.group_size)
    return algorithm, None if factor is None else algorithm * factor


def bus_factor(kind: str, group_size: int | None) -> float | None:
    if kind not in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
        return 1.0
    if not group_size:
        return None
    return (2.0 if kind == "all-reduce" else 1.0) * (group_size - 1) / group_size


def payload_bytes(fact: OpFacts, group_size: int) -> int | None:
    """Bytes of the full tensor, from the result's shape; None where it is not known (for a
    reduce-scatter also where the group size is not, 0)."""
    sizes = array_bytes(fact.shape)
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return None
    is_start = fact.op_class.role == "start"
    # Other starts give their operand beside the result.
    full = max(known) if is_start and fact.kind != "all-reduce" else sum(known)
    if fact.kind == "reduce-scatter" and not is_start:
        return full * group_size or None
    return full or None


def _instances(facts: tuple[OpFacts, ...], device: DeviceOps, spans: AsyncSpans) -> _Instances:
    is_collective = np.array([fact.kind in COLLECTIVES for fact in facts], np.bool_)
    in_span = np.zeros(len(device.op), np.bool_)
    in_span[spans.start_at[spans.start_at >= 0]] = True
    in_span[spans.done_at[spans.done_at >= 0]] = True
    alone = is_collective[device.op] & ~in_span & ~_other_halves(facts, device, in_span)
    chosen = is_collective[spans.op]
    op = np.concatenate((device.op[alone], spans.op[chosen]))
    start = np.concatenate((device.start[alone], spans.start[chosen]))
    end = np.concatenate((device.end[alone], spans.end[chosen]))
    sizes = np.array([fact.replica_group_size or 0 for fact in facts], np.int64)
    # Of a pair, often only the start names the group.
    span_sizes = sizes[spans.op]
    paired = spans.start_at >= 0
    start_sizes = sizes[device.op[spans.start_at[paired]]]
    span_sizes[paired] = np.maximum(span_sizes[paired], start_sizes)
    group_size = np.concatenate((sizes[device.op[alone]], span_sizes[chosen]))
    order = np.argsort(start, kind="stable")
    return _Instances(
        ordinal=_ordinal(device.name),
        groups=_groups_by_op(facts, device, spans, op),
        op=op[order],
        group_size=group_size[order],
        start=start[order],
        end=end[order],
    )


def _ordinal(device: str) -> int:
    digits = re.search(r":(\d+)", device)
    return int(digits.group(1)) if digits else 0


def _groups_by_op(
    facts: tuple[OpFacts, ...], device: DeviceOps, spans: AsyncSpans, op: Int64s
) -> dict[int, Groups]:
    groups = {index: facts[index].replica_groups for index in distinct(op, len(facts)).tolist()}
    paired = spans.start_at >= 0
    starts = device.op[spans.start_at[paired]]
    for done, start in zip(
        *(c.tolist() for c in unique_pairs(spans.op[paired], starts)[:2]), strict=True
    ):
        if not groups.get(done):
            groups[done] = facts[start].replica_groups
    return groups


def _other_halves(
    facts: tuple[OpFacts, ...], device: DeviceOps, in_span: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Unpaired starts of kinds that have unpaired dones: an operation counts once."""
    roles = np.array([fact.op_class.role for fact in facts])[device.op]
    kinds = np.array([fact.kind for fact in facts])[device.op]
    ended = set(kinds[(roles == "done") & ~in_span].tolist())
    return (roles == "start") & ~in_span & np.isin(kinds, sorted(ended))


def _total(
    facts: tuple[OpFacts, ...],
    instances: Sequence[_Instances],
    compute: Sequence[Intervals],
    kind: str,
    group_size: int,
) -> CollectiveTotals:
    ops = [index for index, fact in enumerate(facts) if fact.kind == kind]
    count = duration = exposed = overlapped = 0
    payload: int | None = 0
    wire: int | None = 0
    for one, hidden_by in zip(instances, compute, strict=True):
        chosen = np.isin(one.op, ops) & (one.group_size == group_size)
        count += int(chosen.sum())
        duration += int((one.end[chosen] - one.start[chosen]).sum())
        union = Intervals.union_of(one.start[chosen], one.end[chosen])
        exposed += (union - hidden_by).total
        overlapped += (union & hidden_by).total
    for op in ops:
        lengths = [_durations(one, op, group_size) for one in instances]
        executions = sum(map(len, lengths))
        if not executions:
            continue
        size = payload_bytes(facts[op], group_size)
        payload = None if payload is None or size is None else payload + size * executions
        own_wire = _wire(op, instances, lengths)
        wire = None if wire is None or own_wire is None else wire + own_wire
    wait = None if wire is None or len(instances) < 2 else duration - wire
    return CollectiveTotals(
        kind, group_size or None, count, duration, exposed, overlapped, payload, wire, wait
    )


def _wire(op: int, instances: Sequence[_Instances], lengths: Sequence[Int64s]) -> int | None:
    """Wire time of all instances of one op over the devices that ran it."""
    took_part = [
        (one, length) for one, length in zip(instances, lengths, strict=True) if len(length)
    ]
    if len({len(length) for _, length in took_part}) > 1:
        return None
    groups = next((one.groups[op] for one, _ in took_part if one.groups.get(op)), ())
    meetings = groups_of_captured(groups, [one.ordinal for one, _ in took_part])
    if meetings is None:
        return None
    table = np.stack([length for _, length in took_part])
    return sum(int(table[members].min(axis=0).sum()) * len(members) for members in meetings)


def _durations(one: _Instances, op: int, group_size: int) -> Int64s:
    chosen = (one.op == op) & (one.group_size == group_size)
    return one.end[chosen] - one.start[chosen]
