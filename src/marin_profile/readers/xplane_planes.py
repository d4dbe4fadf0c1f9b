"""The planes of an XSpace before their events are read: names, metadata spans, stats.

Contract: spans point into the file's bytes; a damaged plane keeps what stands before the damage.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_profile.readers.hlo import Buffer, Span, fields, text
from marin_profile.readers.op_stats import Stat
from marin_profile.readers.protobuf import BROKEN, WIRE_BYTES
from marin_profile.readers.wire import FIELD, LENGTH, VALUE, WIRE, line_header, walk
from marin_profile.readers.wire_columns import MISSING

DOUBLE_BYTES = 8


def plane_name(buffer: Buffer, span: Span) -> str:
    for number, _, inner in fields(buffer, span):
        if number == 2:
            return text(buffer, inner)
    return ""


@dataclass
class RawPlane:
    """A plane whose events are not read yet; spans point into the file. `broke_at`: the byte where
    it is damaged, or BROKEN. `odd_fields`: how many of its fields no XPlane has."""

    id: int = 0
    name: str = ""
    lines: list[RawLine] = field(default_factory=list)
    metadata: dict[int, Span] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[Span] = field(default_factory=list)
    broke_at: int = BROKEN
    odd_fields: int = 0

    @staticmethod
    def read(buffer: Buffer, span: Span) -> RawPlane:
        rows, broke_at = walk(buffer, span[0], span[1])
        plane = RawPlane(broke_at=broke_at)
        for row in rows:
            number, value = row[FIELD], row[VALUE]
            inner = (value, value + row[LENGTH])
            is_message = row[WIRE] == WIRE_BYTES
            if number == 1 and not is_message:
                plane.id = value
            elif not (is_message and 2 <= number <= 6):
                plane.odd_fields += 1
            elif number == 2:
                plane.name = text(buffer, inner)
            elif number == 3:
                plane.lines.append(RawLine.read(buffer, inner))
            elif number == 4:
                key, content = map_entry(buffer, inner)
                plane.metadata[key] = content
            elif number == 5:
                key, content = map_entry(buffer, inner)
                plane.stat_names[key] = first_text(buffer, content, 2)
            elif number == 6:
                plane.stats.append(inner)
        return plane

    @property
    def num_events(self) -> int:
        return sum(line.count for line in self.lines)

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.stats or self.metadata)

    @property
    def is_host(self) -> bool:
        return self.name.startswith("/host:")

    def stat_id(self, name: str) -> int:
        """MISSING if the plane has no such stat."""
        return next((key for key, known in self.stat_names.items() if known == name), int(MISSING))

    def decoded_stats(self, buffer: Buffer) -> dict[str, Stat]:
        return dict(decode_stat(buffer, span, self.stat_names) for span in self.stats)


@dataclass(frozen=True)
class RawLine:
    id: int
    name: str
    timestamp_ns: int
    span: Span
    count: int
    odd_fields: int = 0

    @staticmethod
    def read(buffer: Buffer, span: Span) -> RawLine:
        line_id, timestamp, name, display, count, _, odd = line_header(buffer, *span)
        title = text(buffer, display) or text(buffer, name)
        return RawLine(int(line_id), title, int(timestamp), span, int(count), int(odd))


def map_entry(buffer: Buffer, span: Span) -> tuple[int, Span]:
    """A protobuf map<int64, message> entry: key and the message's span."""
    key, content = 0, (0, 0)
    for number, value, inner in fields(buffer, span):
        if number == 1:
            key = value
        elif number == 2:
            content = inner
    return key, content


def first_text(buffer: Buffer, span: Span, wanted: int) -> str:
    for number, _, inner in fields(buffer, span):
        if number == wanted:
            return text(buffer, inner)
    return ""


def decode_stat(buffer: Buffer, span: Span, names: Mapping[int, str]) -> tuple[str, Stat]:
    """An XStat as (name, value); uint64 stays unsigned, int64 signed."""
    key = 0
    value: Stat = 0
    for number, number_value, inner in fields(buffer, span):
        if number == 1:
            key = number_value
        elif number == 2 and inner[1] - inner[0] == DOUBLE_BYTES:
            value = struct.unpack("<d", buffer[inner[0] : inner[1]].tobytes())[0]
        elif number == 3:
            value = number_value % (1 << 64)
        elif number == 4:
            value = number_value
        elif number == 5:
            value = text(buffer, inner)
        elif number == 6:
            value = buffer[inner[0] : inner[1]].tobytes()
        elif number == 7:
            value = names.get(number_value, "")
    return names.get(key, str(key)), value
