"""The protobuf wire format over whole files, and the XPlane hot loops, over a byte array.

Contract
* `buffer` is a uint8 array; a message is the half-open span [at, end) of it.
* Nothing reads outside [at, end): damage makes a function return `BROKEN` (or a negative count),
  never a crash. Field numbers are those of tsl's xplane.proto.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s
from marin_profile.base.hashing import mix64
from marin_profile.base.jit import is_compiled, jit_inline, jit_no_alloc
from marin_profile.readers.protobuf import (
    BROKEN,
    WIRE_BYTES,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_VARINT,
    FieldRow,
    next_field,
    signed_varint,
    walk_message,
)
from marin_profile.readers.wire_columns import (
    LONGEST_PS,
    MISSING,
    LineEvents,
    Told,
    scan_events,
    varints,
)

Buffer = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)

# Columns of a `walk` row: number, wire type, value (varint or content offset), content length.
FIELD, WIRE, VALUE, LENGTH = 0, 1, 2, 3


def walk(buffer: Buffer, at: int, end: int) -> tuple[list[FieldRow], int]:
    """The fields of a message as rows [FIELD, WIRE, VALUE, LENGTH]; where it broke or BROKEN."""
    return walk_message(buffer.data, at, end)


def packed_varints(buffer: Buffer, at: int, end: int) -> list[int]:
    """The varints of a packed field, signed, up to its end or to damage."""
    content = buffer[at:end].tobytes()
    if content.isascii():
        return [*content]
    ends = at + 1 + np.flatnonzero(buffer[at:end] < 128)
    values, behind = varints(buffer, np.append(at, ends[:-1])[: len(ends)], ends)
    broken = np.flatnonzero(behind == BROKEN)
    whole: list[int] = values[: broken[0] if len(broken) else None].tolist()
    return whole


@jit_no_alloc(portable=signed_varint, views=True)
def varint(buffer, at, end):
    """The unsigned varint at `at` as int64 bits, and the offset behind it (BROKEN on damage)."""
    if at < end and buffer[at] < 128:
        return np.int64(buffer[at]), at + 1
    result = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(70):
        byte = buffer[at]
        at += 1
        if shift < np.uint64(64):
            result |= np.uint64(byte & np.uint8(127)) << shift
        if byte < 128:
            return np.int64(result), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(BROKEN)


@jit_inline(portable=next_field, views=True)
def field(buffer, at, end):
    """The field at `at`: (number, wire type, value or content offset, content length, next)."""
    tag, at = varint(buffer, at, end)
    if at < 0:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    number = tag >> 3
    wire = tag & 7
    if number <= 0:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    if wire == WIRE_VARINT:
        value, at = varint(buffer, at, end)
        return number, wire, value, np.int64(0), np.int64(at)
    length = np.int64(0)
    if wire == WIRE_BYTES:
        length, at = varint(buffer, at, end)
    elif wire == WIRE_FIXED64:
        length = np.int64(8)
    elif wire == WIRE_FIXED32:
        length = np.int64(4)
    else:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    if at < 0 or length < 0 or length > end - at:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    return number, wire, np.int64(at), length, np.int64(at + length)


@jit_no_alloc(views=True)
def line_header(buffer, at, end):
    """What an XLine says besides its events, without keeping them.

    Returns (id, timestamp_ns, name span, display name span, event count, damage offset or BROKEN,
    how many fields no XLine has).
    """
    line_id = np.int64(0)
    timestamp_ns = np.int64(0)
    name = (np.int64(0), np.int64(0))
    display = (np.int64(0), np.int64(0))
    count = 0
    odd = 0
    broke_at = np.int64(BROKEN)
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            broke_at = np.int64(at)
            break
        if number == 4 and wire == WIRE_BYTES:
            count += 1
        elif number == 1 and wire == WIRE_VARINT:
            line_id = value
        elif number == 3 and wire == WIRE_VARINT:
            timestamp_ns = value
        elif number == 2 and wire == WIRE_BYTES:
            name = (value, np.int64(value + length))
        elif number == 11 and wire == WIRE_BYTES:
            display = (value, np.int64(value + length))
        elif wire != WIRE_VARINT or (number != 9 and number != 10):
            odd += 1
        at = behind
    return line_id, timestamp_ns, name, display, count, broke_at, odd


@jit_no_alloc
def hash_bytes(buffer, at, end):
    """FNV-1a, 64 bit."""
    result = np.uint64(0xCBF29CE484222325)
    for i in range(at, end):
        result = (result ^ np.uint64(buffer[i])) * np.uint64(0x100000001B3)
    return result


@jit_no_alloc
def find_slot(table, keys, first, second, third):
    """The place of a key in an open-addressing table (-1 entries are free)."""
    mask = np.uint64(len(table) - 1)
    at = mix64(np.uint64(first) ^ mix64(second + np.uint64(0x9E3779B97F4A7C15)) ^ third) & mask
    while True:
        index = table[at]
        if index < 0:
            return at
        if (
            keys[index, 0] == np.uint64(first)
            and keys[index, 1] == second
            and keys[index, 2] == third
        ):
            return at
        at = (at + np.uint64(1)) & mask


# Counters of a scan, see `_scan`.
ROW, AGGREGATED, NEGATIVE, FAR, LONG, OPS, TOLD, BROKE_AT, FULL = range(9)
_ALL = np.zeros(0, np.int64)


def scan_line_events(
    buffer: Buffer,
    at: int,
    end: int,
    shift_ps: int,
    number_ids: Int64s,
    key_ids: Int64s,
    anchor_ids: Int64s,
    start: Int64s,
    duration: Int64s,
    op: NDArray[np.int32],
    only: Int64s = _ALL,
) -> LineEvents:
    """Read the events of one XLine.

    shift_ps: added to every offset. number_ids: stat metadata ids of EVENT_NUMBERS (MISSING where
    the plane has none). key_ids: stat ids that tell ops apart; they count only where the event
    carries one of anchor_ids too, or anchor_ids is empty. Fills start, duration (ps) and op (index
    of the distinct (metadata id, key stats)). only: where given, events with other metadata ids
    may be left out.
    """
    if not is_compiled():
        return scan_events(
            buffer, at, end, shift_ps, number_ids, key_ids, anchor_ids, start, duration, op
        )
    capacity = 64
    table = np.full(4 * capacity, -1, np.int64)
    keys = np.zeros((capacity, 3), np.uint64)
    spans = np.zeros((capacity, 2), np.int64)
    slots = len(number_ids)
    room = slots + 2 * len(op)
    told_slot = np.empty(room, np.int8)
    told_row, told_value = np.empty(room, np.int64), np.empty(room, np.int64)
    counts = np.zeros(9, np.int64)
    counts[BROKE_AT] = BROKEN
    roles = _stat_roles(number_ids, key_ids, anchor_ids)
    while True:
        at = _scan(
            buffer, at, end, shift_ps, roles, slots, len(anchor_ids) == 0, only,
            start, duration, op, told_slot, told_row, told_value, table, keys, spans, counts,
        )  # fmt: skip
        if not counts[FULL]:
            break
        counts[FULL] = 0
        if counts[TOLD] + slots > len(told_slot):
            told_slot = _doubled(told_slot)
            told_row, told_value = _doubled(told_row), _doubled(told_value)
            continue
        capacity *= 2
        keys, spans = _doubled(keys), _doubled(spans)
        table = np.full(4 * capacity, -1, np.int64)
        _fill(table, keys, counts[OPS])
    found, told = counts[OPS], counts[TOLD]
    return LineEvents(
        written=int(counts[ROW]),
        left_out={
            "aggregated_event": int(counts[AGGREGATED]),
            "negative_duration": int(counts[NEGATIVE]),
            "bad_timestamp": int(counts[FAR]),
            "bad_duration": int(counts[LONG]),
        },
        numbers=_by_slot(slots, told_slot[:told], told_row[:told], told_value[:told]),
        metadata=keys[:found, 0].astype(np.int64),
        spans=spans[:found],
        broke_at=int(counts[BROKE_AT]),
    )


def _doubled(column: NDArray[T]) -> NDArray[T]:
    return np.concatenate((column, np.empty_like(column)))


def _by_slot(count: int, slot: NDArray[np.int8], row: Int64s, value: Int64s) -> list[Told]:
    numbers = []
    for one in range(count):
        own = np.flatnonzero((slot == one) & (value != MISSING))
        numbers.append((row[own], value[own]))
    return numbers


# Columns of the table of stats: their id, their slot among the numbers (or -1), a key, an anchor.
_STAT, _SLOT, _IS_KEY, _IS_ANCHOR = range(4)
_NO_STAT = np.iinfo(np.int64).max


def _stat_roles(number_ids, key_ids, anchor_ids):
    """What the stats that matter are for, as an open-addressing table by stat id."""
    roles: dict[int, list[int]] = {}
    for slot, stat in enumerate(number_ids.tolist()):
        roles.setdefault(stat, [-1, 0, 0])[0] = slot
    for stat in key_ids.tolist():
        roles.setdefault(stat, [-1, 0, 0])[1] = 1
    for stat in anchor_ids.tolist():
        roles.setdefault(stat, [-1, 0, 0])[2] = 1
    size = 1 << (4 * len(roles)).bit_length()
    table = np.full((size, 4), [_NO_STAT, -1, 0, 0], np.int64)
    for stat, role in roles.items():
        at = stat & (size - 1)
        while table[at, _STAT] != _NO_STAT:
            at = (at + 1) & (size - 1)
        table[at] = [stat, *role]
    return table


@jit_no_alloc
def _fill(table, keys, count):
    for i in range(count):
        table[find_slot(table, keys, np.int64(keys[i, 0]), keys[i, 1], keys[i, 2])] = i


@jit_no_alloc
def _is_of_another(buffer, at, end, wanted):
    """Whether an event says first that it has metadata other than `wanted`."""
    number, wire, value, _, behind = field(buffer, at, end)
    if behind < 0 or number != 1 or wire != WIRE_VARINT:
        return False
    for one in wanted:  # noqa: SIM110
        if value == one:
            return False
    return True


@jit_no_alloc
def _scan(
    buffer, at, end, shift_ps, roles, slots, all_anchored, only,
    start, duration, op, told_slot, told_row, told_value, table, keys, spans, counts,
):  # fmt: skip
    """`scan_line_events` until the end, damage, or an event without room (FULL); returns where.
    The numbers are told one by one: whose slot, row and value."""
    mask = len(roles) - 1
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            counts[BROKE_AT] = at
            return at
        if number != 4 or wire != WIRE_BYTES:
            at = behind
            continue
        inner = value
        stop = value + length
        if len(only) and _is_of_another(buffer, inner, stop, only):
            at = behind
            continue
        row = counts[ROW]
        first_told = told = counts[TOLD]
        if told + slots > len(told_slot):
            counts[FULL] = 1
            return at
        metadata = np.int64(0)
        offset = np.int64(0)
        length_ps = np.int64(0)
        occurrences = False
        anchored = all_anchored
        first = np.uint64(0)
        second = np.uint64(0)
        while inner < stop:
            tag, kind, content, size, inner_next = field(buffer, inner, stop)
            if inner_next < 0:
                counts[BROKE_AT] = inner
                return at
            if kind == WIRE_VARINT:
                if tag == 1:
                    metadata = content
                elif tag == 2:
                    offset = content
                elif tag == 3:
                    length_ps = content
                elif tag == 5:
                    occurrences = True
            elif tag == 4 and kind == WIRE_BYTES:
                stat = np.int64(0)
                stat_value = MISSING
                stat_hash = np.uint64(0)
                position = content
                stat_end = content + size
                while position < stat_end:
                    s_tag, s_kind, s_value, s_size, position = field(buffer, position, stat_end)
                    if position < 0:
                        counts[BROKE_AT] = content
                        return at
                    if s_kind == WIRE_VARINT:
                        if s_tag == 1:
                            stat = s_value
                        else:
                            stat_value = s_value if s_tag == 3 or s_tag == 4 else MISSING
                            stat_hash = np.uint64(s_value) + np.uint64(s_tag)
                    else:
                        stat_hash = hash_bytes(buffer, s_value, s_value + s_size)
                place = stat & mask
                while roles[place, 0] != stat and roles[place, 0] != _NO_STAT:
                    place = (place + 1) & mask
                if roles[place, 0] == stat:
                    slot = roles[place, 1]
                    if slot >= 0:
                        # The last stat of an id counts.
                        entry = first_told
                        while entry < told and told_slot[entry] != slot:
                            entry += 1
                        told_slot[entry] = slot
                        told_row[entry] = row
                        told_value[entry] = stat_value
                        told = max(told, entry + 1)
                    if roles[place, 3]:
                        anchored = True
                    if roles[place, 2]:
                        salted = mix64(stat_hash + np.uint64(stat) * np.uint64(0x9E3779B97F4A7C15))
                        first += salted
                        second += mix64(salted ^ np.uint64(0xD1B54A32D192ED03))
            inner = inner_next
        begin = offset + shift_ps
        reason = ROW
        if occurrences:
            reason = AGGREGATED
        elif length_ps < 0:
            reason = NEGATIVE
        elif begin < -LONGEST_PS or begin > LONGEST_PS:
            reason = FAR
        elif length_ps > LONGEST_PS:
            reason = LONG
        if reason != ROW:
            counts[reason] += 1
        else:
            if not anchored:
                first = np.uint64(0)
                second = np.uint64(0)
            place = find_slot(table, keys, metadata, first, second)
            index = table[place]
            if index < 0:
                index = counts[OPS]
                if index == len(keys):
                    counts[FULL] = 1
                    return at
                keys[index, 0] = np.uint64(metadata)
                keys[index, 1] = first
                keys[index, 2] = second
                spans[index, 0] = value
                spans[index, 1] = stop
                table[place] = index
                counts[OPS] += 1
            start[row] = begin
            duration[row] = length_ps
            op[row] = index
            counts[ROW] += 1
            counts[TOLD] = told
        at = behind
    return at
