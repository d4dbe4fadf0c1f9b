"""The buffer assignment of an HLO proto -> BufferPlan.

Contract: `read_buffer_plan(buffer, at, end)` gives the plan of one serialized HloProto, None if it
holds none. Field numbers are those of xla's hlo.proto. Damage gives what could be read, with
`is_whole` False. Time and memory are linear in the proto's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s
from marin_profile.events.buffers import (
    DEEPEST_INDEX,
    FREE,
    NOTHING,
    Allocations,
    BufferPlan,
    Buffers,
    HeapEvents,
)
from marin_profile.readers.protobuf import BROKEN, WIRE_BYTES, WIRE_VARINT
from marin_profile.readers.wire import packed_varints
from marin_profile.readers.wire_columns import Fields, fields_of

Buffer = NDArray[np.uint8]
# All sizes together: their sums fit int64.
LARGEST_PLAN = 2.0**62
# Messages that are read together: their columns take some megabytes.
_AT_ONCE = 1 << 14


def read_buffer_plan(buffer: Buffer, at: int, end: int) -> BufferPlan | None:
    read = _Messages(buffer)
    proto = np.array([[at, end]], np.int64)
    _, assignment = read.repeated(proto, 3)
    if not len(assignment):
        return None
    _, logical = read.repeated(assignment, 1)
    _, allocated = read.repeated(assignment, 3)
    _, traces = read.repeated(assignment, 4)
    holder, assigned = read.repeated(allocated, 9)
    trace, events = read.repeated(traces, 1)

    buffer_id, size, color = read.numbers(logical, 1, 2, 4)
    definition = read.messages(logical, 3)
    (instruction_id,) = read.numbers(definition, 4)
    index, too_deep = read.indices(definition)
    rows = _Rows(buffer_id)

    facts = read.numbers(allocated, 2, 8, 3, 5, 7, 12)
    (held,) = read.numbers(assigned, 1)
    kind, event_buffer, shares = read.numbers(events, 1, 2, 5)
    event_names = read.messages(events, 4)
    event_names[kind == FREE] = 0
    sizes = float(size.astype(float).sum()) + float(facts[0].astype(float).sum())
    if min(size.min(initial=0), facts[0].min(initial=0)) < 0 or sizes > LARGEST_PLAN:
        return None

    _, computations = read.repeated(read.repeated(proto, 1)[1], 3)
    _, instructions = read.repeated(computations, 2)
    (ids,) = read.numbers(instructions, 35)
    defining = _Rows(ids).of(instruction_id)
    defining[definition[:, 1] == 0] = NOTHING
    defined_names = np.zeros((len(logical), 2), np.int64)
    is_known = defining != NOTHING
    defined_names[is_known] = read.messages(instructions, 1)[defining[is_known]]
    names, place = read.texts(np.concatenate([defined_names, event_names]))

    return BufferPlan(
        buffers=Buffers(size, color, place[: len(logical)], index, too_deep),
        allocations=Allocations(
            size=facts[0],
            space=facts[1],
            is_thread_local=facts[2] != 0,
            is_parameter=facts[3] != 0,
            is_output=facts[4] != 0,
            is_constant=facts[5] != 0,
            holder=holder,
            held=rows.of(held),
        ),
        events=HeapEvents(
            first=np.searchsorted(trace, np.arange(len(traces) + 1)).astype(np.int64),
            kind=kind,
            buffer=rows.of(event_buffer),
            shares=rows.of(shares),
            instruction=place[len(logical) :],
        ),
        names=names,
        is_whole=not read.broken,
    )


class _Rows:
    """The row of each id; the first one's where an id repeats."""

    def __init__(self, ids: Int64s) -> None:
        self.order = np.argsort(ids, kind="stable")
        self.ids = ids[self.order]

    def of(self, wanted: Int64s) -> Int64s:
        if not len(self.ids):
            return np.full(len(wanted), NOTHING, np.int64)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, self.order[at], NOTHING)


