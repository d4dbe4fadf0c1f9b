"""HLO protos as they stand in an XPlane's /host:metadata: bytes -> instructions by name.

Contract: `read_hlo_proto(buffer, at, end)` gives the instructions of one serialized HloProto,
inner computations included. Field numbers are those of xla's hlo.proto and xla_data.proto.
Damage inside a proto gives the instructions read so far.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from marin_profile.events.replica_groups import LARGEST_LIST, Groups, iota_groups, mesh_groups
from marin_profile.events.timeline import (
    ConvolutionDims,
    HloComputation,
    HloInstruction,
    WindowDimension,
)
from marin_profile.readers.protobuf import WIRE_VARINT
from marin_profile.readers.wire import FIELD, LENGTH, VALUE, WIRE, packed_varints, walk

Buffer = NDArray[np.uint8]
Span = tuple[int, int]

# xla_data.proto, enum PrimitiveType
PRIMITIVE_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
    10: "f16", 11: "f32", 12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token",
    18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz",
    24: "f8e5m2fnuz", 25: "f8e4m3fnuz",
}  # fmt: skip
TUPLE = 13
DEEPEST_TUPLE = 32
# Millions of numbers; no program has that many operands, devices or dimensions of one thing.
MOST_BYTES_OF_LIST = 1 << 24


def text(buffer: Buffer, span: Span) -> str:
    """The bytes of a span as text; bytes that are no UTF-8 become U+FFFD."""
    return buffer[span[0] : span[1]].tobytes().decode("utf-8", "replace")


def fields(buffer: Buffer, span: Span) -> Iterator[tuple[int, int, Span]]:
    """The fields of a message: (number, varint value, content span; (0, 0) for a varint)."""
    rows, _ = walk(buffer, span[0], span[1])
    for row in rows:
        value = row[VALUE]
        if row[WIRE] == WIRE_VARINT:
            yield row[FIELD], value, (0, 0)
        else:
            yield row[FIELD], 0, (value, value + row[LENGTH])


def read_hlo_proto(buffer: Buffer, at: int, end: int) -> dict[str, HloInstruction]:
    instructions: dict[str, HloInstruction] = {}
    for number, _, module in fields(buffer, (at, end)):
        if number == 1:
            instructions.update(_read_module(buffer, module))
    return instructions


def device_count(buffer: Buffer, at: int, end: int) -> int:
    """How many devices the module is compiled for, 0 if it does not say: its device assignment (15)
    of replicas (1) and computations (2)."""
    count = 0
    for number, _, module in fields(buffer, (at, end)):
        for tag, _, assignment in fields(buffer, module) if number == 1 else ():
            if tag == 15:
                sizes = {inner: value for inner, value, _ in fields(buffer, assignment)}
                count = max(count, sizes.get(1, 0) * sizes.get(2, 0))
    return count if 0 < count <= LARGEST_LIST else 0


def _read_module(buffer: Buffer, module: Span) -> dict[str, HloInstruction]:
    raw: list[_RawInstruction] = []
    computations: dict[int, HloComputation] = {}
    for number, _, computation in fields(buffer, module):
        if number != 3:
            continue
        computation_id = root_id = 0
        first = len(raw)
        thread = ""
        for inner, value, span in fields(buffer, computation):
            if inner == 2:
                raw.append(_RawInstruction(buffer, span))
            elif inner == 5:
                computation_id = value
            elif inner == 6:
                root_id = value
            elif inner == 8:
                thread = text(buffer, span)
        own = raw[first:]
        root = next((item.name for item in own if item.id == root_id), "")
        names = tuple(item.name for item in own)
        computations[computation_id] = HloComputation(names, root, thread)
    by_id = {instruction.id: instruction for instruction in raw}
    by_name = {instruction.name: instruction for instruction in raw}
    return {item.name: item.resolve(by_id, by_name, computations) for item in raw}


class _RawInstruction:
    """An instruction whose operands and callees are still ids."""

    __slots__ = (
        "callees",
        "contracting",
        "convolution",
        "groups",
        "id",
        "name",
        "op_name",
        "opcode",
        "operand_ids",
        "pairs",
        "parameter_number",
        "shape",
        "target",
        "thread",
        "window",
    )

    def __init__(self, buffer: Buffer, span: Span) -> None:
        self.name = self.opcode = self.op_name = self.shape = self.target = self.thread = ""
        self.id = self.parameter_number = 0
        self.contracting: tuple[int, ...] | None = None
        self.window: tuple[WindowDimension, ...] = ()
        self.convolution: ConvolutionDims | None = None
        self.operand_ids: list[int] = []
        self.callees: list[int] = []
        self.groups: list[tuple[int, ...]] = []
        self.pairs: list[tuple[int, ...]] = []
        for number, value, inner in fields(buffer, span):
            if number == 1:
                self.name = text(buffer, inner)
            elif number == 2:
                self.opcode = text(buffer, inner)
            elif number == 3:
                self.shape = shape_text(buffer, inner)
            elif number == 7:
                for tag, _, content in fields(buffer, inner):
                    if tag == 2:
                        self.op_name = text(buffer, content)
            elif number == 9:
                self.parameter_number = value
            elif number == 15:
                self.window = _window(buffer, inner)
            elif number == 16:
                self.convolution = _convolution_dims(buffer, inner)
            elif number == 28:
                self.target = text(buffer, inner)
            elif number == 30:
                self.contracting = _contracting(buffer, inner)
            elif number == 43 and self.opcode == "custom-call":
                self.contracting = _contracting_in_config(text(buffer, inner))
            elif number == 35:
                self.id = value
            elif number == 36:
                self.operand_ids += repeated(buffer, value, inner)
            elif number == 38:
                self.callees += repeated(buffer, value, inner)
            elif number == 49:
                self.groups.append(_replica_group(buffer, inner))
            elif number == 52:
                ends = {tag: end for tag, end, _ in fields(buffer, inner)}
                self.pairs.append((ends.get(1, 0), ends.get(2, 0)))
            elif number == 79:
                self.thread = text(buffer, inner)
            elif number == 87:
                self.groups = [*_device_list_groups(buffer, inner)] or self.groups
            elif number == 93:
                self.groups = [*_mesh_groups(buffer, inner)] or self.groups

    def resolve(
        self,
        by_id: dict[int, _RawInstruction],
        by_name: dict[str, _RawInstruction],
        computations: dict[int, HloComputation],
    ) -> HloInstruction:
        """What runs inside an async instruction says what it is and which devices meet."""
        called = tuple(computations[callee] for callee in self.callees if callee in computations)
        root, thread = None, self.thread
        if self.opcode.startswith("async-") and called:
            root = by_name.get(called[0].root)
            thread = thread or called[0].thread
        groups = self.groups or (root.groups if root else [])
        return HloInstruction(
            opcode=self.opcode,
            op_name=self.op_name,
            shape=self.shape,
            operands=tuple(by_id[i].name for i in self.operand_ids if i in by_id),
            replica_groups=tuple(group for group in groups if group),
            source_target_pairs=tuple(self.pairs or (root.pairs if root else ())),
            wrapped_opcode=root.opcode if root else "",
            execution_thread=thread,
            called=called,
            parameter_number=self.parameter_number,
            custom_call_target=self.target,
            contracting=self.contracting,
            window=self.window,
            convolution=self.convolution,
        )


def _window(buffer: Buffer, span: Span) -> tuple[WindowDimension, ...]:
    """Per dimension (1) its size (1), stride (2), low padding (3), and the dilation of the window
    (5) and of what it runs over (6)."""
    dimensions = []
    for number, _, inner in fields(buffer, span):
        if number == 1:
            facts = {tag: value for tag, value, _ in fields(buffer, inner)}
            dimensions.append(
                WindowDimension(
                    size=facts.get(1, 0),
                    stride=max(1, facts.get(2, 1)),
                    padding_low=facts.get(3, 0),
                    window_dilation=max(1, facts.get(5, 1)),
                    base_dilation=max(1, facts.get(6, 1)),
                )
            )
    return tuple(dimensions)


def _convolution_dims(buffer: Buffer, span: Span) -> ConvolutionDims:
    """The kernel's input feature dimension (3), spatial dimensions of input (11), output (12)."""
    kernel_input_feature = 0
    spatial: dict[int, list[int]] = {11: [], 12: []}
    for number, value, inner in fields(buffer, span):
        if number == 3:
            kernel_input_feature = value
        elif number in spatial:
            spatial[number] += repeated(buffer, value, inner)
    return ConvolutionDims(tuple(spatial[11]), tuple(spatial[12]), kernel_input_feature)


