"""XSpace protobuf (`*.xplane.pb`) -> Timeline, straight from the wire format.

Contract
* Every event of every line becomes a row, zero-length and async ones included.
* Event stats that tell executions apart (run_id, correlation_id, ...) become sparse columns; those
  that tell ops apart (hlo_op, tf_op, program_id, ...) become part of the op.
* Damage never crashes: planes before a cut are used and the note names the byte offset; a file
  with nothing usable raises BrokenInputError.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import UnsupportedOperation
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from marin_profile.errors import BrokenInputError
from marin_profile.readers.hlo import fields, read_hlo_proto, text
from marin_profile.readers.wire import (
    BROKEN,
    EVENT_NUMBERS,
    FIELD,
    LENGTH,
    MISSING,
    VALUE,
    WIRE,
    WIRE_BYTES,
    line_header,
    scan_events,
    walk,
)
from marin_profile.timeline import (
    PS_PER_NS,
    HloInstruction,
    Int64s,
    Line,
    Op,
    Plane,
    Sparse,
    Timeline,
)

SOURCE_FORMAT = "xplane_pb"

# Stats that describe an op, wherever they stand (event metadata or event).
OP_STATS = (
    "long_name",
    "hlo_op",
    "hlo_module",
    "program_id",
    "hlo_category",
    "tf_op",
    "name",
    "source",
    "shape_with_layout",
    "flops",
    "model_flops",
    "bytes_accessed",
    "memcpy_details",
)
# On the host plane an event describes an op only if it has one of these.
OP_ANCHORS = ("hlo_op", "hlo_category", "long_name", "memcpy_details")

METADATA_PLANE = "/host:metadata"
ENVIRONMENT_PLANE = "Task Environment"
REPLACEMENT_CHARACTER = b"\xef\xbf\xbd"

Buffer = NDArray[np.uint8]
Span = tuple[int, int]
Stat = int | float | str | bytes


def read_xplane(stream: BinaryIO, *, path: str) -> Timeline:
    """Read one `*.xplane.pb`; `path` is for messages. Raises BrokenInputError (see the module)."""
    buffer = _load(stream, path)
    space, broke_at = walk(buffer, 0, len(buffer))
    planes: list[_RawPlane] = []
    hostname = ""
    for number, wire, at, length in space.tolist():
        if number == 1 and wire == WIRE_BYTES:
            plane = _RawPlane.read(buffer, (at, at + length))
            if plane is None:
                broke_at = at
                break
            planes.append(plane)
        elif number == 4 and wire == WIRE_BYTES and not hostname:
            hostname = text(buffer, (at, at + length))
    if not any(plane.lines or plane.stats or plane.metadata for plane in planes):
        raise BrokenInputError(_why_unreadable(buffer, path))
    return _assemble(buffer, planes, hostname, int(broke_at), path)


def read_profile_window(stream: BinaryIO) -> tuple[int, int] | None:
    """[profile_start_time, profile_stop_time] in epoch nanoseconds, if the file tells them."""
    try:
        buffer = _load(stream, "the file")
    except BrokenInputError:
        return None
    for number, _, span in fields(buffer, (0, len(buffer))):
        if number == 1 and _plane_name(buffer, span) == ENVIRONMENT_PLANE:
            plane = _RawPlane.read(buffer, span)
            if plane is not None:
                return _window(plane.decoded_stats(buffer))
    return None


def _load(stream: BinaryIO, path: str) -> Buffer:
    try:
        buffer: Buffer = np.memmap(stream, np.uint8, mode="r")  # type: ignore[call-overload]
    except (UnsupportedOperation, AttributeError, TypeError, OSError, ValueError):
        buffer = np.frombuffer(stream.read(), np.uint8)
    if not len(buffer):
        raise BrokenInputError(
            f"{path} is empty (0 bytes): the profiler wrote nothing, as it does when a capture "
            "exceeds protobuf's 2 GiB; capture fewer steps, or read the trace.json.gz beside it."
        )
    if len(buffer) > 2 and buffer[0] == 0x1F and buffer[1] == 0x8B:
        from isal import igzip

        try:
            return np.frombuffer(igzip.decompress(buffer.tobytes()), np.uint8)
        except (OSError, EOFError) as error:
            raise BrokenInputError(
                f"{path} is a damaged gzip file ({error}); copy it again from where it was made."
            ) from error
    return buffer


def _why_unreadable(buffer: Buffer, path: str) -> str:
    head = buffer[: 1 << 20].tobytes()
    if head.count(REPLACEMENT_CHARACTER) > max(8, len(head) // 1000):
        return (
            f"{path} is not a protobuf: damaged by a text conversion (U+FFFD all over); copy the "
            "original again in binary mode."
        )
    if head.lstrip()[:1] in (b"{", b"["):
        return f"{path} is JSON, not an XPlane protobuf; name it with --trace-file."
    return f"{path} is not an XPlane protobuf: no plane can be read; copy or capture it again."


def _plane_name(buffer: Buffer, span: Span) -> str:
    for number, _, inner in fields(buffer, span):
        if number == 2:
            return text(buffer, inner)
    return ""


@dataclass
class _RawPlane:
    """A plane whose events are not read yet; spans point into the file."""

    id: int = 0
    name: str = ""
    lines: list[_RawLine] = field(default_factory=list)
    metadata: dict[int, Span] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[Span] = field(default_factory=list)

    @staticmethod
    def read(buffer: Buffer, span: Span) -> _RawPlane | None:
        """None if the plane is damaged."""
        rows, broke_at = walk(buffer, span[0], span[1])
        if broke_at != BROKEN:
            return None
        plane = _RawPlane()
        for row in rows.tolist():
            number, value = row[FIELD], row[VALUE]
            inner = (value, value + row[LENGTH])
            is_message = row[WIRE] == WIRE_BYTES
            if number == 1 and not is_message:
                plane.id = value
            elif not is_message:
                continue
            elif number == 2:
                plane.name = text(buffer, inner)
            elif number == 3:
                plane.lines.append(_RawLine.read(buffer, inner))
            elif number == 4:
                key, content = _map_entry(buffer, inner)
                plane.metadata[key] = content
            elif number == 5:
                key, content = _map_entry(buffer, inner)
                plane.stat_names[key] = _first_text(buffer, content, 2)
            elif number == 6:
                plane.stats.append(inner)
        return plane

    def stat_id(self, name: str) -> int:
        """MISSING if the plane has no such stat."""
        return next((key for key, known in self.stat_names.items() if known == name), int(MISSING))

    def decoded_stats(self, buffer: Buffer) -> dict[str, Stat]:
        return dict(_decode_stat(buffer, span, self.stat_names) for span in self.stats)


@dataclass(frozen=True)
class _RawLine:
    id: int
    name: str
    timestamp_ns: int
    span: Span
    count: int

    @staticmethod
    def read(buffer: Buffer, span: Span) -> _RawLine:
        line_id, timestamp, name, display, count, _ = line_header(buffer, span[0], span[1])
        title = text(buffer, display) or text(buffer, name)
        return _RawLine(int(line_id), title, int(timestamp), span, int(count))


def _map_entry(buffer: Buffer, span: Span) -> tuple[int, Span]:
    """A protobuf map<int64, message> entry: key and the message's span."""
    key, content = 0, (0, 0)
    for number, value, inner in fields(buffer, span):
        if number == 1:
            key = value
        elif number == 2:
            content = inner
    return key, content