class _Messages:
    """Fields of many messages at once; a message is a row (at, end) of `spans`, (0, 0) if it is not
    there. broken: how many could not be read to their end."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.broken = 0

    def repeated(self, spans: Int64s, tag: int) -> tuple[Int64s, Int64s]:
        """Every message with this tag: the row of `spans` that holds it, and its span."""
        rows, broken = _repeated(self.buffer, spans, tag)
        self.broken += broken
        return rows[:, 0].copy(), rows[:, 1:].copy()

    def numbers(self, spans: Int64s, *tags: int) -> list[Int64s]:
        """The varint of each tag, a column each; 0 where there is none."""
        found, broken = _table(self.buffer, spans, np.array(tags, np.int64), False)
        self.broken += broken
        return [found[:, column, 0].copy() for column in range(len(tags))]

    def messages(self, spans: Int64s, tag: int) -> Int64s:
        """The message or text with this tag, as spans."""
        found, broken = _table(self.buffer, spans, np.array([tag], np.int64), True)
        self.broken += broken
        return found[:, 0].copy()

    def indices(self, definitions: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Shape indices (3), and which of them are deeper than DEEPEST_INDEX."""
        index, length = _indices(self.buffer, definitions, DEEPEST_INDEX)
        return index, length > DEEPEST_INDEX

    def texts(self, spans: Int64s) -> tuple[tuple[str, ...], Int64s]:
        """The distinct texts, and for each span which one it is; NOTHING for empty ones."""
        place = np.full(len(spans), NOTHING, np.int64)
        filled = np.flatnonzero(spans[:, 1] > spans[:, 0])
        view = self.buffer.data
        places: dict[bytes, int] = {}
        place[filled] = [
            places.setdefault(bytes(view[at:end]), len(places))
            for at, end in spans[filled].tolist()
        ]
        return tuple(name.decode("utf-8", "replace") for name in places), place


def _repeated(buffer: Buffer, spans: Int64s, tag: int) -> tuple[Int64s, int]:
    """(row of `spans`, at, end) of every message with this tag, and how many `spans` broke."""
    parts = [np.zeros((0, 3), np.int64)]
    broken = 0
    for first, found in _fields_of(buffer, spans):
        chosen = np.flatnonzero((found.number == tag) & (found.wire == WIRE_BYTES))
        owner, at = found.message[chosen], found.value[chosen]
        rows = np.stack((first + owner, at, at + found.length[chosen]), axis=1)
        parts.append(rows[np.lexsort((at, owner))])
        broken += int(np.count_nonzero(found.broke_at != BROKEN))
    return np.concatenate(parts), broken


def _table(buffer: Buffer, spans: Int64s, tags: Int64s, messages: bool) -> tuple[Int64s, int]:
    """For each span and tag the last varint (value, 0), or with `messages` the last content (at,
    end); and how many `spans` broke."""
    table = np.zeros((len(spans), len(tags), 2), np.int64)
    broken = 0
    for first, found in _fields_of(buffer, spans):
        of_kind = found.wire == (WIRE_BYTES if messages else WIRE_VARINT)
        for column, tag in enumerate(tags.tolist()):
            chosen = np.flatnonzero(of_kind & (found.number == tag))
            rows, value = first + found.message[chosen], found.value[chosen]
            table[rows, column, 0] = value
            table[rows, column, 1] = value + found.length[chosen] if messages else 0
        broken += int(np.count_nonzero(found.broke_at != BROKEN))
    return table, broken


def _indices(buffer: Buffer, spans: Int64s, deepest: int) -> tuple[Int64s, Int64s]:
    """The repeated field 3, packed or not: its first values, and how many there are."""
    index = np.full((len(spans), deepest), -1, np.int64)
    lengths = np.zeros(len(spans), np.int64)
    for first, found in _fields_of(buffer, spans):
        chosen = np.flatnonzero(found.number == 3)
        values: dict[int, list[int]] = {}
        for owner, wire, value, length in zip(
            *(
                column[chosen].tolist()
                for column in (found.message, found.wire, found.value, found.length)
            ),
            strict=True,
        ):
            own = values.setdefault(owner, [])
            if wire == WIRE_VARINT:
                own.append(value)
            elif wire == WIRE_BYTES:
                own += packed_varints(buffer, value, value + length)
        for owner, own in values.items():
            index[first + owner, : len(own)] = own[:deepest]
            lengths[first + owner] = len(own)
    return index, lengths


def _fields_of(buffer: Buffer, spans: Int64s) -> Iterator[tuple[int, Fields]]:
    """The fields of some of the messages at once: the first of these, and their fields."""
    for first in range(0, len(spans), _AT_ONCE):
        some = spans[first : first + _AT_ONCE]
        yield first, fields_of(buffer, some[:, 0], some[:, 1])