def _contracting(buffer: Buffer, span: Span) -> tuple[int, ...]:
    """DotDimensionNumbers: the first operand's contracting dimensions (1)."""
    found: list[int] = []
    for number, value, inner in fields(buffer, span):
        if number == 1:
            found += repeated(buffer, value, inner)
    return tuple(found)


def _contracting_in_config(config: str) -> tuple[int, ...] | None:
    """The same from the backend config of a matrix product by a library."""
    if '"dot_dimension_numbers"' not in config:
        return None
    try:
        product = json.loads(config)["gemm_backend_config"]
        return tuple(map(int, product["dot_dimension_numbers"]["lhs_contracting_dimensions"]))
    except (ValueError, TypeError, KeyError):
        return None


def repeated(buffer: Buffer, value: int, span: Span) -> list[int]:
    """A repeated integer, packed or not; none where there are absurdly many."""
    if span == (0, 0):
        return [value]
    if span[1] - span[0] > MOST_BYTES_OF_LIST:
        return []
    return [value % (1 << 64) for value in packed_varints(buffer, *span)]


def _replica_group(buffer: Buffer, span: Span) -> tuple[int, ...]:
    ids: list[int] = []
    for number, value, inner in fields(buffer, span):
        if number == 1:
            ids += repeated(buffer, value, inner)
    return tuple(ids)