def _first_text(buffer: Buffer, span: Span, wanted: int) -> str:
    for number, _, inner in fields(buffer, span):
        if number == wanted:
            return text(buffer, inner)
    return ""


def _decode_stat(buffer: Buffer, span: Span, names: Mapping[int, str]) -> tuple[str, Stat]:
    """An XStat as (name, value); uint64 stays unsigned, int64 signed."""
    key = 0
    value: Stat = 0
    for number, number_value, inner in fields(buffer, span):
        if number == 1:
            key = number_value
        elif number == 2:
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


def _window(stats: Mapping[str, Stat]) -> tuple[int, int] | None:
    start, stop = stats.get("profile_start_time"), stats.get("profile_stop_time")
    if isinstance(start, int) and isinstance(stop, int):
        return start, stop
    return None


def _assemble(
    buffer: Buffer, planes: list[_RawPlane], hostname: str, broke_at: int, path: str
) -> Timeline:
    events = _Events.allocate(planes)
    for plane in planes:
        events.add_plane(buffer, plane)
    window = None
    hlo: dict[int, dict[str, HloInstruction]] = {}
    for plane in planes:
        if plane.name == METADATA_PLANE:
            hlo.update(_hlo_modules(buffer, plane))
        elif plane.name == ENVIRONMENT_PLANE:
            window = _window(plane.decoded_stats(buffer))
    notes = list(events.notes)
    if broke_at != BROKEN:
        notes.append(
            f"{path} is cut or damaged at byte {broke_at:,} of {len(buffer):,}: what stands before "
            "is used, totals are lower bounds."
        )
    return events.timeline(
        planes=tuple(
            Plane(
                name=plane.name,
                id=plane.id,
                stats={
                    key: value
                    for key, value in plane.decoded_stats(buffer).items()
                    if not isinstance(value, bytes)
                },
            )
            for plane in planes
        ),
        hlo=hlo,
        hostname=hostname,
        window=window,
        notes=tuple(notes),
        truncated=broke_at != BROKEN or bool(events.notes),
    )


