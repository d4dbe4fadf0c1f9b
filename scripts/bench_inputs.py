"""What speed is measured on: the real TPU v6e capture, and files that repeat it in time.

MARIN_PROFILE_TRACES/tpu_v6e_4dev is repeated until a file has about as many events as asked for.
Such files are made once and kept in the cache folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from marin_profile.readers.protobuf import (
    WIRE_BYTES,
    WIRE_FIXED32,
    WIRE_FIXED64,
    WIRE_VARINT,
    read_varint,
)

CAPTURE = "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00"
XPLANE, JSON = "xplane", "json.gz"
_ENDINGS = {XPLANE: "xplane.pb", JSON: "trace.json.gz"}
PERIOD_PS = 100_000_000_000_000  # longer than the capture, so that repeats do not overlap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "marin-profile-bench"
    )


def small(kind: str) -> Path:
    """The capture as it is: 25,000 events."""
    return _traces() / CAPTURE / f"host0.{_ENDINGS[kind]}"


def repeated(kind: str, events: int, cache: Path) -> Path:
    """With `events` events, made where it is not there yet."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"repeated_{events}.{_ENDINGS[kind]}"
    if path.exists():
        return path
    partial = path.with_suffix(".tmp")
    if kind == XPLANE:
        partial.write_bytes(repeat_xplane(small(kind).read_bytes(), events))
    else:
        _write_json(partial, small(kind), events)
    partial.replace(path)
    return path


def cases(events: int, cache: Path) -> list[tuple[str, Path]]:
    """Small and large files of both kinds, with what to call them."""
    return [(f"v6e 25 k, {kind}", small(kind)) for kind in (XPLANE, JSON)] + [
        (f"repeated {events:,}, {kind}", repeated(kind, events, cache)) for kind in (XPLANE, JSON)
    ]


