"""The usual events of a large JSON trace, read by one compiled loop.

Contract
* `UsualEvents.read` takes whole objects, in their order, and stops before the first one that is
  unusual: damaged or cut, a name of a process or thread, with anything but texts and short numbers
  where it counts, or without what an event must have. What it takes it reads like json_objects and
  Events do, which read the rest.
* In the plain form of the loop every object is unusual.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.jit import jit_no_alloc
from marin_profile.readers.json_events import MAX_SPAN_US, Events
from marin_profile.readers.json_text import MILLION
from marin_profile.readers.op_stats import EVENT_NUMBERS, OP_STATS

# The fields of an object: its own, then those of its args.
PH, PID, TID, TS, DUR, ARGS, NAME = range(7)
FIRST_ID = NAME + 1 + len(OP_STATS)
TORCH_ID = FIRST_ID + len(EVENT_NUMBERS)
_OWN = ("ph", "pid", "tid", "ts", "dur", "args", "name")
_ARGS = (*OP_STATS, *EVENT_NUMBERS, "External id")
_NUM_OP_FIELDS = FIRST_ID - NAME
_NUM_IDS = len(EVENT_NUMBERS)

# Rows of the columns of a chunk; HAS is a bit mask of the fields that the event has.
LINE, OP, WHOLE_US, FRACTION_PS, DURATION, HAS, FIRST_COLUMN = range(7)
_NUM_COLUMNS = FIRST_COLUMN + _NUM_IDS
# What is counted: rows, lines, ops, objects with a phase, those of phase X, new ops.
ROWS, LINES, OPS, OBJECTS, COMPLETE, NEW_OPS, _NUM_COUNTS = range(7)

CHUNK = 1 << 13
FIRST_TABLE = 1 << 14
_DIGITS = 18
_LARGEST = 10 ** (_DIGITS - 1)
_POWERS: Any = np.array([10**power for power in range(_DIGITS + 1)], np.int64)

# By byte: 0 inside a bare number or word, 1 may follow it, 2 must not.
_AFTER_TOKEN = np.zeros(256, np.uint8)
_AFTER_TOKEN[:33] = 1
_AFTER_TOKEN[list(b",]}")] = 1
_AFTER_TOKEN[list(b'":{[')] = 2

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_P1 = np.uint64(0x9E3779B97F4A7C15)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_MASK = (1 << 64) - 1


class UsualEvents:
    """What the loop knows from call to call: the lines and ops that it has met.

    A table is an open-addressing hash table of (key, key, index + 1), a power of two of rows; 0 in
    the last column means a free row. It is at most half full.
    """

    def __init__(self) -> None:
        self._known = _known_keys()
        self._lines = _new_table(FIRST_TABLE)
        self._ops = _new_table(FIRST_TABLE)
        self._columns = np.empty((_NUM_COLUMNS, CHUNK), np.int64)
        self._new_ops = np.empty((CHUNK, _NUM_OP_FIELDS, 2), np.int64)
        self._spans = np.empty((TORCH_ID + 1, 2), np.int64)

    def read(self, buffer: NDArray[np.uint8], i: int, end: int, events: Events) -> int:
        """Add at most CHUNK events of the array from `i` on; the position behind them. The buffer
        has 8 more bytes than `end`, whatever they hold."""
        counts = np.zeros(_NUM_COUNTS, np.int64)
        counts[LINES], counts[OPS] = len(events.tracks), len(events.ops)
        self._lines = _with_room(self._lines, len(events.tracks))
        self._ops = _with_room(self._ops, len(events.ops))
        after = read_usual(
            buffer, i, end, self._known, self._lines, self._ops,
            self._columns, self._new_ops, self._spans, counts,
        )  # fmt: skip
        self._add_rows(events, int(counts[ROWS]))
        events.num_objects += int(counts[OBJECTS])
        events.num_complete += int(counts[COMPLETE])
        if counts[LINES] > len(events.tracks):
            fresh = self._lines[self._lines[:, 2] > len(events.tracks)]
            ids = fresh[np.argsort(fresh[:, 2]), :2].view(np.int64)
            events.tracks += [(pid, tid) for pid, tid in ids.tolist()]
        for spans in self._new_ops[: counts[NEW_OPS]].tolist():
            texts = (buffer[at:stop].tobytes() if at >= 0 else None for at, stop in spans)
            events.add_op(tuple(texts))
        return int(after)

    def _add_rows(self, events: Events, count: int) -> None:
        if not count:
            return
        before, columns = events.num_rows, self._columns[:, :count]
        _extend(events.line, columns[LINE].astype(np.int32))
        _extend(events.op, columns[OP].astype(np.int32))
        _extend(events.whole_us, columns[WHOLE_US])
        _extend(events.fraction_ps, columns[FRACTION_PS].astype(np.int32))
        _extend(events.duration, columns[DURATION])
        for at in range(_NUM_IDS):
            rows = np.flatnonzero(columns[HAS] & (1 << at))
            if len(rows):
                _extend(events.id_rows[at], rows + before)
                _extend(events.id_values[at], columns[FIRST_COLUMN + at, rows])


def _extend(column: array[int], values: NDArray) -> None:
    column.frombytes(values.view(np.uint8).data)


def _new_table(size: int) -> NDArray[np.uint64]:
    return np.zeros((size, 3), np.uint64)


def _with_room(table: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    if 2 * (count + CHUNK) <= len(table):
        return table
    bigger = _new_table(2 * len(table))
    for first, second, index in table[table[:, 2] > 0].tolist():
        _insert(bigger, first, second, index)
    return _with_room(bigger, count)


def _insert(table: NDArray[np.uint64], first: int, second: int, index: int) -> None:
    mask = len(table) - 1
    at = ((first ^ second * int(_P2)) * int(_P1) & _MASK) >> 32 & mask
    while table[at, 2]:
        at = (at + 1) & mask
    table[at] = first, second, index


def _known_keys() -> NDArray[np.uint64]:
    table = _new_table(128)
    known = [(key, 0) for key in _OWN] + [(key, 1) for key in _ARGS]
    for field, (key, level) in enumerate(known):
        _insert(table, *hash_of(key.encode(), int(_P1), level), field + 1)
    return table


def hash_of(text: bytes, first: int, second: int) -> tuple[int, int]:
    """`_hash_span` of a whole text."""
    words = [len(text)]
    words += [int.from_bytes(text[at : at + 8], "little") for at in range(0, len(text), 8)]
    for word in words:
        first = ((first ^ word) * int(_P1)) & _MASK
        second = ((second + word) * int(_P2)) & _MASK
        first, second = first ^ first >> 32, second ^ second >> 29
    return first, second


@jit_no_alloc
def _word(buffer, i):
    """Eight bytes, little-endian; unsigned indices make this one machine instruction."""
    at = np.uint64(i)
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(buffer[at + np.uint64(k)]) << np.uint64(8 * k)
    return word


@jit_no_alloc
def _skip_space(buffer, i, end):
    while i < end and buffer[i] <= 32:
        i += 1
    return i


@jit_no_alloc
def _string_end(buffer, i, end):
    """The position after the string that opens at `i`, or -1."""
    i += 1
    while i < end:
        word = _word(buffer, i)
        quotes, escapes = word ^ _QUOTES, word ^ _BACKSLASHES
        # The top bit of each byte that is zero in one of them (and perhaps of bytes above it).
        hits = ((quotes - _ONES) & ~quotes | (escapes - _ONES) & ~escapes) & _TOPS
        if hits == 0:
            i += 8
            continue
        while buffer[i] != 34 and buffer[i] != 92:
            i += 1
        if i >= end:
            return -1
        if buffer[i] == 34:
            return i + 1
        i += 2
    return -1


@jit_no_alloc
def _hash_span(buffer, start, stop, first, second):
    """Two 64-bit hashes, of which `first` and `second` are the state so far."""
    word = np.uint64(stop - start)
    while True:
        first = (first ^ word) * _P1
        second = (second + word) * _P2
        first ^= first >> np.uint64(32)
        second ^= second >> np.uint64(29)
        if start >= stop:
            return first, second
        word = _word(buffer, start)
        if start + 8 > stop:
            word &= (np.uint64(1) << np.uint64(8 * (stop - start))) - np.uint64(1)
        start += 8


@jit_no_alloc
def _find(table, first, second):
    """The row of an entry, else the free row where it belongs."""
    mask = np.uint64(len(table) - 1)
    at = ((first ^ second * _P2) * _P1) >> np.uint64(32) & mask
    while table[at, 2] != 0 and (table[at, 0] != first or table[at, 1] != second):
        at = (at + np.uint64(1)) & mask
    return at


@jit_no_alloc
def _intern(table, first, second, index):
    """The index of an entry; if there is none it is added with `index`."""
    at = _find(table, first, second)
    if table[at, 2] == 0:
        table[at, 0] = first
        table[at, 1] = second
        table[at, 2] = np.uint64(index + 1)
    return np.int64(table[at, 2]) - 1


@jit_no_alloc
def _integer(buffer, i, stop):
    """(value, is it one), perhaps quoted, modulo 2^64 in two's complement."""
    if buffer[i] == 34:
        i += 1
        stop -= 1
    is_negative = buffer[i] == 45
    if is_negative:
        i += 1
    value = np.int64(0)
    is_one = i < stop
    while i < stop:
        digit = np.int64(buffer[i]) - 48
        is_one &= 0 <= digit <= 9
        value = value * 10 + digit
        i += 1
    return -value if is_negative else value, is_one