def _device_list_groups(buffer: Buffer, span: Span) -> Groups:
    """CollectiveDeviceListProto: explicit groups (1), or an iota list (2)."""
    explicit: list[tuple[int, ...]] = []
    for number, _, inner in fields(buffer, span):
        if number == 1:
            explicit.append(_replica_group(buffer, inner))
        elif number == 2:
            return _iota_groups(buffer, inner)
    return tuple(explicit)


def _iota_groups(buffer: Buffer, span: Span) -> Groups:
    """Groups (1), devices in each (2), dimensions (3), permutation (4)."""
    count = size = 0
    dims: list[int] = []
    permutation: list[int] = []
    for number, value, inner in fields(buffer, span):
        if number == 1:
            count = value
        elif number == 2:
            size = value
        elif number == 3:
            dims += repeated(buffer, value, inner)
        elif number == 4:
            permutation += repeated(buffer, value, inner)
    return iota_groups(count, size, tuple(dims), tuple(permutation))


def _mesh_groups(buffer: Buffer, span: Span) -> Groups:
    """Groups along axes of a mesh, as jax 0.11 writes them: the mesh's axes (1: name, size), and
    the axes of the group (2: index into them). Parts of an axis give no groups."""
    sizes: list[int] = []
    axes: list[int] = []
    for number, _, inner in fields(buffer, span):
        if number == 1:
            for tag, _, axis in fields(buffer, inner):
                if tag == 1:
                    sizes.append({n: value for n, value, _ in fields(buffer, axis)}.get(2, 1))
        elif number == 2:
            facts = {tag: value for tag, value, _ in fields(buffer, inner)}
            if 2 in facts:
                return ()
            axes.append(facts.get(1, 0))
    return mesh_groups(sizes, axes)


def shape_text(buffer: Buffer, span: Span, depth: int = 0) -> str:
    """As "f32[8,128]", tuples in parentheses; layouts and absurdly deep tuples are left out."""
    element = 0
    dimensions: list[int] = []
    parts: list[str] = []
    for number, value, inner in fields(buffer, span):
        if number == 2:
            element = value
        elif number == 3:
            dimensions += repeated(buffer, value, inner)
        elif number == 4 and depth < DEEPEST_TUPLE:
            parts.append(shape_text(buffer, inner, depth + 1))
    if element == TUPLE:
        return f"({', '.join(parts)})"
    name = PRIMITIVE_TYPES.get(element, "")
    return f"{name}[{','.join(map(str, dimensions))}]" if name else ""
