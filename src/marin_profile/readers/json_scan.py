"""The events array of trace JSON -> numbers per event, spans per distinct op: numba functions.

Contract
* `known` is `known_keys()`; `spans` (NUM_FIELDS x 2) is scratch: the spans of one object's fields.
* A table is an open-addressing hash table of (key, key, index + 1), a power of two of rows; 0 in
  the last column means a free row. The caller keeps it at most half full.
* `counts` accumulates (see the names below); the caller resets what it has taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.jit import jit_no_alloc
from marin_profile.readers.json_text import (
    BAD,
    CUT,
    MILLION,
    load_word,
    parse_decimal,
    parse_int,
    skip_space,
    string_end,
    value_end,
)
from marin_profile.readers.op_stats import EVENT_NUMBERS, OP_STATS

ARRAY_CLOSED = -3
ROOM_FULL = -4

# What is read of an object: its own keys; of `args`, ids (a column each); what belongs to the op.
EVENT_KEYS = ("ph", "pid", "tid", "ts", "dur", "cat", "args")
PH, PID, TID, TS, DUR, CAT, ARGS = range(7)
ID_KEYS = EVENT_NUMBERS
NUM_IDS = len(ID_KEYS)
FIRST_ID = len(EVENT_KEYS)
NAME = FIRST_ID + NUM_IDS
OP_KEYS = OP_STATS
NUM_OP_FIELDS = 1 + len(OP_KEYS)
ARG_NAME = NAME + 1 + OP_KEYS.index("name")
TORCH_ID = NAME + NUM_OP_FIELDS
NUM_FIELDS = TORCH_ID + 1

# Columns of an event (`columns[X, row]`); HAS is a bit mask of the ids that it has.
LINE, OP, WHOLE_US, FRACTION_PS, DURATION, HAS, FIRST_ID_COLUMN = range(7)
NUM_COLUMNS = FIRST_ID_COLUMN + NUM_IDS
# Columns of a row of `metas`: ids, then the spans of the event's name and of args.name.
NUM_META_COLUMNS = 6

ROWS, NEW_OPS, METAS, LINES, OPS, OBJECTS, COMPLETE, TORCH = range(8)
REASONS = (
    "missing_timestamp",
    "bad_timestamp",
    "missing_duration",
    "bad_duration",
    "negative_duration",
    "damaged_event",
)
FIRST_REASON = 8
NO_TS, BAD_TS, NO_DUR, BAD_DUR, NEGATIVE, DAMAGED = range(FIRST_REASON, FIRST_REASON + 6)
NUM_COUNTS = FIRST_REASON + len(REASONS)

# 53 days: a start and a duration of this size add up to less than 2^63 picoseconds.
MAX_SPAN_US = 4_600_000_000_000

P1 = np.uint64(0x9E3779B97F4A7C15)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
U32 = np.uint64(32)
U29 = np.uint64(29)

HashTable = NDArray[np.uint64]


def new_table(size: int) -> HashTable:
    """Room for `size` entries; `size` is a power of two."""
    return np.zeros((2 * size, 3), np.uint64)


def known_keys() -> HashTable:
    """The table of the keys that are read; its index is the field."""
    known = [(key, 0, field) for field, key in enumerate(EVENT_KEYS)] + [("name", 0, NAME)]
    known += [(key, 1, FIRST_ID + at) for at, key in enumerate(ID_KEYS)]
    known += [(key, 1, NAME + 1 + at) for at, key in enumerate(OP_KEYS)]
    known += [("External id", 1, TORCH_ID)]
    table = new_table(64)
    for key, level, field in known:
        add_key(
            table,
            np.frombuffer(bytearray(key.encode() + bytes(8)), np.uint8),
            len(key),
            level,
            field,
        )
    return table


@jit_no_alloc(always=True)
def mix_word(a, b, word):
    a = (a ^ word) * P1
    b = (b + word) * P2
    return a ^ (a >> U32), b ^ (b >> U29)


@jit_no_alloc(always=True)
def hash_span(buf, start, stop, a, b):
    """Two 64-bit hashes, of which `a` and `b` are the state so far, extended by one span."""
    a, b = mix_word(a, b, np.uint64(stop - start))
    while start + 8 <= stop:
        a, b = mix_word(a, b, load_word(buf, start))
        start += 8
    if start < stop:
        mask = (np.uint64(1) << np.uint64(8 * (stop - start))) - np.uint64(1)
        a, b = mix_word(a, b, load_word(buf, start) & mask)
    return a, b


@jit_no_alloc(always=True)
def find_row(table, a, b):
    """The row of the entry (a, b), else the free row where it belongs."""
    mask = len(table) - 1
    at = np.int64(((a ^ (b * P2)) * P1) >> U32) & mask
    while table[at, 2] != 0 and (table[at, 0] != a or table[at, 1] != b):
        at = (at + 1) & mask
    return at


@jit_no_alloc(always=True)
def intern(table, a, b, index):
    """The index of the entry (a, b); if there is none it is added with `index`."""
    at = find_row(table, a, b)
    if table[at, 2] == 0:
        table[at, 0] = a
        table[at, 1] = b
        table[at, 2] = np.uint64(index + 1)
    return np.int64(table[at, 2]) - 1


@jit_no_alloc(always=True)
def copy_entries(table, bigger):
    for at in range(len(table)):
        if table[at, 2] != 0:
            intern(bigger, table[at, 0], table[at, 1], np.int64(table[at, 2]) - 1)


@jit_no_alloc(always=True)
def add_key(table, buf, length, level, field):
    a, b = hash_span(buf, 0, length, P1, np.uint64(level))
    intern(table, a, b, field)


@jit_no_alloc(always=True)
def field_of(known, buf, start, stop, level):
    """The field of a key of the event (level 0) or of its args (level 1), or -1."""
    a, b = hash_span(buf, start, stop, P1, np.uint64(level))
    return np.int64(known[find_row(known, a, b), 2]) - 1


@jit_no_alloc(always=True)
def read_object(buf, i, end, known, spans):
    """Fill `spans` from the object that opens at `i`; what it lacks is -1.

    Returns the position after it, CUT or BAD. Keys of `args` are read like the object's own.
    """
    for field in range(NUM_FIELDS):
        spans[field, 0] = -1
    i = skip_space(buf, i + 1, end)
    if i < end and buf[i] == 125:
        return i + 1
    level = 0
    while True:
        if i >= end:
            return CUT
        if buf[i] != 34:
            return BAD
        stop = string_end(buf, i, end)
        if stop < 0:
            return stop
        field = field_of(known, buf, i + 1, stop - 1, level)
        i = skip_space(buf, stop, end)
        if i >= end:
            return CUT
        if buf[i] != 58:
            return BAD
        i = skip_space(buf, i + 1, end)
        if field == ARGS and i < end and buf[i] == 123:
            spans[ARGS, 0] = i
            i = skip_space(buf, i + 1, end)
            if i >= end or buf[i] != 125:
                level = 1
                continue
            i += 1
        else:
            stop = value_end(buf, i, end)
            if stop < 0:
                return stop
            if field >= 0:
                spans[field, 0] = i
                spans[field, 1] = stop
            i = stop
        while True:
            i = skip_space(buf, i, end)
            if i >= end:
                return CUT
            c = buf[i]
            i += 1
            if c == 44:
                break
            if c != 125:
                return BAD
            if level == 0:
                return i
            level = 0
        i = skip_space(buf, i, end)


@jit_no_alloc(always=True)
def read_id(buf, spans, field):
    """An integer field, 0 where it is missing or no integer."""
    if spans[field, 0] < 0:
        return 0
    return parse_int(buf, spans[field, 0], spans[field, 1])[0]


@jit_no_alloc(always=True)
def read_duration(buf, spans):
    """(duration in ps, 0 or the reason to drop the event). JAX writes instants as 1 ps: 0."""
    if spans[DUR, 0] < 0:
        return 0, NO_DUR
    whole, fraction, ok = parse_decimal(buf, spans[DUR, 0], spans[DUR, 1])
    if not ok or whole > MAX_SPAN_US:
        return 0, BAD_DUR
    if whole < 0:
        return 0, NEGATIVE
    duration = whole * MILLION + fraction
    return (duration if duration != 1 else 0), 0


@jit_no_alloc(always=True)
def hash_op(buf, spans):
    a = P1
    b = P2
    for field in range(NAME, NAME + NUM_OP_FIELDS):
        if spans[field, 0] >= 0:
            a, b = hash_span(buf, spans[field, 0], spans[field, 1], a ^ np.uint64(field), b)
    return a, b


@jit_no_alloc(always=True)
def read_ids(buf, spans, columns, row):
    """Fill the id columns of a row, and HAS."""
    has = 0
    for column in range(NUM_IDS):
        if spans[FIRST_ID + column, 0] >= 0:
            value, ok = parse_int(buf, spans[FIRST_ID + column, 0], spans[FIRST_ID + column, 1])
            columns[FIRST_ID_COLUMN + column, row] = value
            has |= ok << column
    columns[HAS, row] = has


@jit_no_alloc(always=True)
def read_times(buf, spans, instant, columns, row):
    """Fill the time columns of a row; 0 or the reason to drop the event."""
    if spans[TS, 0] < 0:
        return NO_TS
    whole, fraction, ok = parse_decimal(buf, spans[TS, 0], spans[TS, 1])
    if not ok:
        return BAD_TS
    duration = 0
    if not instant:
        duration, reason = read_duration(buf, spans)
        if reason != 0:
            return reason
    columns[WHOLE_US, row] = whole
    columns[FRACTION_PS, row] = fraction
    columns[DURATION, row] = duration
    return 0


@jit_no_alloc(always=True)
def add_event(buf, spans, instant, lines, ops, columns, new_ops, counts):
    """Append a row, or count the reason why not."""
    row = counts[ROWS]
    reason = read_times(buf, spans, instant, columns, row)
    if reason != 0:
        counts[reason] += 1
        return
    counts[ROWS] += 1
    pid = np.uint64(read_id(buf, spans, PID))
    tid = np.uint64(read_id(buf, spans, TID))
    line = intern(lines, pid, tid, counts[LINES])
    counts[LINES] = max(counts[LINES], line + 1)
    a, b = hash_op(buf, spans)
    op = intern(ops, a, b, counts[OPS])
    if op == counts[OPS]:
        counts[OPS] += 1
        for field in range(NUM_OP_FIELDS):
            new_ops[counts[NEW_OPS], field, 0] = spans[NAME + field, 0]
            new_ops[counts[NEW_OPS], field, 1] = spans[NAME + field, 1]
        counts[NEW_OPS] += 1
    columns[LINE, row] = line
    columns[OP, row] = op
    read_ids(buf, spans, columns, row)


@jit_no_alloc(always=True)
def add_meta(buf, spans, metas, counts):
    row = counts[METAS]
    counts[METAS] += 1
    metas[row, 0] = read_id(buf, spans, PID)
    metas[row, 1] = read_id(buf, spans, TID)
    for k in range(2):
        metas[row, 2 + k] = spans[NAME, k]
        metas[row, 4 + k] = spans[ARG_NAME, k]


@jit_no_alloc(always=True)
def phase_of(buf, spans):
    """The letter of `ph`; 0 if it is none."""
    start = spans[PH, 0]
    if start >= 0 and spans[PH, 1] - start == 3 and buf[start] == 34:
        return np.int64(buf[start + 1])
    return 0


@jit_no_alloc(always=True)
def is_empty(buf, i, stop):
    """Whether the object that opens at `i` is `{}`."""
    return skip_space(buf, i + 1, stop) == stop - 1


@jit_no_alloc(always=True)
def scan_json_events(buf, i, end, known, spans, lines, ops, columns, new_ops, metas, counts):
    """Read the objects of an events array from `i` on, at most as many as fit.

    Returns the position and ROOM_FULL, ARRAY_CLOSED (after the `]`), CUT, or BAD (at the damaged
    object).
    """
    for _ in range(columns.shape[1]):
        i = skip_space(buf, i, end)
        while i < end and buf[i] == 44:
            i = skip_space(buf, i + 1, end)
        if i >= end:
            return i, CUT
        if buf[i] == 93:
            return i + 1, ARRAY_CLOSED
        if buf[i] != 123:
            return i, BAD
        stop = read_object(buf, i, end, known, spans)
        if stop < 0:
            return i, stop
        phase = phase_of(buf, spans)
        counts[OBJECTS] += spans[PH, 0] >= 0
        if phase == 88 or phase == 105 or phase == 73:
            if phase == 88:
                counts[COMPLETE] += 1
            if phase == 88 or spans[NAME, 0] >= 0 or spans[ARGS, 0] >= 0:
                add_event(buf, spans, phase != 88, lines, ops, columns, new_ops, counts)
            if spans[CAT, 0] >= 0 and spans[TORCH_ID, 0] >= 0:
                counts[TORCH] += 1
        elif phase == 77:
            add_meta(buf, spans, metas, counts)
        elif spans[PH, 0] < 0 and not is_empty(buf, i, stop):
            counts[DAMAGED] += 1
        i = stop
    return i, ROOM_FULL


@jit_no_alloc(always=True)
def find_event(buf, i, end, final, known, spans):
    """The position of the first whole event at or after `i`, and whether there is one.

    Only an object that follows a comma or a bracket and has a `ph` counts. An incomplete one ends
    the search unless the bytes are `final`.
    """
    start = i
    before = np.int64(44)
    while i < end:
        c = buf[i]
        if c == 123 and (before == 44 or before == 91 or before == 125 or i == start):
            stop = read_object(buf, i, end, known, spans)
            if stop >= 0 and spans[PH, 0] >= 0:
                return i, True
            if stop == CUT and not final:
                return i, False
        if c > 32:
            before = np.int64(c)
        i += 1
    return i, False
