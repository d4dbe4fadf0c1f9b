"""When a profile was taken, from an XPlane file, without reading its events.

Contract: `read_profile_window` walks the file's planes by their lengths and reads one small plane;
it needs neither numpy nor numba, and seeks over everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

ENVIRONMENT_PLANE = b"Task Environment"
START_STAT, STOP_STAT = b"profile_start_time", b"profile_stop_time"

_WIRE_VARINT, _WIRE_FIXED64, _WIRE_BYTES, _WIRE_FIXED32 = 0, 1, 2, 5
_PLANE, _ID, _NAME, _STAT_METADATA, _STATS = 1, 1, 2, 5, 6
# A plane's id and name stand first; this many bytes hold them.
_HEAD_BYTES = 64
_LARGEST_ENVIRONMENT = 1 << 20


def read_profile_window(stream: BinaryIO) -> tuple[int, int] | None:
    """(profile_start_time, profile_stop_time) in epoch nanoseconds, or None if the file does not
    tell them or is damaged before it does."""
    try:
        for at, length in _planes(stream):
            stream.seek(at)
            if _name(stream.read(min(length, _HEAD_BYTES))) != ENVIRONMENT_PLANE:
                continue
            if length > _LARGEST_ENVIRONMENT:
                return None
            stream.seek(at)
            return _window(stream.read(length))
    except (ValueError, IndexError, OverflowError):
        return None
    return None


def _planes(stream: BinaryIO) -> Iterator[tuple[int, int]]:
    """(offset, length) of each plane, in file order."""
    at = 0
    while True:
        stream.seek(at)
        head = stream.read(20)
        if not head:
            return
        tag, inside = _varint(head, 0)
        if tag & 7 != _WIRE_BYTES:
            raise ValueError("a space holds messages only")
        length, inside = _varint(head, inside)
        at += inside
        if tag >> 3 == _PLANE:
            yield at, length
        at += length


def _name(head: bytes) -> bytes:
    """The plane's name, if it stands among the first bytes."""
    at = 0
    while at < len(head):
        tag, at = _varint(head, at)
        value, at = _varint(head, at)
        if tag == _NAME << 3 | _WIRE_BYTES:
            return head[at : at + value]
        if tag != _ID << 3 | _WIRE_VARINT:
            return b""
    return b""


def _window(plane: bytes) -> tuple[int, int] | None:
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, _, content in _fields(plane):
        if number == _STAT_METADATA:
            for tag, _, metadata in _fields(content):
                if tag == 2:
                    facts = {inner: (value, text) for inner, value, text in _fields(metadata)}
                    names[facts.get(1, (0, b""))[0]] = facts.get(2, (0, b""))[1]
        elif number == _STATS:
            numbers = {tag: value for tag, value, _ in _fields(content)}
            values[numbers.get(1, 0)] = numbers.get(3, numbers.get(4, 0))
    by_name = {name: values[key] for key, name in names.items() if key in values}
    if START_STAT in by_name and STOP_STAT in by_name:
        return by_name[START_STAT], by_name[STOP_STAT]
    return None


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, varint value, content) of each field."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, content = 0, b""
        if tag & 7 == _WIRE_VARINT:
            value, at = _varint(message, at)
        else:
            fixed = {_WIRE_FIXED64: 8, _WIRE_FIXED32: 4}.get(tag & 7)
            length, at = (fixed, at) if fixed else _varint(message, at)
            content = message[at : at + length]
            at += length
        yield tag >> 3, value, content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("a varint is too long")
