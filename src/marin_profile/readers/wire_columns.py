"""The fields of many messages at once, as numpy columns, and the events of an XLine from them.

Contract: nothing reads outside a message's [start, end); damage ends a message where it is, never a
crash. `scan_events` gives what the compiled loop in `wire` gives, for lines that fit in memory
several times over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s
from marin_profile.base.hashing import mix64
from marin_profile.readers.protobuf import (
    BROKEN,
    LONGEST_VARINT,
    WIRE_BYTES,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_VARINT,
    walk_message,
)

Buffer = NDArray[np.uint8]
Told = tuple[Int64s, Int64s]
Bools = NDArray[np.bool_]

MISSING = np.int64(np.iinfo(np.int64).min)
# 26 days: starts and durations of this size, added and subtracted, fit int64.
LONGEST_PS = np.int64(26 * 24 * 3600 * 10**12)
GOLDEN, SALT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
# Fewer messages than this are read one by one.
FEW = 24

EVENT = 4
METADATA, OFFSET, DURATION, STAT, OCCURRENCES = 1, 2, 3, 4, 5
STAT_ID, UNSIGNED, SIGNED = 1, 3, 4


@dataclass(frozen=True, slots=True)
class Fields:
    """Columns of all fields: the message's index, then as in `wire.walk`. Those of a message are in
    order, messages are mixed. broke_at: by message, the field that cannot be read, or BROKEN."""

    message: Int64s
    number: Int64s
    wire: Int64s
    value: Int64s
    length: Int64s
    broke_at: Int64s


@dataclass(frozen=True, slots=True)
class LineEvents:
    """What a scan says of a line beside its columns: how many events it wrote, and left out by
    reason; by slot of number_ids the rows that have the number, ascending, and their values; the
    metadata id of each distinct op, and the span of its first event; where the line is damaged, or
    BROKEN."""

    written: int
    left_out: dict[str, int]
    numbers: list[Told]
    metadata: Int64s
    spans: Int64s
    broke_at: int


def fields_of(buffer: Buffer, starts: Int64s, ends: Int64s) -> Fields:
    """The fields of the messages [starts[i], ends[i]): the first of each, then the second ..."""
    broke_at = np.full(len(starts), BROKEN, np.int64)
    message = np.flatnonzero(starts < ends)
    at, end = starts[message], ends[message]
    rounds: list[tuple[Int64s, ...]] = [(np.zeros(0, np.int64),) * 5]
    while len(message) > FEW:
        tag, behind = varints(buffer, at, end)
        number, wire = tag >> 3, tag & 7
        is_varint, is_bytes = wire == WIRE_VARINT, wire == WIRE_BYTES
        length = np.where(wire == WIRE_FIXED64, 8, np.where(wire == WIRE_FIXED32, 4, 0))
        content = behind
        told = np.flatnonzero((is_varint | is_bytes) & (behind >= 0))
        second, after = varints(buffer, behind[told], end[told])
        content[told] = after
        length[told] = np.where(is_bytes[told], second, 0)
        value = content.copy()
        value[told] = np.where(is_bytes[told], after, second)
        sound = (content >= 0) & (number > 0) & (length >= 0) & (length <= end - content)
        sound &= is_varint | is_bytes | (wire == WIRE_FIXED64) | (wire == WIRE_FIXED32)
        broke_at[message[~sound]] = at[~sound]
        rounds.append(tuple(column[sound] for column in (message, number, wire, value, length)))
        at = content + length
        more = sound & (at < end)
        message, at, end = message[more], at[more], end[more]
    rest: list[tuple[int, ...]] = []
    view = buffer.data
    for one, first, last in zip(message.tolist(), at.tolist(), end.tolist(), strict=True):
        rows, broke_at[one] = walk_message(view, first, last)
        rest += [(one, *row) for row in rows]
    rounds.append(tuple(np.array(rest, np.int64).reshape(-1, 5).T))
    message, number, wire, value, length = map(np.concatenate, zip(*rounds, strict=True))
    return Fields(message, number, wire, value, length, broke_at)


def varints(buffer: Buffer, at: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The varint at each offset as int64 bits, and the offset behind it (BROKEN on damage)."""
    last = max(len(buffer) - 1, 0)
    inside = at < end
    byte = buffer[np.minimum(at, last)] if len(buffer) else np.zeros(len(at), np.uint8)
    value = (byte & np.uint8(127)).astype(np.uint64)
    behind = np.where(inside, at + 1, BROKEN)
    rows = np.flatnonzero(inside & (byte > 127))
    for index in range(1, LONGEST_VARINT):
        if not len(rows):
            break
        here = behind[rows]
        inside = here < end[rows]
        behind[rows[~inside]] = BROKEN
        rows, here = rows[inside], here[inside]
        byte = buffer[here]
        value[rows] |= (byte & np.uint8(127)).astype(np.uint64) << np.uint64(7 * index)
        behind[rows] += 1
        rows = rows[byte > 127]
    behind[rows] = BROKEN
    value[behind == BROKEN] = 0
    return value.view(np.int64), behind


