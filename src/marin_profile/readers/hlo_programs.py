"""The HLO protos of an `*.xplane.pb` -> HloProgram, with all that tells two programs apart.

Contract: only the plane of the protos is read. Field numbers are those of xla's hlo.proto and
xla_data.proto. Damage inside a proto gives the instructions read so far. A file that is no XPlane,
or holds no protos, gives none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, BinaryIO

from marin_profile.events.hlo_program import HloBlock, HloNode, HloProgram
from marin_profile.events.replica_groups import Groups
from marin_profile.readers.hlo import (
    DEEPEST_TUPLE,
    TUPLE,
    Buffer,
    Span,
    fields,
    read_hlo_proto,
    repeated,
    shape_text,
    text,
)
from marin_profile.readers.whole_file import read_whole
from marin_profile.readers.wire import walk
from marin_profile.readers.xplane import METADATA_PLANE, PLANE, hlo_protos
from marin_profile.readers.xplane_planes import RawPlane, plane_name

# What an instruction computes by: dimensions, windows, slices, paddings, directions, precisions.
_ATTRIBUTES = frozenset(
    {14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 30, 31, 32, 33, 34, 47, 48, 50, 51, 58, 60}
    | {62, 63, 64}
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"([0-9]{1,18})"')


def read_programs(stream: BinaryIO, *, path: str) -> list[HloProgram]:
    """In the order of their ids. Raises BrokenInputError where the file cannot be read at all."""
    buffer = read_whole(stream, path=path)
    found = []
    for number, _, at, length in walk(buffer, 0, len(buffer))[0]:
        span = (at, at + length)
        if number == PLANE and length and plane_name(buffer, span) == METADATA_PLANE:
            for program_id, name, proto in hlo_protos(buffer, RawPlane.read(buffer, span)):
                groups = {
                    own: one.replica_groups or one.source_target_pairs
                    for own, one in read_hlo_proto(buffer, *proto).items()
                }
                found += [
                    _module(buffer, module, name, program_id, groups)
                    for tag, _, module in fields(buffer, proto)
                    if tag == 1
                ]
    return sorted(found, key=lambda program: (program.program_id, program.name))


def _module(
    buffer: Buffer, span: Span, name: str, program_id: int, groups: Mapping[str, Groups]
) -> HloProgram:
    nodes: dict[str, HloNode] = {}
    blocks: dict[int, HloBlock] = {}
    donated: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []
    computations: list[Span] = []
    frames: Mapping[int, str] = {}
    entry = 0
    for number, value, inner in fields(buffer, span):
        if number == 1:
            name = name or text(buffer, inner)
        elif number == 3:
            computations.append(inner)
        elif number == 6:
            entry = value
        elif number == 8:
            donated += _aliases(buffer, inner)
        elif number == 17:
            frames = _frames(buffer, inner)
    for computation in computations:
        block_id, block, own = _computation(buffer, computation, frames)
        blocks[block_id] = block
        nodes |= {key: replace(node, groups=groups.get(key, ())) for key, node in own.items()}
    return HloProgram(name, program_id, nodes, blocks, entry, tuple(sorted(donated)))


def _computation(
    buffer: Buffer, span: Span, frames: Mapping[int, str]
) -> tuple[int, HloBlock, dict[str, HloNode]]:
    raw = []
    block_id = root_id = 0
    for number, value, inner in fields(buffer, span):
        if number == 2:
            raw.append(_instruction(buffer, inner, frames))
        elif number == 5:
            block_id = value
        elif number == 6:
            root_id = value
    names = {one_id: node["name"] for one_id, node, _ in raw}
    nodes = {
        node["name"]: HloNode(
            **node, operands=tuple(names[one] for one in operands if one in names)
        )
        for _, node, operands in raw
    }
    return block_id, HloBlock(tuple(nodes), names.get(root_id, "")), nodes


def _instruction(
    buffer: Buffer, span: Span, frames: Mapping[int, str]
) -> tuple[int, dict[str, Any], list[int]]:
    """Its id, the fields of a node but operands, and their ids."""
    own: dict[str, Any] = {"name": ""}
    instruction_id = 0
    operands: list[int] = []
    called: list[int] = []
    parts: list[tuple[int, int, bytes]] = []
    for number, value, inner in fields(buffer, span):
        if number in _ATTRIBUTES:
            if value or _says_something(buffer, number, inner):
                parts.append((number, value, buffer[inner[0] : inner[1]].tobytes()))
        elif number in (1, 2, 28):
            own[{1: "name", 2: "opcode", 28: "target"}[number]] = text(buffer, inner)
        elif number == 3:
            own["shape"], own["layout"] = shape_text(buffer, inner), _layout(buffer, inner)
        elif number == 7:
            own["op_name"], own["source"] = _metadata(buffer, inner, frames)
        elif number == 8:
            own["literal"] = _digest(buffer[inner[0] : inner[1]].tobytes())
        elif number in (9, 13):
            own["number"] = value
        elif number == 35:
            instruction_id = value
        elif number == 36:
            operands += repeated(buffer, value, inner)
        elif number == 38:
            called += repeated(buffer, value, inner)
        elif number == 43:
            config = text(buffer, inner)
            trips = _TRIPS.search(config)
            own["config"] = _digest(config.encode())
            own["trips"] = int(trips.group(1)) if trips else None
    parts.sort()
    own["attributes"] = _digest(repr(parts).encode()) if parts else ""
    own["called"] = tuple(called)
    return instruction_id, own, operands


def _says_something(buffer: Buffer, number: int, span: Span) -> bool:
    """A precision (51: that of each operand, 1) of nothing but defaults may be written or not."""
    if number != 51:
        return span[1] > span[0]
    return any(
        any(repeated(buffer, value, inner)) if tag == 1 else bool(value)
        for tag, value, inner in fields(buffer, span)
    )


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def _metadata(buffer: Buffer, span: Span, frames: Mapping[int, str]) -> tuple[str, str]:
    """Scope path (2) and where it stands: file (3) and line (4), or a stack frame (15)."""
    op_name = file = ""
    line = frame = 0
    for number, value, inner in fields(buffer, span):
        if number == 2:
            op_name = text(buffer, inner)
        elif number == 3:
            file = text(buffer, inner)
        elif number == 4:
            line = value
        elif number == 15:
            frame = value
    return op_name, f"{file}:{line}" if file else frames.get(frame, "")


def _frames(buffer: Buffer, span: Span) -> dict[int, str]:
    """Of a StackFrameIndexProto: files (1), locations (3: file, -, line) and frames (4: location),
    each counted from 1."""
    files: list[str] = []
    locations: list[dict[int, int]] = []
    frames: list[int] = []
    for number, _, inner in fields(buffer, span):
        if number == 1:
            files.append(text(buffer, inner))
        elif number in (3, 4):
            facts = {tag: value for tag, value, _ in fields(buffer, inner)}
            if number == 3:
                locations.append(facts)
            else:
                frames.append(facts.get(1, 0))
    found = {}
    for at, location in enumerate(frames, start=1):
        if 0 < location <= len(locations):
            facts = locations[location - 1]
            file = facts.get(1, 0)
            if 0 < file <= len(files):
                found[at] = f"{files[file - 1]}:{facts.get(3, 0)}"
    return found


def _aliases(buffer: Buffer, span: Span) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """HloInputOutputAliasProto: output index (1), parameter (2), index inside it (3)."""
    for number, _, inner in fields(buffer, span):
        if number == 1:
            parameter = 0
            output: list[int] = []
            index: list[int] = []
            for tag, value, content in fields(buffer, inner):
                if tag == 1:
                    output += repeated(buffer, value, content)
                elif tag == 2:
                    parameter = value
                elif tag == 3:
                    index += repeated(buffer, value, content)
            yield tuple(output), parameter, tuple(index)


def _layout(buffer: Buffer, span: Span, depth: int = 0) -> str:
    """Of each array; memory spaces and tiles left out."""
    element = 0
    own = ""
    parts: list[str] = []
    for number, value, inner in fields(buffer, span):
        if number == 2:
            element = value
        elif number == 4 and depth < DEEPEST_TUPLE:
            parts.append(_layout(buffer, inner, depth + 1))
        elif number == 5:
            order: list[int] = []
            for tag, dimension, content in fields(buffer, inner):
                if tag == 1:
                    order += repeated(buffer, dimension, content)
            if order != sorted(order, reverse=True):
                own = f"{{{','.join(map(str, order))}}}"
    if element == TUPLE:
        return f"({','.join(parts)})" if any(part.strip("(,)") for part in parts) else ""
    return own
