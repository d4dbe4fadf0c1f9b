"""When a profile was taken, from an XPlane file, without reading its events.

Contract: `read_profile_window` walks the file's planes by their lengths and reads one small plane;
it seeks over everything else. It needs neither numpy nor numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from marin_profile.readers.protobuf import WIRE_BYTES, WIRE_VARINT, read_fields, read_varint

ENVIRONMENT_PLANE = "Task Environment"
START_STAT, STOP_STAT = "profile_start_time", "profile_stop_time"

_PLANE, _ID, _NAME, _STAT_METADATA, _STATS = 1, 1, 2, 5, 6
# A plane's id and name stand first; this many bytes hold them.
_HEAD_BYTES = 64
_LARGEST_ENVIRONMENT = 1 << 20


def read_profile_window(stream: BinaryIO) -> tuple[int, int] | None:
    """(profile_start_time, profile_stop_time) in epoch nanoseconds, or None if the file does not
    hold them or is damaged before them."""
    try:
        for at, length in _planes(stream):
            stream.seek(at)
            if _name(stream.read(min(length, _HEAD_BYTES))) != ENVIRONMENT_PLANE.encode():
                continue
            if length > _LARGEST_ENVIRONMENT:
                return None
            stream.seek(at)
            return _window(stream.read(length))
    except (ValueError, OverflowError):
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
        tag, inside = read_varint(head, 0)
        if tag & 7 != WIRE_BYTES:
            raise ValueError("a space holds messages only")
        length, inside = read_varint(head, inside)
        at += inside
        if tag >> 3 == _PLANE:
            yield at, length
        at += length


def _name(head: bytes) -> bytes:
    """The plane's name, if it stands among the first bytes."""
    at = 0
    while at < len(head):
        tag, at = read_varint(head, at)
        value, at = read_varint(head, at)
        if tag == _NAME << 3 | WIRE_BYTES:
            return head[at : at + value]
        if tag != _ID << 3 | WIRE_VARINT:
            return b""
    return b""


def _window(plane: bytes) -> tuple[int, int] | None:
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, _, content in read_fields(plane):
        if number == _STAT_METADATA:
            for tag, _, metadata in read_fields(content):
                if tag == 2:
                    facts = {inner: (value, text) for inner, value, text in read_fields(metadata)}
                    names[facts.get(1, (0, b""))[0]] = facts.get(2, (0, b""))[1]
        elif number == _STATS:
            numbers = {tag: value for tag, value, _ in read_fields(content)}
            values[numbers.get(1, 0)] = numbers.get(3, numbers.get(4, 0))
    by_name = {name: values[key] for key, name in names.items() if key in values}
    start, stop = by_name.get(START_STAT.encode()), by_name.get(STOP_STAT.encode())
    return None if start is None or stop is None else (start, stop)
