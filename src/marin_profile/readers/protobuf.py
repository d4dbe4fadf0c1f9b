"""The protobuf wire format in plain Python, for messages that are small or read once.

Contract: needs neither numpy nor numba. `read_varint` and `read_fields` raise ValueError on damage;
`walk_message` and what it is made of never do, and read nothing outside [at, end). `wire` reads the
same format over whole files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
BROKEN = -1
_FIXED_LENGTHS = {WIRE_FIXED64: 8, WIRE_FIXED32: 4}

# Number, wire type, value (varint or content offset), content length.
FieldRow = tuple[int, int, int, int]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned varint at `at`, and the offset behind it."""
    value = 0
    for index, byte in enumerate(data[at : at + LONGEST_VARINT]):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, at + index + 1
    raise ValueError("a varint is cut or too long")


def read_fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, varint value, content) of each field; content that is cut is given as far as it
    goes."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value, content = 0, b""
        if tag & 7 == WIRE_VARINT:
            value, at = read_varint(message, at)
        else:
            fixed = _FIXED_LENGTHS.get(tag & 7)
            length, at = (fixed, at) if fixed else read_varint(message, at)
            content = message[at : at + length]
            at += length
        yield tag >> 3, value, content


def signed_varint(data: Sequence[int], at: int, end: int) -> tuple[int, int]:
    """The varint at `at` as a signed number of 64 bits, and the offset behind it (BROKEN on
    damage)."""
    value = 0
    for shift in range(0, 7 * LONGEST_VARINT, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            value &= (1 << 64) - 1
            return (value if value < 1 << 63 else value - (1 << 64)), at
    return 0, BROKEN


def next_field(data: Sequence[int], at: int, end: int) -> tuple[int, int, int, int, int]:
    """The field at `at`: (number, wire type, value or content offset, content length, next)."""
    tag = data[at] if at < end else 128
    if tag < 128:
        at += 1
    else:
        tag, at = signed_varint(data, at, end)
    if tag < 8:
        return 0, 0, 0, 0, BROKEN
    wire = tag & 7
    if wire == WIRE_VARINT:
        value = data[at] if at < end else 128
        if value < 128:
            return tag >> 3, wire, value, 0, at + 1
        value, at = signed_varint(data, at, end)
        return tag >> 3, wire, value, 0, at
    if wire == WIRE_BYTES:
        length = data[at] if at < end else 128
        if length < 128:
            at += 1
        else:
            length, at = signed_varint(data, at, end)
    else:
        length = _FIXED_LENGTHS.get(wire, -1)
    if at < 0 or not 0 <= length <= end - at:
        return 0, 0, 0, 0, BROKEN
    return tag >> 3, wire, at, length, at + length


def walk_message(data: Sequence[int], at: int, end: int) -> tuple[list[FieldRow], int]:
    """The fields of a message, and where it broke or BROKEN."""
    rows: list[FieldRow] = []
    while at < end:
        number, wire, value, length, behind = next_field(data, at, end)
        if behind < 0:
            return rows, at
        rows.append((number, wire, value, length))
        at = behind
    return rows, BROKEN
