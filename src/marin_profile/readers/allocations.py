"""What allocators held, as the allocations and deallocations of a host's lines tell.

Contract: one state for each line and allocator. An event without all of BYTES tells nothing. Of a
line with more such events than MOST_READ the last are read: they tell what an allocator holds at
the end, and its peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import unique_pairs
from marin_profile.events.timeline import AllocatorState, Int64s
from marin_profile.readers.hlo import Buffer
from marin_profile.readers.protobuf import WIRE_VARINT
from marin_profile.readers.wire import event_spans
from marin_profile.readers.wire_columns import Fields, fields_of
from marin_profile.readers.xplane_planes import (
    DOUBLE_BYTES,
    RawLine,
    RawPlane,
    decode_stat,
    first_text,
)

EVENTS = ("MemoryAllocation", "MemoryDeallocation")
BYTES = ("bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use")
MOST_READ = 1 << 14
LARGEST = 1 << 60
# Fields of XEvent and XStat, and the tag of an event's metadata id.
OFFSET, STAT = 2, 4
STAT_ID, DOUBLE, INTEGERS, OTHERS = 1, 2, (3, 4), (5, 6, 7)
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
    """In the order in which the line tells of them. `shift_ps` is added to every offset."""
    spans = event_spans(buffer, *line.span, line.count)
    spans = spans[np.isin(_metadata_ids(buffer, spans[:, 0]), [*ids])][-MOST_READ:]
    events = fields_of(buffer, spans[:, 0], spans[:, 1])
    start = _last_numbers(events, events.number == OFFSET, len(spans), 0) + shift_ps
    stats = _Stats(buffer, plane, events, len(spans))
    reserved, allocated, available, peak = (stats.sizes(name) for name in BYTES)
    told = np.flatnonzero(np.minimum.reduce((reserved, allocated, available, peak)) >= 0)
    names, name = stats.texts("allocator_name")
    ordinal = stats.sizes("index_on_host")
    in_use, capacity = reserved + allocated, reserved + allocated + available
    name_of, ordinal_of, group = unique_pairs(name[told], ordinal[told])
    states = []
    for place in dict.fromkeys(group.tolist()):
        own = told[group == place]
        last = own[np.argmax(start[own])]
        number = int(ordinal_of[place])
        states.append(
            AllocatorState(
                start=int(start[last]),
                name=names[name_of[place]],
                ordinal=number if number >= 0 else None,
                in_use=int(in_use[last]),
                most_in_use=int(in_use[own].max()),
                capacity=int(capacity[last]),
                peak=int(peak[own].max()),
            )
        )
    return states


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


def _last_numbers(fields: Fields, chosen: NDArray[np.bool_], size: int, absent: int) -> Int64s:
    """By message the number in the last chosen field, 0 if it is no varint."""
    column = np.full(size, absent, np.int64)
    number = np.where(fields.wire[chosen] == WIRE_VARINT, fields.value[chosen], 0)
    column[fields.message[chosen]] = number
    return column


class _Stats:
    """The stats of some events; see `decode_stat`."""

    def __init__(self, buffer: Buffer, plane: RawPlane, events: Fields, count: int) -> None:
        self._buffer, self._names, self._count = buffer, plane.stat_names, count
        chosen = events.number == STAT
        # A stat that is no message is an empty one.
        self._at = np.where(events.wire[chosen] == WIRE_VARINT, 0, events.value[chosen])
        self._end = self._at + events.length[chosen]
        self._event = events.message[chosen]
        fields = fields_of(buffer, self._at, self._end)
        self._id = _last_numbers(fields, fields.number == STAT_ID, len(self._at), 0)
        is_integer = np.isin(fields.number, INTEGERS)
        is_double = (fields.number == DOUBLE) & (fields.length == DOUBLE_BYTES)
        told = is_integer | is_double | np.isin(fields.number, OTHERS)
        size = np.where(fields.wire == WIRE_VARINT, fields.value, 0)
        is_size = is_integer & (size >= 0) & (size < LARGEST)
        self._size = np.zeros(len(self._at), np.int64)
        self._size[fields.message[told]] = np.where(is_size, size, -1)[told]

    def sizes(self, name: str) -> Int64s:
        """By event, -1 where the stat is not there, or no number that a size can be."""
        place = self._last(name)
        return np.where(place >= 0, self._size[place], -1) if len(self._size) else place

    def texts(self, name: str) -> tuple[list[str], Int64s]:
        """The distinct texts, and by event which one it has; "" where the stat is not there."""
        known = {"": 0}
        by_content: dict[bytes, int] = {}
        index = np.zeros(self._count, np.int64)
        place = self._last(name)
        for event in np.flatnonzero(place >= 0).tolist():
            span = (int(self._at[place[event]]), int(self._end[place[event]]))
            content = self._buffer[slice(*span)].tobytes()
            if content not in by_content:
                _, value = decode_stat(self._buffer, span, self._names)
                by_content[content] = known.setdefault(str(value), len(known))
            index[event] = by_content[content]
        return [*known], index

    def _last(self, name: str) -> Int64s:
        """By event the last stat of this name, -1 where there is none."""
        ids = [key for key, known in self._names.items() if known == name]
        own = np.flatnonzero(np.isin(self._id, ids))
        place = np.full(self._count, -1, np.int64)
        place[self._event[own]] = own
        return place