@jit_no_alloc
def _decimal(buffer, i, stop):
    """(whole, millionths, is it a number of at most 18 digits below 10^18), as `parse_decimal`."""
    is_negative = buffer[i] == 45
    if is_negative:
        i += 1
    digits = np.int64(0)
    places = 0
    first = i
    point = stop
    while i < stop:
        digit = np.int64(buffer[i]) - 48
        if 0 <= digit <= 9:
            if digits >= _LARGEST:
                return 0, 0, False
            digits = digits * 10 + digit
        elif digit == -2 and point == stop:
            point = i
        else:
            break
        i += 1
    count = i - first
    if point < stop:
        count -= 1
        places = i - point - 1
    if count == 0:
        return 0, 0, False
    if i < stop:
        exponent, is_one = _integer(buffer, i + 1, stop)
        # At most three digits and a sign.
        if buffer[i] | 32 != 101 or not is_one or stop - i > 5:
            return 0, 0, False
        places -= exponent
    if places < 0:
        return 0, 0, False
    whole = 0
    if places <= _DIGITS:
        whole = digits // _POWERS[places]
        digits -= whole * _POWERS[places]
    if places <= 6:
        millionths = digits * _POWERS[6 - places]
    elif places - 6 <= _DIGITS:
        unit = _POWERS[places - 6]
        millionths = digits // unit
        rest = 2 * (digits - millionths * unit)
        if rest > unit or (rest == unit and millionths & 1):
            millionths += 1
    else:
        millionths = 0
    if millionths == MILLION:
        whole += 1
        millionths = 0
    if is_negative:
        whole = -whole
        if millionths > 0:
            whole -= 1
            millionths = MILLION - millionths
    return whole, millionths, True