def scan_events(
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
) -> LineEvents:
    """`wire.scan_line_events`."""
    rows, broke_at = walk_message(buffer.data, at, end)
    spans = np.array(
        [
            (value, value + length)
            for number, wire, value, length in rows
            if number == EVENT and wire == WIRE_BYTES
        ],
        np.int64,
    ).reshape(-1, 2)
    events = fields_of(buffer, spans[:, 0], spans[:, 1])
    stats = _Stats.of(buffer, events)
    count = len(spans)
    damaged = np.append(
        np.flatnonzero(events.broke_at != BROKEN), stats.event[stats.broke_at != BROKEN]
    )
    if len(damaged):
        count = int(damaged.min())
        odd_stats = stats.at[(stats.event == count) & (stats.broke_at != BROKEN)]
        broke_at = int(odd_stats.min() if len(odd_stats) else events.broke_at[count])

    is_varint = events.wire == WIRE_VARINT

    def number_of(tag: int) -> Int64s:
        return _last(events, is_varint & (events.number == tag), len(spans))[:count]

    metadata, begin = number_of(METADATA), number_of(OFFSET) + shift_ps
    length = number_of(DURATION)
    aggregated = np.zeros(len(spans), np.bool_)
    aggregated[events.message[is_varint & (events.number == OCCURRENCES)]] = True
    reasons = {
        "aggregated_event": aggregated[:count],
        "negative_duration": length < 0,
        "bad_timestamp": (begin < -LONGEST_PS) | (begin > LONGEST_PS),
        "bad_duration": length > LONGEST_PS,
    }
    kept = np.ones(count, np.bool_)
    left_out = {}
    for reason, chosen in reasons.items():
        left_out[reason] = int(np.count_nonzero(chosen & kept))
        kept &= ~chosen
    rows_kept = np.flatnonzero(kept)
    written = len(rows_kept)
    start[:written], duration[:written] = begin[rows_kept], length[rows_kept]
    numbers = []
    for stat in number_ids.tolist():
        own = stats.id == stat
        column = np.full(len(spans), MISSING, np.int64)
        column[stats.event[own]] = stats.value[own]
        told = np.flatnonzero(column[rows_kept] != MISSING)
        numbers.append((told, column[rows_kept[told]]))
    first, second = stats.keys(buffer, key_ids, anchor_ids, len(spans))
    places: dict[tuple[int, int, int], int] = {}
    identities = zip(
        metadata[rows_kept].tolist(),
        first[rows_kept].tolist(),
        second[rows_kept].tolist(),
        strict=True,
    )
    op[:written] = [places.setdefault(identity, len(places)) for identity in identities]
    firsts = rows_kept[np.unique(op[:written], return_index=True)[1]]
    return LineEvents(written, left_out, numbers, metadata[firsts], spans[firsts], broke_at)


def _last(fields: Fields, chosen: Bools, size: int) -> Int64s:
    """By message the value of the last chosen field, 0 where there is none."""
    column = np.zeros(size, np.int64)
    column[fields.message[chosen]] = fields.value[chosen]
    return column


@dataclass(frozen=True, slots=True)
class _Stats:
    """The stats of a line's events: the event, the offset, the id, the number that it says
    (MISSING: none), the place of the last field among `fields` that is not its id (-1: none)."""

    event: Int64s
    at: Int64s
    id: Int64s
    value: Int64s
    content: Int64s
    fields: Fields
    broke_at: Int64s

    @staticmethod
    def of(buffer: Buffer, events: Fields) -> _Stats:
        chosen = (events.number == STAT) & (events.wire == WIRE_BYTES)
        at = events.value[chosen]
        fields = fields_of(buffer, at, at + events.length[chosen])
        is_varint = fields.wire == WIRE_VARINT
        is_id = is_varint & (fields.number == STAT_ID)
        value = np.full(len(at), MISSING, np.int64)
        told = np.flatnonzero(is_varint & ~is_id)
        is_number = (fields.number[told] == UNSIGNED) | (fields.number[told] == SIGNED)
        value[fields.message[told]] = np.where(is_number, fields.value[told], MISSING)
        content = np.full(len(at), -1, np.int64)
        others = np.flatnonzero(~is_id)
        content[fields.message[others]] = others
        return _Stats(
            event=events.message[chosen],
            at=at,
            id=_last(fields, is_id, len(at)),
            value=value,
            content=content,
            fields=fields,
            broke_at=fields.broke_at,
        )

    def keys(
        self, buffer: Buffer, key_ids: Int64s, anchor_ids: Int64s, count: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Two numbers for each of `count` events, the same where the key stats are."""
        first, second = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        own = np.flatnonzero(np.isin(self.id, key_ids))
        salted = mix64.plain(self._contents(buffer, own) + self.id[own].view(np.uint64) * GOLDEN)
        np.add.at(first, self.event[own], salted)
        np.add.at(second, self.event[own], mix64.plain(salted ^ SALT))
        if len(anchor_ids):
            anchored = np.zeros(count, np.bool_)
            anchored[self.event[np.isin(self.id, anchor_ids)]] = True
            first[~anchored] = 0
            second[~anchored] = 0
        return first, second

    def _contents(self, buffer: Buffer, stats: Int64s) -> NDArray[np.uint64]:
        """A number for what each of the stats says; one for each text, 0 for nothing."""
        numbers = np.zeros(len(stats), np.uint64)
        place = self.content[stats]
        told = np.flatnonzero(place >= 0)
        place = place[told]
        fields = self.fields
        numbers[told] = (fields.value[place] + fields.number[place]).view(np.uint64)
        is_text = fields.wire[place] != WIRE_VARINT
        at, length = fields.value[place[is_text]], fields.length[place[is_text]]
        texts: dict[bytes, int] = {}
        view = buffer.data
        numbers[told[is_text]] = mix64.plain(
            np.array(
                [
                    texts.setdefault(bytes(view[a : a + size]), len(texts))
                    for a, size in zip(at.tolist(), length.tolist(), strict=True)
                ],
                np.uint64,
            )
            ^ SALT
        )
        return numbers
