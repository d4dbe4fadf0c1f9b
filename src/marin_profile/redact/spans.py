"""Where the texts of an XSpace are, as loops over its bytes.

Contract: offsets only, nothing is changed. Field numbers are those of tsl's xplane.proto; in bytes
of no known message (HLO protos) what is printable is a text, what parses is a message. Where a
message is damaged the rest of it is one text.
"""

from __future__ import annotations

import numpy as np

from marin_profile.base.jit import jit, jit_no_alloc
from marin_profile.readers.protobuf import WIRE_BYTES, WIRE_VARINT
from marin_profile.readers.wire import field

SPACE, PLANE, LINE, EVENT, STAT, ENTRY, METADATA, NAME_ENTRY, NAME, UNKNOWN, TEXT = range(11)
_DEEPEST = 64
_FIELDS = 16

_SCHEMA = np.full((TEXT + 1, _FIELDS), UNKNOWN, np.int8)
for _level, _number, _child in (
    *((SPACE, 1, PLANE), (SPACE, 2, TEXT), (SPACE, 3, TEXT), (SPACE, 4, TEXT)),
    *((PLANE, 2, TEXT), (PLANE, 3, LINE), (PLANE, 4, ENTRY), (PLANE, 5, NAME_ENTRY)),
    *((PLANE, 6, STAT), (LINE, 2, TEXT), (LINE, 4, EVENT), (LINE, 11, TEXT), (EVENT, 4, STAT)),
    *((STAT, 5, TEXT), (ENTRY, 2, METADATA), (METADATA, 2, TEXT), (METADATA, 4, TEXT)),
    *((METADATA, 5, STAT), (NAME_ENTRY, 2, NAME), (NAME, 2, TEXT), (NAME, 3, TEXT)),
):
    _SCHEMA[_level, _number] = _child

USED_BY_STACK, USED_OTHERWISE = 1, 2


@jit_no_alloc
def _printable(buffer, at, end):
    """All of it could be a text; "\\n" and "\\t" count if it does not start with one."""
    for i in range(at, end):
        byte = buffer[i]
        if byte < 32 and not (i > at and (byte == 9 or byte == 10 or byte == 13)):
            return False
    return True


@jit_no_alloc
def _parses(buffer, at, end):
    while at < end:
        _, _, _, _, behind = field(buffer, at, end)
        if behind < 0:
            return False
        at = behind
    return True


@jit(views=True)
def text_spans(buffer, hits):
    """The texts of a space that hold at least one of the sorted offsets `hits`: rows (at, end)."""
    found = np.empty((len(hits), 2), np.int64)
    count = 0
    ats = np.zeros(_DEEPEST, np.int64)
    ends = np.zeros(_DEEPEST, np.int64)
    levels = np.zeros(_DEEPEST, np.int64)
    ends[0] = len(buffer)
    depth = 0
    hit = 0
    while depth >= 0 and hit < len(hits):
        at, end, level = ats[depth], ends[depth], levels[depth]
        if at >= end or hits[hit] >= end:
            depth -= 1
            continue
        number, wire, value, length, behind = field(buffer, at, end)
        first, last = at, end
        is_text = behind < 0
        if behind < 0:
            depth -= 1
        else:
            ats[depth] = behind
            first, last = value, value + length
            if wire != WIRE_BYTES:
                while hit < len(hits) and hits[hit] < behind:
                    hit += 1
                continue
        while hit < len(hits) and hits[hit] < first:
            hit += 1
        if hit == len(hits) or hits[hit] >= last:
            continue
        if not is_text:
            child = np.int64(UNKNOWN)
            if number < _FIELDS:
                child = np.int64(_SCHEMA[level, number])
            if child == UNKNOWN:
                plain = _printable(buffer, first, last) or not _parses(buffer, first, last)
                child = np.int64(TEXT) if plain else child
            is_text = child == TEXT or depth + 1 == _DEEPEST
            if not is_text:
                depth += 1
                ats[depth], ends[depth], levels[depth] = first, last, child
                continue
        found[count, 0], found[count, 1] = first, last
        count += 1
        while hit < len(hits) and hits[hit] < last:
            hit += 1
    return found[:count].copy()


@jit_no_alloc
def _name_entry(buffer, at, end):
    """A plane's stat metadata entry: (id, offset and end of the name)."""
    key, first, last = np.int64(0), np.int64(0), np.int64(0)
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            break
        if number == 1 and wire == WIRE_VARINT:
            key = value
        elif number == 2 and wire == WIRE_BYTES:
            inner, inner_end = value, value + length
            while inner < inner_end:
                tag, kind, content, size, after = field(buffer, inner, inner_end)
                if after < 0:
                    break
                if tag == 2 and kind == WIRE_BYTES:
                    first, last = content, np.int64(content + size)
                inner = after
        at = behind
    return key, first, last


@jit(views=True)
def stat_names(buffer, at, end):
    """A plane's stat metadata: rows (id, offset of the name, its end)."""
    rows = np.empty((16, 3), np.int64)
    count = 0
    while at < end:
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            break
        if number == 5 and wire == WIRE_BYTES:
            if count == len(rows):
                larger = np.empty((2 * count, 3), np.int64)
                larger[:count] = rows
                rows = larger
            key, first, last = _name_entry(buffer, value, value + length)
            rows[count, 0], rows[count, 1], rows[count, 2] = key, first, last
            count += 1
        at = behind
    return rows[:count].copy()


@jit(views=True)
def stack_values(buffer, begin, stop, ids, uses):
    """The values of a plane's stats whose metadata id is one of `ids`: rows (at, end). `uses[k]`
    collects how stat metadata k is used: as a stack's value, as anything else, or both."""
    found = np.empty((16, 2), np.int64)
    count = 0
    ats = np.zeros(8, np.int64)
    ends = np.zeros(8, np.int64)
    levels = np.zeros(8, np.int64)
    ats[0], ends[0], levels[0] = begin, stop, PLANE
    depth = 0
    while depth >= 0:
        at, end, level = ats[depth], ends[depth], levels[depth]
        if at >= end:
            depth -= 1
            continue
        number, wire, value, length, behind = field(buffer, at, end)
        if behind < 0:
            depth -= 1
            continue
        ats[depth] = behind
        if wire != WIRE_BYTES or number >= _FIELDS:
            continue
        child = _SCHEMA[level, number]
        if child in (LINE, EVENT, ENTRY, METADATA):
            depth += 1
            ats[depth], ends[depth], levels[depth] = value, value + length, child
            continue
        if child != STAT:
            continue
        key, ref = np.int64(-1), np.int64(-1)
        first, last = np.int64(0), np.int64(0)
        inner, inner_end = value, value + length
        while inner < inner_end:
            tag, kind, content, size, after = field(buffer, inner, inner_end)
            if after < 0:
                break
            if tag == 1 and kind == WIRE_VARINT:
                key = content
            elif tag == 7 and kind == WIRE_VARINT:
                ref = content
            elif (tag == 5 or tag == 6) and kind == WIRE_BYTES:
                first, last = content, np.int64(content + size)
            inner = after
        is_stack = False
        for k in range(len(ids)):
            if ids[k] == key:
                is_stack = True
        if 0 <= key < len(uses):
            uses[key] |= USED_OTHERWISE
        if 0 <= ref < len(uses):
            uses[ref] |= USED_BY_STACK if is_stack else USED_OTHERWISE
        if is_stack and last > first:
            if count == len(found):
                larger = np.empty((2 * count, 2), np.int64)
                larger[:count] = found
                found = larger
            found[count, 0], found[count, 1] = first, last
            count += 1
    return found[:count].copy()
