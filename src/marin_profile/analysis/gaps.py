"""Idle time before ops: on one device, between the running end and the next op's start.

Contract: the op that ends a gap is its marker. If that is bookkeeping, the payload is the next op
within LOOKAHEAD that is not, with no second gap between; else the payload is the marker. Totals
add up across devices; each gap keeps the payload's scope as its region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.base.columns import counts_of, sum_by, unique_pairs
from marin_profile.base.jit import jit
from marin_profile.events.classify import is_bookkeeping

Window = tuple[int, int]

LOOKAHEAD = 8
NO_REGION = "(no scope)"


@dataclass
class GapTotals:
    """All gaps before one payload op; picoseconds. markers and regions count gaps by name, and
    region_time sums them; steady_*: the part inside the steady window; account_*: inside the
    devices' windows of the step account."""

    payload: str
    count: int = 0
    total: int = 0
    longest: int = 0
    markers: dict[str, int] = field(default_factory=dict)
    regions: dict[str, int] = field(default_factory=dict)
    region_time: dict[str, int] = field(default_factory=dict)
    steady_count: int = 0
    steady_total: int = 0
    account_count: int = 0
    account_total: int = 0

    @property
    def marker(self) -> str:
        """The commonest marker; ties by name."""
        return min(self.markers, key=lambda name: (-self.markers[name], name))


def gap_totals(
    host: HostDevices,
    steady: Window | None = None,
    account: Sequence[Window | None] = (),
) -> list[GapTotals]:
    """`account`: one window per device."""
    bookkeeping = np.array([is_bookkeeping(fact.name) for fact in host.facts], np.bool_)
    found: dict[str, GapTotals] = {}
    for device, window in zip_longest(host.devices, account):
        _add_device(found, host, device, bookkeeping, steady or (0, 0), window or (0, 0))
    return list(found.values())


def merge_gaps(parts: Iterable[GapTotals]) -> list[GapTotals]:
    merged: dict[str, GapTotals] = {}
    for part in parts:
        known = merged.setdefault(part.payload, GapTotals(part.payload))
        known.count += part.count
        known.total += part.total
        known.longest = max(known.longest, part.longest)
        known.steady_count += part.steady_count
        known.steady_total += part.steady_total
        known.account_count += part.account_count
        known.account_total += part.account_total
        for name in ("markers", "regions", "region_time"):
            totals = getattr(known, name)
            for key, value in getattr(part, name).items():
                totals[key] = totals.get(key, 0) + value
    return sorted(merged.values(), key=lambda gap: (-gap.total, gap.payload))


def _add_device(
    found: dict[str, GapTotals],
    host: HostDevices,
    device: DeviceOps,
    bookkeeping: np.ndarray,
    steady: Window,
    account: Window,
) -> None:
    payload, marker, length = find_gaps(device.start, device.end, bookkeeping[device.op], LOOKAHEAD)
    if not len(length):
        return
    payload_ops, marker_ops, index = unique_pairs(device.op[payload], device.op[marker])
    counts = counts_of(index, len(payload_ops))
    totals = sum_by(index, length, len(payload_ops))
    longest = np.zeros(len(payload_ops), np.int64)
    np.maximum.at(longest, index, length)
    end = device.start[marker]
    parts = []
    for begin, stop in (steady, account):
        inside = np.maximum(np.minimum(end, stop) - np.maximum(end - length, begin), 0)
        parts += [
            counts_of(index[inside > 0], len(payload_ops)),
            sum_by(index, inside, len(payload_ops)),
        ]
    columns = (payload_ops, marker_ops, counts, totals, longest, *parts)
    for payload_op, marker_op, count, total, most, *windows in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        fact = host.facts[payload_op]
        gap = found.setdefault(fact.name, GapTotals(fact.name))
        gap.count += count
        gap.total += total
        gap.longest = max(gap.longest, most)
        gap.steady_count += windows[0]
        gap.steady_total += windows[1]
        gap.account_count += windows[2]
        gap.account_total += windows[3]
        marker_name = host.facts[marker_op].name
        region = "=>".join(fact.scope) or NO_REGION
        gap.markers[marker_name] = gap.markers.get(marker_name, 0) + count
        gap.regions[region] = gap.regions.get(region, 0) + count
        gap.region_time[region] = gap.region_time.get(region, 0) + total


@jit
def find_gaps(start, end, bookkeeping, lookahead):
    """Gaps of one device's ops, sorted by start: (payload index, marker index, length) columns."""
    n = len(start)
    payloads = np.empty(n, np.int64)
    markers = np.empty(n, np.int64)
    lengths = np.empty(n, np.int64)
    count = 0
    running = np.int64(0)
    for i in range(n):
        if i and start[i] > running:
            payload = i
            if bookkeeping[i]:
                busy_to = max(running, end[i])
                for j in range(i + 1, min(n, i + 1 + lookahead)):
                    if start[j] > busy_to:
                        break
                    if not bookkeeping[j]:
                        payload = j
                        break
                    busy_to = max(busy_to, end[j])
            payloads[count] = payload
            markers[count] = i
            lengths[count] = start[i] - running
            count += 1
        running = end[i] if i == 0 else max(running, end[i])
    return payloads[:count].copy(), markers[:count].copy(), lengths[:count].copy()