def _hlo_modules(buffer: Buffer, plane: _RawPlane) -> dict[int, dict[str, HloInstruction]]:
    modules = {}
    for key, span in plane.metadata.items():
        for number, _, stat in fields(buffer, span):
            if number != 5:
                continue
            for tag, _, content in fields(buffer, stat):
                if tag == 6:
                    instructions = read_hlo_proto(buffer, content[0], content[1])
                    modules[_program_id(buffer, span, key)] = instructions
    return modules


def _program_id(buffer: Buffer, metadata: Span, key: int) -> int:
    """A module is registered as "jit_f(<program id>)"; its map key says the same."""
    name = _first_text(buffer, metadata, 2)
    _, _, tail = name.rpartition("(")
    return int(tail[:-1]) if tail[:-1].isdigit() and tail.endswith(")") else key % (1 << 64)


class _Events:
    """Collects the columns of all lines; sized once, filled in place."""

    def __init__(self, count: int, base_ns: int) -> None:
        self.start = np.empty(count, np.int64)
        self.duration = np.empty(count, np.int64)
        self.op = np.empty(count, np.int32)
        self.line = np.empty(count, np.int32)
        self.base_ns = base_ns
        self.filled = 0
        self.lines: list[Line] = []
        self.ops: dict[Op, int] = {}
        self.sparse_rows: list[list[Int64s]] = [[] for _ in EVENT_NUMBERS]
        self.sparse_values: list[list[Int64s]] = [[] for _ in EVENT_NUMBERS]
        self.dropped: dict[str, int] = {}
        self.notes: list[str] = []
        self.num_planes = 0

    @staticmethod
    def allocate(planes: list[_RawPlane]) -> _Events:
        filled = [line for plane in planes for line in plane.lines if line.count]
        base_ns = min((line.timestamp_ns for line in filled), default=0)
        return _Events(sum(line.count for line in filled), base_ns)

    def add_plane(self, buffer: Buffer, plane: _RawPlane) -> None:
        number_ids = np.array([plane.stat_id(name) for name in EVENT_NUMBERS], np.int64)
        key_ids = _known_ids(plane, OP_STATS)
        is_host = plane.name.startswith("/host:")
        anchor_ids = _known_ids(plane, OP_ANCHORS) if is_host else np.zeros(0, np.int64)
        if is_host and not len(anchor_ids):
            key_ids = anchor_ids
        describe = _OpDecoder(buffer, plane, keep_event_stats=bool(len(key_ids)))
        plane_index = self.num_planes
        self.num_planes += 1
        for line in plane.lines:
            first = self.filled
            self._add_events(buffer, line, number_ids, key_ids, anchor_ids, describe)
            self.lines.append(
                Line(plane_index, line.id, line.name, first, self.filled - first)
            )

    def _add_events(
        self,
        buffer: Buffer,
        line: _RawLine,
        number_ids: Int64s,
        key_ids: Int64s,
        anchor_ids: Int64s,
        describe: _OpDecoder,
    ) -> None:
        first, last = self.filled, self.filled + line.count
        local = np.empty(line.count, np.int64)
        numbers = np.empty((len(EVENT_NUMBERS), line.count + 1), np.int64)
        count, aggregated, negative, ids, spans, broke_at = scan_events(
            buffer,
            line.span[0],
            line.span[1],
            (line.timestamp_ns - self.base_ns) * PS_PER_NS,
            number_ids,
            key_ids,
            anchor_ids,
            self.start[first:last],
            self.duration[first:last],
            local,
            numbers,
        )
        self._drop("aggregated_event", int(aggregated))
        self._drop("negative_duration", int(negative))
        if broke_at != BROKEN:
            self._drop("damaged_event", line.count - int(count) - int(aggregated) - int(negative))
            self.notes.append(
                f"Line {line.name!r} is damaged at byte {int(broke_at):,}: its later events are lost."
            )
        to_global = np.array(
            [
                self.ops.setdefault(describe(int(key), (int(a), int(b))), len(self.ops))
                for key, (a, b) in zip(ids, spans.tolist(), strict=True)
            ],
            np.int32,
        )
        last = first + int(count)
        if count:
            self.op[first:last] = to_global[local[:count]]
        self.line[first:last] = len(self.lines)
        for slot in range(len(EVENT_NUMBERS)):
            if number_ids[slot] == MISSING:
                continue
            rows = np.flatnonzero(numbers[slot, :count] != MISSING)
            if len(rows):
                self.sparse_rows[slot].append(rows + first)
                self.sparse_values[slot].append(numbers[slot, rows])
        self.filled = last

    def _drop(self, reason: str, count: int) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def _sparse(self, slot: int) -> Sparse:
        if not self.sparse_rows[slot]:
            return Sparse.empty()
        return Sparse(
            np.concatenate(self.sparse_rows[slot]), np.concatenate(self.sparse_values[slot])
        )

    def timeline(
        self,
        *,
        planes: tuple[Plane, ...],
        hlo: Mapping[int, Mapping[str, HloInstruction]],
        hostname: str,
        window: tuple[int, int] | None,
        notes: tuple[str, ...],
        truncated: bool,
    ) -> Timeline:
        kept = slice(0, self.filled)
        start = self.start[kept]
        if len(start):
            start -= start.min()
        columns = dict(zip(EVENT_NUMBERS, map(self._sparse, range(len(EVENT_NUMBERS))), strict=True))
        device_start = columns["device_offset_ps"]
        if len(device_start):
            device_start = Sparse(
                device_start.rows, device_start.values - device_start.values.min()
            )
        return Timeline(
            source_format=SOURCE_FORMAT,
            planes=planes,
            lines=tuple(self.lines),
            ops=tuple(self.ops),
            line=self.line[kept],
            op=self.op[kept],
            start=start,
            duration=self.duration[kept],
            device_start=device_start,
            device_duration=columns["device_duration_ps"],
            run_id=columns["run_id"],
            correlation_id=columns["correlation_id"],
            step_num=columns["step_num"],
            device_ordinal=columns["device_ordinal"],
            hlo=hlo,
            hostname=hostname,
            profile_start_ns=window[0] if window else None,
            profile_stop_ns=window[1] if window else None,
            dropped=self.dropped,
            notes=notes,
            truncated=truncated,
        )


