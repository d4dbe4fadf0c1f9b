"""A profile read without this package: the plainest code that gives events, for truths of its own.

Nothing here is fast or careful about damaged files. Times are microseconds, as floats.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Event:
    plane: str
    line: str
    name: str
    start: float
    end: float
    stats: dict[str, Any] = field(hash=False, compare=False)

    @property
    def length(self) -> float:
        return self.end - self.start


def read_events(path: Path) -> list[Event]:
    if path.name.endswith(".xplane.pb"):
        return list(_xplane(path.read_bytes()))
    return list(_trace(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]))


# --- JSON ---------------------------------------------------------------------------------------


def _trace(rows: list[dict[str, Any]]) -> Iterator[Event]:
    names: dict[tuple[Any, Any], str] = {}
    for row in rows:
        if row.get("ph") == "M" and row["name"] in ("process_name", "thread_name"):
            thread = row.get("tid") if row["name"] == "thread_name" else None
            names[row["pid"], thread] = row["args"]["name"]
    for row in rows:
        if row.get("ph") == "X":
            plane, line = (names.get((row["pid"], key), "") for key in (None, row["tid"]))
            end = row["ts"] + row.get("dur", 0.0)
            yield Event(plane, line, row["name"], row["ts"], end, row.get("args", {}))


# --- protobuf -----------------------------------------------------------------------------------


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of one message by number: integers, or bytes as they stand."""
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        elif key & 7 == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = 8 if key & 7 == 1 else 4
            value, at = data[at : at + length], at + length
        found[key >> 3].append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _one(message: dict[int, list[Any]], number: int, default: Any) -> Any:
    return message[number][-1] if number in message else default


def _text(message: dict[int, list[Any]], number: int) -> str:
    return bytes(_one(message, number, b"")).decode(errors="replace")


def _stats(encoded: list[bytes], names: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in encoded:
        stat = fields(one)
        name = names.get(_one(stat, 1, 0), "")
        for number, value in stat.items():
            if number == 2:
                found[name] = struct.unpack("<d", value[0])[0]
            elif number in (3, 4):
                found[name] = value[0]
            elif number == 5:
                found[name] = value[0].decode(errors="replace")
            elif number == 6:
                found[name] = value[0]
            elif number == 7:
                found[name] = names.get(value[0], "")
    return found


def _xplane(data: bytes) -> Iterator[Event]:
    for encoded in fields(data)[1]:
        plane = fields(encoded)
        stat_names = {
            _one(entry, 1, 0): _text(fields(_one(entry, 2, b"")), 2)
            for entry in map(fields, plane[5])
        }
        kinds = {}
        for entry in map(fields, plane[4]):
            metadata = fields(_one(entry, 2, b""))
            shared = _stats(metadata[5], stat_names)
            shared["text"] = _text(metadata, 2)
            kinds[_one(entry, 1, 0)] = (_text(metadata, 4) or _text(metadata, 2), shared)
        for line in map(fields, plane[3]):
            begin = _one(line, 3, 0) / 1e3
            for event in map(fields, line[4]):
                name, shared = kinds.get(_one(event, 1, 0), ("", {}))
                start = begin + _one(event, 2, 0) / 1e6
                yield Event(
                    _text(plane, 2),
                    _text(line, 2),
                    name,
                    start,
                    start + _one(event, 3, 0) / 1e6,
                    shared | _stats(event[4], stat_names),
                )


# --- device ops ---------------------------------------------------------------------------------

_PSUM = "psum"
_COLLECTIVE = re.compile(
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start|-done)?\b"
)


@dataclass(frozen=True)
class Op:
    device: str
    name: str
    kind: str
    start: float
    end: float
    event_start: float
    stats: dict[str, Any] = field(hash=False, compare=False)

    @property
    def length(self) -> float:
        return self.end - self.start


def device_ops(events: list[Event]) -> list[Op]:
    """TPU: "XLA Ops", by the device's own clock. GPU: streams. CPU: events that name an HLO op."""
    found = []
    for event in events:
        stats = event.stats
        start, end, device = event.start, event.end, event.plane
        if event.plane.startswith("/device:TPU"):
            if event.line != "XLA Ops":
                continue
            if "device_offset_ps" in stats:
                start = int(stats["device_offset_ps"]) / 1e6
                end = start + int(stats["device_duration_ps"]) / 1e6
        elif event.plane.startswith("/device:GPU"):
            if not event.line.startswith("Stream"):
                continue
        elif "hlo_op" in stats and "device_ordinal" in stats:
            device = f"/device:CPU:{stats['device_ordinal']}"
        else:
            continue
        found.append(Op(device, event.name, _kind(event), start, end, event.start, stats))
    return sorted(found, key=lambda op: (op.device, op.start, -op.end, op.name))


