"""The protobuf wire format and the XPlane hot loops, as numba functions over a byte array.

Contract
* `buffer` is a uint8 array; a message is the half-open span [at, end) of it.
* Nothing reads outside [at, end): damage makes a function return `BROKEN` (or a negative count),
  never a crash. Field numbers are those of tsl's xplane.proto.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BROKEN = -1
MISSING = np.int64(np.iinfo(np.int64).min)

WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 0, 1, 2, 5

# Columns of a `walk` row: number, wire type, value (varint or content offset), content length.
FIELD, WIRE, VALUE, LENGTH = 0, 1, 2, 3

# Slots of the per-event numbers, in the order of `scan_events`' columns.
EVENT_NUMBERS = (
    "device_offset_ps",
    "device_duration_ps",
    "run_id",
    "correlation_id",
    "step_num",
    "device_ordinal",
)


@njit(cache=True, nogil=True)
def varint(buffer, at, end):
    """The unsigned varint at `at` as int64 bits, and the offset behind it (BROKEN on damage)."""
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


@njit(cache=True, nogil=True)
def field(buffer, at, end):
    """The field at `at`: (number, wire type, value or content offset, content length, next)."""
    tag, at = varint(buffer, at, end)
    if at < 0:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    number = tag >> 3
    wire = tag & 7
    if number <= 0:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    if wire == 0:
        value, at = varint(buffer, at, end)
        return number, wire, value, np.int64(0), np.int64(at)
    length = np.int64(0)
    if wire == 2:
        length, at = varint(buffer, at, end)
    elif wire == 1:
        length = np.int64(8)
    elif wire == 5:
        length = np.int64(4)
    else:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    if at < 0 or length < 0 or length > end - at:
        return 0, 0, np.int64(0), np.int64(0), np.int64(BROKEN)
    return number, wire, np.int64(at), length, np.int64(at + length)


@njit(cache=True, nogil=True)
def line_header(buffer, at, end):
    """What an XLine says besides its events, without keeping them.

    Returns (id, timestamp_ns, name span, display name span, event count, damage offset or BROKEN).
    """
    line_id = np.int64(0)
    timestamp_ns = np.int64(0)
    name = (np.int64(0), np.int64(0))
    display = (np.int64(0), np.int64(0))
    count = 0
    broke_at = np.int64(BROKEN)
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            broke_at = np.int64(at)
            break
        if number == 4 and wire == 2:
            count += 1
        elif number == 1 and wire == 0:
            line_id = value
        elif number == 3 and wire == 0:
            timestamp_ns = value
        elif number == 2 and wire == 2:
            name = (value, np.int64(value + length))
        elif number == 11 and wire == 2:
            display = (value, np.int64(value + length))
        at = behind
    return line_id, timestamp_ns, name, display, count, broke_at


@njit(cache=True, nogil=True)
def walk(buffer, at, end):
    """The fields of a message as rows [FIELD, WIRE, VALUE, LENGTH]; where it broke or BROKEN."""
    rows = np.empty((16, 4), np.int64)
    count = 0
    broke_at = np.int64(BROKEN)
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            broke_at = np.int64(at)
            break
        if count == len(rows):
            larger = np.empty((2 * count, 4), np.int64)
            larger[:count] = rows
            rows = larger
        rows[count, 0] = number
        rows[count, 1] = wire
        rows[count, 2] = value
        rows[count, 3] = length
        count += 1
        at = behind
    return rows[:count].copy(), broke_at


@njit(cache=True, nogil=True)
def mix(value):
    """splitmix64's finaliser: spreads 64 bits over 64 bits."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True)
def hash_bytes(buffer, at, end):
    """FNV-1a, 64 bit."""
    result = np.uint64(0xCBF29CE484222325)
    for i in range(at, end):
        result = (result ^ np.uint64(buffer[i])) * np.uint64(0x100000001B3)
    return result


@njit(cache=True, nogil=True)
def find_slot(table, keys, first, second, third):
    """The place of a key in an open-addressing table (-1 entries are free)."""
    mask = np.uint64(len(table) - 1)
    at = mix(np.uint64(first) ^ mix(second + np.uint64(0x9E3779B97F4A7C15)) ^ third) & mask
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


