"""XSpace protobuf (`*.xplane.pb`) -> Timeline, straight from the wire format.

Contract
* Every event of every line becomes a row, zero-length and async ones included.
* Event stats that tell executions apart (run_id, correlation_id, ...) become sparse columns; those
  that tell ops apart (hlo_op, tf_op, program_id, ...) become part of the op.
* Damage never crashes: whole planes are used and a note names the byte offset of each other; a file
  with nothing usable raises BrokenInputError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from marin_profile.base.errors import BrokenInputError
from marin_profile.events.timeline import HloInstruction, Plane, Timeline
from marin_profile.readers.hlo import Buffer, Span, fields, read_hlo_proto, text
from marin_profile.readers.op_stats import Stat
from marin_profile.readers.plausible import checked
from marin_profile.readers.profile_window import ENVIRONMENT_PLANE, START_STAT, STOP_STAT
from marin_profile.readers.protobuf import WIRE_BYTES
from marin_profile.readers.whole_file import read_whole
from marin_profile.readers.wire import BROKEN, walk
from marin_profile.readers.xplane_events import EventColumns
from marin_profile.readers.xplane_planes import RawPlane, first_text

METADATA_PLANE = "/host:metadata"
_PROGRAM_ID = re.compile(r"\(([0-9]{1,20})\)$")
REPLACEMENT_CHARACTER = b"\xef\xbf\xbd"


def read_xplane(stream: BinaryIO, *, path: str) -> Timeline:
    """Read one `*.xplane.pb`; `path` is for messages. Raises BrokenInputError (see the module)."""
    buffer = _load(stream, path)
    space, broke_at = walk(buffer, 0, len(buffer))
    planes: list[RawPlane] = []
    damaged: list[int] = []
    hostname = ""
    for number, wire, at, length in space.tolist():
        if number == 1 and wire == WIRE_BYTES:
            plane = RawPlane.read(buffer, (at, at + length))
            if plane is None:
                damaged.append(at)
            else:
                planes.append(plane)
        elif number == 4 and wire == WIRE_BYTES and not hostname:
            hostname = text(buffer, (at, at + length))
    if not any(plane.lines or plane.stats or plane.metadata for plane in planes):
        raise BrokenInputError(_why_unreadable(buffer, path))
    if broke_at != BROKEN:
        damaged.append(int(broke_at))
    return checked(_assemble(buffer, planes, hostname, damaged, path))


def _load(stream: BinaryIO, path: str) -> Buffer:
    buffer = read_whole(stream, path=path)
    if not len(buffer):
        raise BrokenInputError(
            f"{path} is empty (0 bytes): the profiler wrote nothing, as it does when a capture "
            "exceeds protobuf's 2 GiB; capture fewer steps, or read the trace.json.gz beside it."
        )
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


def _window(stats: Mapping[str, Stat]) -> tuple[int, int] | None:
    start, stop = stats.get(START_STAT), stats.get(STOP_STAT)
    if isinstance(start, int) and isinstance(stop, int):
        return start, stop
    return None


def _assemble(
    buffer: Buffer, planes: list[RawPlane], hostname: str, damaged: list[int], path: str
) -> Timeline:
    environment = [plane for plane in planes if plane.name == ENVIRONMENT_PLANE]
    window = _window(environment[-1].decoded_stats(buffer)) if environment else None
    events = EventColumns.read(buffer, planes, window)
    hlo: dict[int, dict[str, HloInstruction]] = {}
    hlo_modules: dict[int, str] = {}
    for plane in planes:
        if plane.name == METADATA_PLANE:
            for program_id, name, instructions in _hlo_modules(buffer, plane):
                hlo[program_id], hlo_modules[program_id] = instructions, name
    notes = list(events.notes)
    notes += [
        f"{path} is cut or damaged at byte {at:,} of {len(buffer):,}: the plane there is lost, "
        "totals are lower bounds."
        for at in damaged
    ]
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
        hlo_modules=hlo_modules,
        hostname=hostname,
        window=window,
        notes=tuple(notes),
        truncated=bool(notes),
    )


def _hlo_modules(
    buffer: Buffer, plane: RawPlane
) -> Iterator[tuple[int, str, dict[str, HloInstruction]]]:
    """Program id, name and instructions of each module."""
    for key, span in plane.metadata.items():
        for number, _, stat in fields(buffer, span):
            if number != 5:
                continue
            for tag, _, content in fields(buffer, stat):
                if tag == 6:
                    yield *_program(buffer, span, key), read_hlo_proto(buffer, *content)


def _program(buffer: Buffer, metadata: Span, key: int) -> tuple[int, str]:
    """A module is registered as "jit_f(<program id>)"; its map key says the same."""
    name = first_text(buffer, metadata, 2)
    match = _PROGRAM_ID.search(name)
    return (int(match.group(1)), name[: match.start()]) if match else (key % (1 << 64), "")