def _kind(event: Event) -> str:
    stats = event.stats
    category = str(stats.get("hlo_category", ""))
    if found := _COLLECTIVE.match(category):
        return found[1]
    if _PSUM in event.name and "device_ordinal" in stats:
        return "all-reduce"
    if category in ("copy-start", "copy-done") or "memcpy_details" in stats:
        return "transfer"
    return "compute"


# --- intervals ----------------------------------------------------------------------------------

Intervals = list[tuple[float, float]]


def union(spans: Intervals) -> Intervals:
    found: Intervals = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def size(spans: Intervals) -> float:
    return sum(end - start for start, end in spans)


def clip(spans: Intervals, start: float, end: float) -> Intervals:
    return [(max(a, start), min(b, end)) for a, b in spans if b > start and a < end]


# --- sums ---------------------------------------------------------------------------------------


class Ops:
    """The device ops of a capture, and plain sums over them."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.all = device_ops(events)
        self.devices = sorted({op.device for op in self.all})

    def of(self, device: str) -> list[Op]:
        return [op for op in self.all if op.device == device]

    def totals(self, *, collectives: bool = True) -> tuple[tuple[str, float], ...]:
        found: dict[str, float] = defaultdict(float)
        for op in self.all:
            if collectives or op.kind in ("compute", "transfer"):
                found[op.name] += op.length
        return tuple(found.items())

    def lengths(self, wanted: str) -> list[float]:
        return [op.length for op in self.all if op.name in (wanted, f"{wanted}.kd")]

    def windows(self) -> dict[str, tuple[float, float]]:
        """Per device from its first to its last op."""
        return {
            device: (min(op.start for op in self.of(device)), max(op.end for op in self.of(device)))
            for device in self.devices
        }

    def ledger(self, windows: dict[str, tuple[float, float]]) -> dict[str, float]:
        """Shares of the windows, summed over devices: compute, communication that no compute
        covers, transfers that neither covers, idle; and what compute covers of communication."""
        found: dict[str, float] = defaultdict(float)
        for device, (start, end) in windows.items():
            spans = defaultdict(list)
            for op in self.of(device):
                kind = op.kind if op.kind in ("compute", "transfer") else "communication"
                spans[kind].append((op.start, op.end))
            within = {kind: clip(union(spans[kind]), start, end) for kind in spans}
            compute, both = size(within.get("compute", [])), []
            busy, seen = 0.0, []
            for kind in ("compute", "communication", "transfer"):
                seen += within.get(kind, [])
                both.append(size(union(seen)) - busy)
                busy += both[-1]
            found["compute"] += both[0]
            found["communication"] += both[1]
            found["transfer"] += both[2]
            found["hidden"] += size(within.get("communication", [])) - both[1]
            found["idle"] += end - start - busy
            found["window"] += end - start
            assert abs(both[0] - compute) < 1e-6
        return {kind: found[kind] / found["window"] for kind in found} | {"us": found["window"]}

    def gaps(self, device: str) -> list[tuple[float, str]]:
        """(idle before an op, the op) on one device."""
        found, busy = [], float("inf")
        for op in self.of(device):
            if op.start > busy:
                found.append((op.start - busy, op.name))
            busy = op.end if busy == float("inf") else max(busy, op.end)
        return found


def _device_allocations(events: list[Event]) -> list[dict]:
    return [
        one.stats
        for one in events
        if one.name in ("MemoryAllocation", "MemoryDeallocation")
        and "bytes_available" in one.stats
        and "host" not in str(one.stats.get("allocator_name", ""))
    ]


def peak_in_use(events: list[Event]) -> float:
    return max(one["peak_bytes_in_use"] for one in _device_allocations(events))


def allocator_says(events: list[Event]) -> tuple[float, ...]:
    """What the allocators say: the most in use, the least available, the whole."""
    found = _device_allocations(events)
    return (
        peak_in_use(events),
        min(one["bytes_available"] for one in found),
        max(one["bytes_available"] + one["bytes_allocated"] for one in found),
        max(one["bytes_available"] + one["bytes_allocated"] for one in found) - peak_in_use(events),
    )


def compiles(events: list[Event]) -> int:
    return sum(one.name == "backend_compile" for one in events)