@njit(cache=True, nogil=True)
def scan_events(
    buffer, at, end, shift_ps, number_ids, key_ids, anchor_ids, start, duration, op, numbers
):
    """Read the events of one XLine.

    shift_ps: added to every offset. number_ids: stat metadata ids of EVENT_NUMBERS (MISSING where
    the plane has none). key_ids: stat ids that tell ops apart; they count only where the event
    carries one of anchor_ids too, or anchor_ids is empty. Fills start, duration (ps), op (index of
    the distinct (metadata id, key stats)) and numbers[slot] (MISSING where absent).

    Returns (events written, events left out as aggregated, left out as negative, metadata id per
    distinct op, message offset and end of the first event of each distinct op, offset of damage or
    BROKEN).
    """
    capacity = 64
    table = np.full(256, -1, np.int64)
    keys = np.zeros((capacity, 3), np.uint64)
    spans = np.zeros((capacity, 2), np.int64)
    found = 0
    row = 0
    aggregated = 0
    negative = 0
    broke_at = np.int64(BROKEN)
    slots = len(number_ids)
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            broke_at = np.int64(at)
            break
        if number != 4 or wire != 2:
            at = behind
            continue
        inner = value
        stop = value + length
        metadata = np.int64(0)
        offset = np.int64(0)
        length_ps = np.int64(0)
        occurrences = False
        anchored = len(anchor_ids) == 0
        first = np.uint64(0)
        second = np.uint64(0)
        for slot in range(slots):
            numbers[slot, row] = MISSING
        while inner < stop:
            tag, kind, content, size, inner_next = field(buffer, inner, stop)
            if inner_next < 0:
                broke_at = np.int64(inner)
                break
            if kind == 0:
                if tag == 1:
                    metadata = content
                elif tag == 2:
                    offset = content
                elif tag == 3:
                    length_ps = content
                elif tag == 5:
                    occurrences = True
            elif tag == 4 and kind == 2:
                stat = np.int64(0)
                stat_value = MISSING
                stat_hash = np.uint64(0)
                position = content
                stat_end = content + size
                while position < stat_end:
                    s_tag, s_kind, s_value, s_size, position = field(buffer, position, stat_end)
                    if position < 0:
                        broke_at = np.int64(content)
                        break
                    if s_kind == 0:
                        if s_tag == 1:
                            stat = s_value
                        else:
                            stat_value = s_value if s_tag == 3 or s_tag == 4 else MISSING
                            stat_hash = np.uint64(s_value) + np.uint64(s_tag)
                    else:
                        stat_hash = hash_bytes(buffer, s_value, s_value + s_size)
                if broke_at >= 0:
                    break
                for slot in range(slots):
                    if number_ids[slot] == stat:
                        numbers[slot, row] = stat_value
                for k in range(len(anchor_ids)):
                    if anchor_ids[k] == stat:
                        anchored = True
                for k in range(len(key_ids)):
                    if key_ids[k] == stat:
                        salted = mix(stat_hash + np.uint64(stat) * np.uint64(0x9E3779B97F4A7C15))
                        first += salted
                        second += mix(salted ^ np.uint64(0xD1B54A32D192ED03))
            inner = inner_next
        if broke_at >= 0:
            break
        if occurrences:
            aggregated += 1
        elif length_ps < 0:
            negative += 1
        else:
            if not anchored:
                first = np.uint64(0)
                second = np.uint64(0)
            place = find_slot(table, keys, metadata, first, second)
            index = table[place]
            if index < 0:
                if found == capacity:
                    capacity *= 2
                    larger_keys = np.zeros((capacity, 3), np.uint64)
                    larger_keys[:found] = keys
                    keys = larger_keys
                    larger_spans = np.zeros((capacity, 2), np.int64)
                    larger_spans[:found] = spans
                    spans = larger_spans
                    table = np.full(capacity * 4, -1, np.int64)
                    for i in range(found):
                        again = find_slot(table, keys, np.int64(keys[i, 0]), keys[i, 1], keys[i, 2])
                        table[again] = i
                    place = find_slot(table, keys, metadata, first, second)
                keys[found, 0] = np.uint64(metadata)
                keys[found, 1] = first
                keys[found, 2] = second
                spans[found, 0] = value
                spans[found, 1] = stop
                table[place] = found
                index = found
                found += 1
            start[row] = offset + shift_ps
            duration[row] = length_ps
            op[row] = index
            row += 1
        at = behind
    ids = np.empty(found, np.int64)
    for i in range(found):
        ids[i] = np.int64(keys[i, 0])
    return row, aggregated, negative, ids, spans[:found].copy(), broke_at