@jit_no_alloc
def _object_end(buffer, i, end, known, spans):
    """Fill `spans` from the object that opens at `i`; what it lacks is -1. The position after it,
    or -1 if it is unusual."""
    spans[:, 0] = -1
    at = i + 1
    level = np.uint64(0)
    while True:
        at = _skip_space(buffer, at, end)
        if at >= end or buffer[at] != 34:
            return -1
        stop = _string_end(buffer, at, end)
        if stop < 0:
            return -1
        first, second = _hash_span(buffer, at + 1, stop - 1, _P1, level)
        field = np.int64(known[_find(known, first, second), 2]) - 1
        at = _skip_space(buffer, stop, end)
        if at >= end or buffer[at] != 58:
            return -1
        start = _skip_space(buffer, at + 1, end)
        at = start
        if at >= end:
            return -1
        if buffer[at] == 34:
            at = _string_end(buffer, at, end)
            if at < 0:
                return -1
        elif buffer[at] == 123 and field == ARGS:
            at = _skip_space(buffer, at + 1, end)
            if at < end and buffer[at] != 125:
                spans[ARGS, 0] = start
                level = np.uint64(1)
                continue
            at += 1
        else:
            while at < end and _AFTER_TOKEN[buffer[at]] == 0:
                at += 1
            if at >= end or at == start or _AFTER_TOKEN[buffer[at]] != 1:
                return -1
        if field >= 0:
            spans[field, 0] = start
            spans[field, 1] = at
        while True:
            at = _skip_space(buffer, at, end)
            if at >= end:
                return -1
            behind = buffer[at]
            at += 1
            if behind == 44:
                break
            if behind != 125:
                return -1
            if level == 0:
                return at
            level = np.uint64(0)


