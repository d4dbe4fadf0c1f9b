"""The protobuf wire format in plain Python, for messages that are small or read once.

Contract: needs neither numpy nor numba. Damage raises ValueError. `wire` reads the same format over
whole files.
"""

from __future__ import annotations

from collections.abc import Iterator

WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
_FIXED_LENGTHS = {WIRE_FIXED64: 8, WIRE_FIXED32: 4}


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
