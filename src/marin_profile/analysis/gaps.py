"""Idle time before ops: on one device, between the running end and the next op's start.

Contract: the op that ends a gap is its marker. If that is bookkeeping, the payload is the next op
within LOOKAHEAD that is not, with no second gap between; else the payload is the marker. Gaps of at
most NOISE are rounding of the clocks: they end no lookahead, and stand in one row together. Totals
add up across devices; each gap keeps the payload's scope as its region. Sparse cores assist:
their idle time is no gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.base.columns import counts_of, sum_by, unique_pairs
from marin_profile.base.intervals import Window
from marin_profile.events.classify import is_bookkeeping
from marin_profile.events.timeline import Int64s

LOOKAHEAD = 8
# Clocks tick every 1 to 1.25 ns; between ops that follow each other one tick may be lost.
NOISE = 2_000
NOISE_ROW = "(gaps of at most 2 ns)"
NO_REGION = "(no scope)"


@dataclass
class GapTotals:
    """All gaps before one payload op, or all noise; picoseconds. markers and regions count gaps by
    name, and region_time sums them; steady_*: the part inside the steady window; account_*: inside
    the devices' windows of the step account. *_longest_each: each device's longest gap, summed (a
    stall of all devices at once is one gap on each)."""

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
    longest_each: int = 0
    steady_longest_each: int = 0

    @property
    def is_noise(self) -> bool:
        return self.payload == NOISE_ROW

    @property
    def marker(self) -> str | None:
        """The commonest marker; ties by name. Noise has none."""
        return min(self.markers, key=lambda name: (-self.markers[name], name), default=None)


def gap_totals(
    host: HostDevices,
    steady: Window | None = None,
    account: Sequence[Window | None] = (),
) -> list[GapTotals]:
    """`account`: one window per device."""
    bookkeeping = np.array([is_bookkeeping(fact.name) for fact in host.facts], np.bool_)
    found: dict[str, GapTotals] = {}
    for device, window in zip_longest(host.devices, account):
        if device.kind != SPARSECORE:
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
        known.longest_each += part.longest_each
        known.steady_longest_each += part.steady_longest_each
        known.account_count += part.account_count
        known.account_total += part.account_total
        for name in ("markers", "regions", "region_time"):
            totals = getattr(known, name)
            for key, value in getattr(part, name).items():
                totals[key] = totals.get(key, 0) + value
    return sorted(merged.values(), key=lambda gap: (gap.is_noise, -gap.total, gap.payload))


def _add_device(
    found: dict[str, GapTotals],
    host: HostDevices,
    device: DeviceOps,
    bookkeeping: np.ndarray,
    steady: Window,
    account: Window,
) -> None:
    payload, marker, length = find_gaps(
        device.start, device.end, bookkeeping[device.op], LOOKAHEAD, NOISE
    )
    if not len(length):
        return
    end = device.start[marker]
    in_steady, in_account = (
        np.maximum(np.minimum(end, stop) - np.maximum(end - length, begin), 0)
        for begin, stop in (steady, account)
    )
    # Noise is one group, the last.
    heard = length > NOISE
    payload_ops, marker_ops, index = unique_pairs(
        np.where(heard, device.op[payload], len(host.facts)),
        np.where(heard, device.op[marker], len(host.facts)),
    )
    size = len(payload_ops)
    columns = (
        payload_ops,
        marker_ops,
        counts_of(index, size),
        sum_by(index, length, size),
        _longest_by(index, length, size),
        counts_of(index[np.flatnonzero(in_steady)], size),
        sum_by(index, in_steady, size),
        _longest_by(index, in_steady, size),
        counts_of(index[np.flatnonzero(in_account)], size),
        sum_by(index, in_account, size),
    )
    each: dict[str, tuple[int, int]] = {}
    for payload_op, marker_op, count, total, longest, *windows in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        is_noise = payload_op == len(host.facts)
        name = NOISE_ROW if is_noise else host.facts[payload_op].name
        gap = found.setdefault(name, GapTotals(name))
        gap.count += count
        gap.total += total
        gap.longest = max(gap.longest, longest)
        gap.steady_count += windows[0]
        gap.steady_total += windows[1]
        most = each.get(name, (0, 0))
        each[name] = max(most[0], longest), max(most[1], windows[2])
        gap.account_count += windows[3]
        gap.account_total += windows[4]
        if not is_noise:
            marker_name = host.facts[marker_op].name
            region = "=>".join(host.facts[payload_op].scope) or NO_REGION
            gap.markers[marker_name] = gap.markers.get(marker_name, 0) + count
            gap.regions[region] = gap.regions.get(region, 0) + count
            gap.region_time[region] = gap.region_time.get(region, 0) + total
    for name, (longest, steady_longest) in each.items():
        found[name].longest_each += longest
        found[name].steady_longest_each += steady_longest


def _longest_by(index: Int64s, length: Int64s, size: int) -> Int64s:
    longest = np.zeros(size, np.int64)
    np.maximum.at(longest, index, length)
    return longest


def find_gaps(
    start: Int64s, end: Int64s, bookkeeping: np.ndarray, lookahead: int, noise: int
) -> tuple[Int64s, Int64s, Int64s]:
    """Gaps of one device's ops, sorted by start: (payload index, marker index, length) columns."""
    reach = np.maximum.accumulate(end)
    markers = np.flatnonzero(start[1:] > reach[:-1]) + 1
    payloads = markers.copy()
    # The gaps whose payload is still looked for, and until when their device is busy.
    searched = np.flatnonzero(bookkeeping[markers])
    for ahead in range(1, lookahead + 1):
        at = markers[searched] + ahead
        near = at < len(start)
        near[near] = start[at[near]] <= reach[at[near] - 1] + noise
        searched, at = searched[near], at[near]
        is_payload = ~bookkeeping[at]
        payloads[searched[is_payload]] = at[is_payload]
        searched = searched[~is_payload]
    return payloads, markers, start[markers] - reach[markers - 1]