@jit_no_alloc
def _read_numbers(buffer, spans, is_instant, columns, row):
    """Fill a row of the columns, but for its line and op; whether all is usual."""
    if spans[TS, 0] < 0:
        return False
    whole, millionths, is_usual = _decimal(buffer, spans[TS, 0], spans[TS, 1])
    columns[WHOLE_US, row] = whole
    columns[FRACTION_PS, row] = millionths
    columns[DURATION, row] = 0
    if not is_instant:
        if spans[DUR, 0] < 0:
            return False
        whole, millionths, is_number = _decimal(buffer, spans[DUR, 0], spans[DUR, 1])
        is_usual &= is_number and 0 <= whole <= MAX_SPAN_US
        duration = whole * MILLION + millionths
        # JAX writes instants as 1 ps.
        columns[DURATION, row] = duration if duration != 1 else 0
    has = 0
    for at in range(_NUM_IDS):
        if spans[FIRST_ID + at, 0] >= 0:
            value, is_one = _integer(buffer, spans[FIRST_ID + at, 0], spans[FIRST_ID + at, 1])
            columns[FIRST_COLUMN + at, row] = value
            has |= 1 << at
            is_usual &= is_one
    columns[HAS, row] = has
    return is_usual


def _leave_all(buffer, i, end, known, lines, ops, columns, new_ops, spans, counts):
    return i


@jit_no_alloc(portable=_leave_all)
def read_usual(buffer, i, end, known, lines, ops, columns, new_ops, spans, counts):
    """Read usual objects from `i` on while there is room for another row; the position behind
    them."""
    while counts[ROWS] < columns.shape[1]:
        while i < end and (buffer[i] <= 32 or buffer[i] == 44):
            i += 1
        if i >= end or buffer[i] != 123:
            break
        stop = _object_end(buffer, i, end, known, spans)
        if stop < 0 or spans[PH, 0] < 0 or spans[PH, 1] - spans[PH, 0] != 3:
            break
        phase = buffer[spans[PH, 0] + 1]
        if buffer[spans[PH, 0]] != 34 or phase == 77 or spans[TORCH_ID, 0] >= 0:
            break
        is_named = spans[NAME, 0] >= 0 or spans[ARGS, 0] >= 0
        if phase == 88 or ((phase == 105 or phase == 73) and is_named):
            row = counts[ROWS]
            if not _read_numbers(buffer, spans, phase != 88, columns, row):
                break
            pid, tid = 0, 0
            is_usual = True
            if spans[PID, 0] >= 0:
                pid, is_usual = _integer(buffer, spans[PID, 0], spans[PID, 1])
            if is_usual and spans[TID, 0] >= 0:
                tid, is_usual = _integer(buffer, spans[TID, 0], spans[TID, 1])
            if not is_usual:
                break
            line = _intern(lines, np.uint64(pid), np.uint64(tid), counts[LINES])
            counts[LINES] = max(counts[LINES], line + 1)
            columns[LINE, row] = line
            first, second = _P1, _P2
            for field in range(NAME, FIRST_ID):
                if spans[field, 0] >= 0:
                    first, second = _hash_span(
                        buffer, spans[field, 0], spans[field, 1], first ^ np.uint64(field), second
                    )
            op = _intern(ops, first, second, counts[OPS])
            columns[OP, row] = op
            if op == counts[OPS]:
                counts[OPS] += 1
                for field in range(NAME, FIRST_ID):
                    new_ops[counts[NEW_OPS], field - NAME, 0] = spans[field, 0]
                    new_ops[counts[NEW_OPS], field - NAME, 1] = spans[field, 1]
                counts[NEW_OPS] += 1
            counts[ROWS] += 1
        counts[OBJECTS] += 1
        counts[COMPLETE] += phase == 88
        i = stop
    return i
