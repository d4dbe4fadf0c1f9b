"""HLO protos: opcodes, scopes, shapes, operands, groups, wrapped computations."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import (
    computation,
    hlo_proto,
    instruction,
    message,
    number,
    packed,
    shape_proto,
    varint,
)
from marin_profile.events.timeline import HloInstruction
from marin_profile.readers.hlo import read_hlo_proto
from patience import PATIENCE


def read(proto: bytes) -> dict[str, HloInstruction]:
    return read_hlo_proto(np.frombuffer(proto, np.uint8), 0, len(proto))


def one(**facts) -> HloInstruction:
    return read(hlo_proto(computation(1, 1, instruction("a.1", "add", id=1, **facts))))["a.1"]


def test_opcode_and_scope():
    found = one(op_name="jit(f)/shard_map/mlp_down/psum_invariant")
    assert (found.opcode, found.op_name) == ("add", "jit(f)/shard_map/mlp_down/psum_invariant")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (shape_proto(11, 8, 128), "f32[8,128]"),
        (shape_proto(16), "bf16[]"),
        (shape_proto(13, parts=[shape_proto(11, 2), shape_proto(8)]), "(f32[2], u32[])"),
        (shape_proto(99, 2), ""),
        (b"", ""),
    ],
)
def test_shapes(shape, expected):
    assert one(shape=shape).shape == expected


def test_unpacked_dimensions():
    assert one(shape=number(2, 11) + number(3, 4) + number(3, 5)).shape == "f32[4,5]"


@pytest.mark.parametrize("use_packed", [True, False])
def test_operands_are_named_and_wrapped_opcodes_found(use_packed):
    found = read(
        hlo_proto(
            computation(
                7,
                71,
                instruction("p", "parameter", id=70, use_packed=use_packed),
                instruction("gather.in", "all-gather", id=71, operands=[70], use_packed=use_packed),
            ),
            computation(
                1,
                12,
                instruction("arg", "parameter", id=10, use_packed=use_packed),
                instruction(
                    "ag-start",
                    "async-start",
                    id=11,
                    operands=[10],
                    calls=[7],
                    use_packed=use_packed,
                ),
                instruction(
                    "ag-done",
                    "async-done",
                    id=12,
                    operands=[11],
                    calls=[7],
                    use_packed=use_packed,
                ),
            ),
        )
    )
    assert found["ag-start"].operands == ("arg",)
    assert found["ag-start"].wrapped_opcode == "all-gather"
    assert found["ag-done"].operands == ("ag-start",)
    assert found["ag-done"].wrapped_opcode == "all-gather"
    assert found["arg"].wrapped_opcode == ""


def test_large_ids():
    """Instruction ids hold the computation's id in their upper half."""
    a, b = 5 << 32 | 1, 5 << 32 | 2
    found = read(
        hlo_proto(
            computation(
                5, b, instruction("a", "add", id=a), instruction("b", "neg", id=b, operands=[a])
            )
        )
    )
    assert found["b"].operands == ("a",)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"groups": [[0, 1, 2, 3], [4, 5, 6, 7]]}, 4),
        ({"groups": [[0], [1]]}, 1),
        ({"groups": [[0, 300]]}, 2),
        ({"groups": [[0, 1]], "use_packed": False}, 2),
        ({"iota_groups": (2, 8)}, 8),
    ],
)
def test_replica_group_sizes(facts, expected):
    groups = one(**facts).replica_groups
    assert (len(groups[0]) if groups else None) == expected


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_never_crash(content):
    assert isinstance(read(content), dict)


SOUND = hlo_proto(
    computation(
        3,
        31,
        instruction(
            "a.1",
            "all-reduce",
            op_name="jit(f)/a/b",
            id=31,
            shape=shape_proto(13, parts=[shape_proto(11, 2, 3)]),
            operands=[31],
            groups=[[0, 1]],
            iota_groups=(1, 2),
        ),
    )
)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_protos_never_crash(data):
    content = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert isinstance(read(bytes(content[: data.draw(st.integers(0, len(content)))])), dict)


def test_absurdly_deep_shapes_never_crash():
    shape = number(2, 13)
    for _ in range(1500):
        shape = number(2, 13) + message(4, shape)
    assert one(shape=shape).opcode == "add"


def with_groups(groups: bytes) -> tuple[tuple[int, ...], ...]:
    content = message(1, "a.1") + message(2, "all-reduce") + message(49, groups)
    return read(hlo_proto(message(2, content)))["a.1"].replica_groups


def test_a_list_of_a_million_is_read_at_once():
    begin = time.process_time()
    assert with_groups(packed(1, range(1_000_000))) == (tuple(range(1_000_000)),)
    assert time.process_time() - begin < PATIENCE / 20


def test_a_varint_of_more_than_ten_bytes_ends_the_list():
    assert with_groups(message(1, varint(7) + b"\x80" * 2_000_000 + b"\x01")) == ((7,),)


def test_damage_keeps_the_instructions_before_it():
    sound, other = instruction("a", "add", id=1), instruction("b", "neg", id=2)
    cut = message(2, sound) + message(2, other)[:-3]
    assert list(read(message(1, message(3, cut)))) == ["a"]