def _traces() -> Path:
    traces = os.environ.get("MARIN_PROFILE_TRACES")
    if not traces:
        sys.exit("MARIN_PROFILE_TRACES is not set: the bench repeats the real TPU capture in it.")
    return Path(traces)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """(number, varint value, content, raw field) of a message without fixed-width groups."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        value, content = 0, b""
        if wire == WIRE_VARINT:
            value, at = read_varint(data, at)
        else:
            fixed = {WIRE_FIXED64: 8, WIRE_FIXED32: 4}.get(wire)
            length, at = (fixed, at) if fixed else read_varint(data, at)
            content = data[at : at + length]
            at += length
        yield number, value, content, data[begin:at]


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | WIRE_BYTES) + _varint(len(content)) + content


def repeat_xplane(raw: bytes, events: int) -> bytes:
    """The capture's planes with every event repeated, each time PERIOD_PS later."""
    planes = [content for number, _, content, _ in _fields(raw) if number == 1]
    present = sum(
        1
        for plane in planes
        for number, _, line, _ in _fields(plane)
        if number == 3
        for inner, _, _, _ in _fields(line)
        if inner == 4
    )
    times = max(1, -(-events // present))
    out = bytearray()
    for plane in planes:
        names = {
            name: key
            for number, _, entry, _ in _fields(plane)
            if number == 5
            for key, name in [_stat_name(entry)]
        }
        offset_id = names.get(b"device_offset_ps", -1)
        stop_id = names.get(b"profile_stop_time", -1)
        body = bytearray()
        for number, _, content, raw_field in _fields(plane):
            if number == 3:
                body += _message(3, _repeat_line(content, offset_id, times))
            elif number == 6:
                body += _message(6, _later(content, stop_id, (times - 1) * PERIOD_PS // 1000))
            else:
                body += raw_field
        out += _message(1, bytes(body))
    return bytes(out)


def _later(stat: bytes, stop_id: int, nanoseconds: int) -> bytes:
    """The end of the profile, so much later; any other statistic as it is."""
    if not any(tag == 1 and value == stop_id for tag, value, _, _ in _fields(stat)):
        return stat
    return b"".join(
        _varint(tag << 3) + _varint(value + nanoseconds) if tag in (3, 4) else raw_field
        for tag, value, _, raw_field in _fields(stat)
    )


def _stat_name(entry: bytes) -> tuple[int, bytes]:
    key, name = 0, b""
    for number, value, content, _ in _fields(entry):
        if number == 1:
            key = value
        elif number == 2:
            name = next((inner for tag, _, inner, _ in _fields(content) if tag == 2), b"")
    return key, name


def _repeat_line(line: bytes, offset_id: int, times: int) -> bytes:
    header = bytearray()
    templates = []
    for number, _, content, raw_field in _fields(line):
        if number == 4:
            templates.append(_event_template(content, offset_id))
        else:
            header += raw_field
    body = header
    for index in range(times):
        shift = index * PERIOD_PS
        for rest, offset, device_offset in templates:
            event = rest + b"\x10" + _varint(offset + shift)
            if device_offset is not None:
                stat = b"\x08" + _varint(offset_id) + b"\x18" + _varint(device_offset + shift)
                event += _message(4, stat)
            body += _message(4, event)
    return bytes(body)


def _event_template(event: bytes, offset_id: int) -> tuple[bytes, int, int | None]:
    rest, offset, device_offset = bytearray(), 0, None
    for number, value, content, raw_field in _fields(event):
        if number == 2:
            offset = value
            continue
        if number == 4:
            values = {tag: inner for tag, inner, _, _ in _fields(content)}
            if values.get(1) == offset_id:
                device_offset = values.get(3, values.get(4))
                continue
        rest += raw_field
    return bytes(rest), offset, device_offset


_TS = re.compile(rb'"ts":([0-9.eE+-]+)')
_OFFSET = re.compile(rb'"device_offset_ps":"(\d+)"')


def _write_json(path: Path, source: Path, events: int) -> None:
    from isal import igzip

    payload = json.loads(gzip.decompress(source.read_bytes()))["traceEvents"]
    meta = [
        json.dumps(event, separators=(",", ":")).encode()
        for event in payload
        if event.get("ph") == "M"
    ]
    tracks: dict[tuple[int, int], list[bytes]] = {}
    for event in payload:
        if event.get("ph") == "X":
            text = json.dumps(event, separators=(",", ":")).encode()
            tracks.setdefault((event["pid"], event["tid"]), []).append(text)
    times = max(1, round(events / sum(map(len, tracks.values()))))
    period_us = PERIOD_PS // 1_000_000
    with igzip.open(path, "wb", compresslevel=2) as out:
        out.write(b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[')
        out.write(b",".join(meta) + b",")
        for track in tracks.values():
            parts = [_json_template(text) for text in track]
            for index in range(times):
                chunk = [_json_event(part, index, period_us) for part in parts]
                out.write(b",".join(chunk) + b",")
        out.write(b"{}]}")


def _json_template(text: bytes) -> tuple[bytes, float, bytes, int | None, bytes]:
    stamp = _TS.search(text)
    assert stamp is not None
    offset = _OFFSET.search(text)
    if offset is None:
        return text[: stamp.start(1)], float(stamp.group(1)), text[stamp.end(1) :], None, b""
    first, second = sorted((stamp.span(1), offset.span(1)))
    if first == offset.span(1):
        raise ValueError("args before ts")
    return (
        text[: first[0]],
        float(stamp.group(1)),
        text[first[1] : second[0]],
        int(offset.group(1)),
        text[second[1] :],
    )


def _json_event(
    part: tuple[bytes, float, bytes, int | None, bytes], index: int, period_us: int
) -> bytes:
    head, ts, middle, offset, tail = part
    stamp = b"%.17g" % (ts + index * period_us)
    if offset is None:
        return head + stamp + middle
    return head + stamp + middle + b"%d" % (offset + index * PERIOD_PS) + tail
