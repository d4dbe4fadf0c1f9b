"""What allocators held, as the allocations and deallocations of a host's lines tell.

Contract: one state for each line and allocator. An event without all of BYTES tells nothing. The
line is scanned a second time, for the events that may tell something.
"""

from __future__ import annotations

import numpy as np

from marin_profile.base.columns import unique_pairs
from marin_profile.events.timeline import AllocatorState, Int64s
from marin_profile.readers.hlo import Buffer, Span, fields
from marin_profile.readers.protobuf import BROKEN
from marin_profile.readers.wire import scan_line_events
from marin_profile.readers.wire_columns import MISSING
from marin_profile.readers.xplane_planes import RawLine, RawPlane, decode_stat, first_text

EVENTS = ("MemoryAllocation", "MemoryDeallocation")
BYTES = ("bytes_reserved", "bytes_allocated", "bytes_available", "peak_bytes_in_use")
ORDINAL, NAME = "index_on_host", "allocator_name"
LARGEST = 1 << 60
STAT = 4  # of XEvent


def allocation_ids(buffer: Buffer, plane: RawPlane) -> frozenset[int]:
    """The event metadata of allocations and deallocations."""
    if not plane.is_host or BYTES[1] not in plane.stat_names.values():
        return frozenset()
    return frozenset(
        key for key, span in plane.metadata.items() if first_text(buffer, span, 2) in EVENTS
    )


def read_allocations(
    buffer: Buffer,
    plane: RawPlane,
    line: RawLine,
    broke_at: int,
    ids: frozenset[int],
    shift_ps: int,
) -> list[AllocatorState]:
    """In the order in which the line tells of them, up to where it is damaged. `shift_ps` is added
    to every offset."""
    start, op = np.empty(line.count, np.int64), np.empty(line.count, np.int32)
    stat_ids = [plane.stat_id(name) for name in (*BYTES, ORDINAL)]
    known = [slot for slot, key in enumerate(stat_ids) if key != MISSING]
    name_id = plane.stat_id(NAME)
    scanned = scan_line_events(
        buffer,
        line.span[0],
        line.span[1] if broke_at == BROKEN else broke_at,
        shift_ps,
        np.array([stat_ids[slot] for slot in known], np.int64),
        np.array([] if name_id == MISSING else [name_id], np.int64),
        np.zeros(0, np.int64),
        start,
        np.empty(line.count, np.int64),
        op,
        np.array(sorted(ids), np.int64),
    )
    written, metadata, spans = scanned.written, scanned.metadata, scanned.spans
    sizes = np.full((len(stat_ids), written), -1, np.int64)
    for slot, (rows, values) in zip(known, scanned.numbers, strict=True):
        sizes[slot, rows] = np.where(values >= LARGEST, -1, values)
    reserved, allocated, available, peak, ordinal = sizes
    told = np.isin(metadata, [*ids])[op[:written]] & (sizes[: len(BYTES)] >= 0).all(axis=0)
    rows = np.flatnonzero(told)
    names, name = _distinct([_name(buffer, plane, (at, end)) for at, end in spans.tolist()])
    in_use, capacity = reserved + allocated, reserved + allocated + available
    name_of, ordinal_of, group = unique_pairs(name[op[rows]], np.maximum(ordinal[rows], -1))
    states = []
    for place in dict.fromkeys(group.tolist()):
        own = rows[group == place]
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


def _distinct(names: list[str]) -> tuple[list[str], Int64s]:
    place = {name: at for at, name in enumerate(sorted(set(names)))}
    return [*place], np.array([place[name] for name in names], np.int64)


def _name(buffer: Buffer, plane: RawPlane, event: Span) -> str:
    """Of the last stat that says it, "" if none does."""
    name = ""
    for number, _, inner in fields(buffer, event):
        if number == STAT:
            key, value = decode_stat(buffer, inner, plane.stat_names)
            name = str(value) if key == NAME else name
    return name