def _known_ids(plane: _RawPlane, names: tuple[str, ...]) -> Int64s:
    ids = [plane.stat_id(name) for name in names]
    return np.array([key for key in ids if key != MISSING], np.int64)


class _OpDecoder:
    """Describes a distinct op of one plane from its metadata and its first event."""

    def __init__(self, buffer: Buffer, plane: _RawPlane, *, keep_event_stats: bool) -> None:
        self._buffer = buffer
        self._plane = plane
        self._keep_event_stats = keep_event_stats
        self._is_host = plane.name.startswith("/host:")
        self._by_metadata: dict[int, tuple[str, str, dict[str, Stat]]] = {}

    def __call__(self, metadata_id: int, event: Span) -> Op:
        name, display, stats = self._metadata(metadata_id)
        if self._keep_event_stats:
            own = self._stats(event, 4)
            if not self._is_host or any(key in own for key in OP_ANCHORS):
                stats = stats | own
        return _op(name, display, stats)

    def _metadata(self, key: int) -> tuple[str, str, dict[str, Stat]]:
        if key not in self._by_metadata:
            name = display = ""
            span = self._plane.metadata.get(key, (0, 0))
            for number, _, inner in fields(self._buffer, span):
                if number == 2:
                    name = text(self._buffer, inner)
                elif number == 4:
                    display = text(self._buffer, inner)
            self._by_metadata[key] = (name, display, self._stats(span, 5))
        return self._by_metadata[key]

    def _stats(self, span: Span, field_number: int) -> dict[str, Stat]:
        decoded = (
            _decode_stat(self._buffer, inner, self._plane.stat_names)
            for number, _, inner in fields(self._buffer, span)
            if number == field_number
        )
        return {key: value for key, value in decoded if key in OP_STATS}


def _op(name: str, display: str, stats: Mapping[str, Stat]) -> Op:
    """On TPU the metadata's name is the HLO text and its display name the op's short name."""
    long_name = _text(stats, "long_name") or (name if display and name != display else "")
    hints = (_text(stats, "tf_op"), _text(stats, "name"))
    return Op(
        name=display or name,
        long_name=long_name,
        hlo_op=_text(stats, "hlo_op"),
        module=_text(stats, "hlo_module"),
        program_id=_integer(stats, "program_id"),
        category=_text(stats, "hlo_category"),
        scope_hints=tuple(hint for hint in hints if hint),
        source=_text(stats, "source"),
        shape=_text(stats, "shape_with_layout"),
        flops=_integer(stats, "flops"),
        model_flops=_integer(stats, "model_flops"),
        bytes_accessed=_integer(stats, "bytes_accessed"),
        memcpy_details=_text(stats, "memcpy_details"),
    )


def _text(stats: Mapping[str, Stat], key: str) -> str:
    value = stats.get(key, "")
    return value if isinstance(value, str) else str(value)


def _integer(stats: Mapping[str, Stat], key: str) -> int | None:
    """Integers may be written as text; anything else is unknown."""
    value = stats.get(key)
    if isinstance(value, int):
        return value % (1 << 64) if key == "program_id" else value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return int(value) if isinstance(value, float) and value.is_integer() else None
