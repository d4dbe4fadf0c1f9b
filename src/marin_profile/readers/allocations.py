"""What allocators held after each allocation and deallocation that a host's lines tell of.

Contract: an event without all of BYTES tells nothing. Of a line with more such events than
MOST_READ the last are read: they tell what an allocator holds at the end, and its peak.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from marin_profile.events.timeline import AllocatorState, Int64s
from marin_profile.readers.hlo import Buffer, Span, fields
from marin_profile.readers.op_stats import Stat
from marin_profile.readers.wire import event_spans
from marin_profile.readers.xplane_planes import RawLine, RawPlane, decode_stat, first_text

EVENTS = ("MemoryAllocation", "MemoryDeallocation")
BYTES = ("bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use")
MOST_READ = 1 << 14
LARGEST = 1 << 60
# Fields of XEvent, and the tag of an event's metadata id.
OFFSET, STAT = 2, 4
METADATA_TAG, LONGEST_ID = 0x08, 5


def allocation_ids(buffer: Buffer, plane: RawPlane) -> frozenset[int]:
    """The event metadata of allocations and deallocations."""
    if not plane.is_host or BYTES[1] not in plane.stat_names.values():
        return frozenset()
    return frozenset(
        key for key, span in plane.metadata.items() if first_text(buffer, span, 2) in EVENTS
    )


def read_allocations(
    buffer: Buffer, plane: RawPlane, line: RawLine, ids: frozenset[int], shift_ps: int
) -> list[AllocatorState]:
    """In the order of the line's events. `shift_ps` is added to every offset."""
    spans = np.empty((line.count, 2), np.int64)
    event_spans(buffer, *line.span, spans)
    spans = spans[np.isin(_metadata_ids(buffer, spans[:, 0]), [*ids])][-MOST_READ:]
    states = (_state(buffer, plane, (at, end), shift_ps) for at, end in spans.tolist())
    return [state for state in states if state is not None]


def _metadata_ids(buffer: Buffer, at: Int64s) -> Int64s:
    """The first field of each event, as all writers put it; 0 where it is another."""
    last = len(buffer) - 1
    more = buffer[np.minimum(at, last)] == METADATA_TAG
    ids = np.zeros(len(at), np.int64)
    for byte in range(LONGEST_ID):
        content = np.where(more, buffer[np.minimum(at + 1 + byte, last)], 0).astype(np.int64)
        ids |= (content & 127) << (7 * byte)
        more &= content > 127
    return ids


def _state(buffer: Buffer, plane: RawPlane, event: Span, shift_ps: int) -> AllocatorState | None:
    offset = 0
    stats: dict[str, Stat] = {}
    for number, value, inner in fields(buffer, event):
        if number == OFFSET:
            offset = value
        elif number == STAT:
            name, stat = decode_stat(buffer, inner, plane.stat_names)
            stats[name] = stat
    sizes = [_size(stats, name) for name in BYTES]
    if None in sizes:
        return None
    reserved, allocated, available, peak = (size or 0 for size in sizes)
    return AllocatorState(
        start=offset + shift_ps,
        name=str(stats.get("allocator_name", "")),
        ordinal=_size(stats, "index_on_host"),
        in_use=reserved + allocated,
        capacity=reserved + allocated + available,
        peak=peak,
    )


def _size(stats: Mapping[str, Stat], name: str) -> int | None:
    value = stats.get(name)
    return value if isinstance(value, int) and 0 <= value < LARGEST else None
