"""XSpace protobuf (`*.xplane.pb`) -> Timeline, straight from the wire format.

Contract
* Every event of every line becomes a row, zero-length and async ones included.
* Event stats that tell executions apart (run_id, correlation_id, ...) become sparse columns; those
  that tell ops apart (hlo_op, tf_op, program_id, ...) become part of the op.
* Damage never crashes: of a damaged plane the lines and metadata before the damage are used, and a
  note names its byte; a file with nothing usable raises BrokenInputError.
* A second plane of a name is left out, as no profile has one; lines and events that cannot be are
  left out too (`line_clocks`, `plausible`). All is counted and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from marin_profile.base.errors import BrokenInputError
from marin_profile.base.jit import expect
from marin_profile.base.text import plural
from marin_profile.events.buffers import BufferPlan
from marin_profile.events.timeline import HloInstruction, Plane, Timeline
from marin_profile.readers.hlo import Buffer, Span, device_count, fields, read_hlo_proto, text
from marin_profile.readers.hlo_memory import read_buffer_plan
from marin_profile.readers.op_stats import Stat
from marin_profile.readers.plausible import checked
from marin_profile.readers.profile_window import ENVIRONMENT_PLANE, START_STAT, STOP_STAT
from marin_profile.readers.protobuf import BROKEN, LONGEST_VARINT, WIRE_BYTES, read_varint
from marin_profile.readers.whole_file import read_whole
from marin_profile.readers.wire import walk
from marin_profile.readers.xplane_events import EventColumns
from marin_profile.readers.xplane_planes import RawPlane, first_text

METADATA_PLANE = "/host:metadata"
HOST_PLANE = "/host:CPU"
PLANE, HOSTNAME = 1, 4
SPACE_FIELDS = range(PLANE, HOSTNAME + 1)
_PROGRAM_ID = re.compile(r"\(([0-9]{1,20})\)$")
REPLACEMENT_CHARACTER = b"\xef\xbf\xbd"


def read_xplane(stream: BinaryIO, *, path: str) -> Timeline:
    """Read one `*.xplane.pb`; `path` is for messages. Raises BrokenInputError (see the module)."""
    buffer = _load(stream, path)
    space, broke_at = walk(buffer, 0, len(buffer))
    hostname = ""
    spans = []
    odd_fields = 0
    for number, wire, at, length in space:
        if wire != WIRE_BYTES or number not in SPACE_FIELDS:
            odd_fields += 1
        elif number == PLANE:
            spans.append((at, at + length))
        elif number == HOSTNAME and not hostname:
            hostname = text(buffer, (at, at + length))
    if broke_at != BROKEN:
        spans += _cut_plane(buffer, broke_at)
    read = [RawPlane.read(buffer, span) for span in spans]
    if all(plane.is_empty for plane in read):
        raise BrokenInputError(_why_unreadable(buffer, path))
    damaged = {plane.broke_at: plane.name for plane in read if plane.broke_at != BROKEN}
    if broke_at != BROKEN and read[-1].broke_at == BROKEN:
        damaged[broke_at] = ""
    planes, repeated = _one_per_name(read)
    doubts = _odd_fields(odd_fields, planes)
    return checked(_assemble(buffer, planes, hostname, damaged, repeated, doubts, path))


def _odd_fields(count: int, planes: list[RawPlane]) -> list[str]:
    """Fields of numbers that the format does not have: a newer format has them everywhere; a plane,
    line or event whose tag is damaged becomes one."""
    of_planes = [plane.odd_fields for plane in planes]
    of_lines = [line.odd_fields for plane in planes for line in plane.lines]
    for counts in (of_planes, of_lines):
        if 2 * sum(map(bool, counts)) <= len(counts):
            count += sum(counts)
    if not count:
        return []
    return [
        f"{plural(count, 'field')} of the file {'is' if count == 1 else 'are'} of a kind that the "
        "format does not have: the file may be damaged, and planes, lines or events lost."
    ]


def _cut_plane(buffer: Buffer, at: int) -> list[Span]:
    """The plane at `at` that reaches beyond the file's end: as far as it goes."""
    head = buffer[at : at + 2 * LONGEST_VARINT].tobytes()
    try:
        tag, behind = read_varint(head, 0)
        _, behind = read_varint(head, behind)
    except ValueError:
        return []
    return [(at + behind, len(buffer))] if tag == PLANE << 3 | WIRE_BYTES else []


def _one_per_name(read: list[RawPlane]) -> tuple[list[RawPlane], list[RawPlane]]:
    """The first plane of each name, and the others: a profile has no two."""
    planes: list[RawPlane] = []
    repeated: list[RawPlane] = []
    names: set[str] = set()
    for plane in read:
        (repeated if plane.name and plane.name in names else planes).append(plane)
        names.add(plane.name)
    return planes, repeated


def _load(stream: BinaryIO, path: str) -> Buffer:
    buffer = read_whole(stream, path=path)
    expect(len(buffer))
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
    buffer: Buffer,
    planes: list[RawPlane],
    hostname: str,
    damaged: Mapping[int, str],
    repeated: list[RawPlane],
    doubts: list[str],
    path: str,
) -> Timeline:
    """`damaged`: the bytes where planes are damaged, and their names."""
    environment = [plane for plane in planes if plane.name == ENVIRONMENT_PLANE]
    window = _window(environment[-1].decoded_stats(buffer)) if environment else None
    events = EventColumns.read(buffer, planes, window)
    events.doubts += doubts
    hlo: dict[int, dict[str, HloInstruction]] = {}
    hlo_modules: dict[int, str] = {}
    hlo_devices: dict[int, int] = {}
    hlo_memory: dict[int, BufferPlan] = {}
    for plane in planes:
        if plane.name == METADATA_PLANE:
            for program_id, name, proto in hlo_protos(buffer, plane):
                hlo[program_id], hlo_modules[program_id] = read_hlo_proto(buffer, *proto), name
                hlo_devices[program_id] = device_count(buffer, *proto)
                plan = read_buffer_plan(buffer, *proto)
                if plan is not None:
                    hlo_memory[program_id] = plan
    notes = list(events.notes)
    for at, name in damaged.items():
        lost = f"what stands behind it in {name}" if name else "the plane there"
        notes.append(
            f"{path} is cut or damaged at byte {at:,} of {len(buffer):,}: {lost} is lost, totals "
            "are lower bounds."
        )
    events.leave_out_planes(repeated)
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
        hlo_devices=hlo_devices,
        hlo_memory=hlo_memory,
        hostname=hostname,
        window=window,
        notes=tuple(notes),
        truncated=bool(notes) or events.has_lost_names,
        ends_early=not (hostname or environment or any(map(_is_host_plane, planes))),
    )


def _is_host_plane(plane: RawPlane) -> bool:
    return plane.name.startswith(HOST_PLANE)


def hlo_protos(buffer: Buffer, plane: RawPlane) -> Iterator[tuple[int, str, Span]]:
    """Program id, name and HLO proto of each module."""
    for key, span in plane.metadata.items():
        for number, _, stat in fields(buffer, span):
            if number != 5:
                continue
            for tag, _, content in fields(buffer, stat):
                if tag == 6:
                    yield *_program(buffer, span, key), content


def _program(buffer: Buffer, metadata: Span, key: int) -> tuple[int, str]:
    """A module is registered as "jit_f(<program id>)"; its map key says the same."""
    name = first_text(buffer, metadata, 2)
    match = _PROGRAM_ID.search(name)
    return (int(match.group(1)), name[: match.start()]) if match else (key % (1 << 64), "")
