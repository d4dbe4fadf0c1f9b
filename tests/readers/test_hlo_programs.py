"""Whole programs out of HLO protos: every field of a node, by the bytes that were put in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from builders_xspace import (
    Space,
    computation,
    hlo_proto,
    instruction,
    message,
    number,
    packed,
    shape_proto,
)
from marin_profile.events.hlo_program import HloNode, HloProgram
from marin_profile.readers.hlo_programs import read_programs


def programs(*protos: bytes) -> list[HloProgram]:
    space = Space("h")
    space.host()
    for at, proto in enumerate(protos):
        space.hlo(7 + at, proto)
    return read_programs(io.BytesIO(space.encode()), path="h.xplane.pb")


def node(*more: bytes, **facts) -> HloNode:
    own = instruction("a.1", "add", id=1, **facts) + b"".join(more)
    (found,) = programs(hlo_proto(computation(3, 1, own)))
    return found.nodes["a.1"]


def test_computations_operands_and_calls():
    inner = computation(
        3,
        11,
        instruction("p", "parameter", id=10, parameter=2),
        instruction("n", "negate", id=11, operands=[10]),
    )
    outer = computation(
        9,
        21,
        instruction("x", "parameter", id=20, parameter=0),
        instruction("f", "fusion", id=21, operands=[20], calls=[3]),
    )
    module = (
        b"".join(message(3, one) for one in (inner, outer)) + number(6, 9) + message(1, "jit_f")
    )
    (found,) = programs(message(1, module))
    assert (found.name, found.program_id, found.entry) == ("jit_f", 7, 9)
    assert found.blocks[3].instructions == ("p", "n")
    assert found.blocks[9].root == "f"
    assert found.nodes["p"].number == 2
    assert (found.nodes["f"].operands, found.nodes["f"].called) == (("x",), (3,))


@pytest.mark.parametrize(("order", "layout"), [([1, 0], ""), ([0, 1], "{0,1}"), ([], "")])
def test_layouts(order, layout):
    shape = shape_proto(11, 8, 128) + message(5, packed(1, order))
    assert (node(shape=shape).shape, node(shape=shape).layout) == ("f32[8,128]", layout)


def test_layouts_of_a_tuple():
    turned = shape_proto(11, 8, 128) + message(5, packed(1, [0, 1]))
    whole = shape_proto(13, parts=[shape_proto(11, 8), turned])
    assert node(shape=whole).layout == "(,{0,1})"


def test_what_it_computes_by_is_told_apart_and_ids_are_not():
    own = node(contracting=[1])
    assert own.attributes == node(contracting=[1]).attributes
    assert own.attributes != node(contracting=[0]).attributes
    assert node(number(26, 5)).attributes == node().attributes == ""
    assert node(message(14, packed(0, [1]))).attributes != ""


def test_defaults_that_are_written_out_are_none():
    """A precision of (default, default), as newer versions write it."""
    assert node(message(51, packed(1, [0, 0]))).attributes == node().attributes


def test_a_constant_by_its_value():
    one, two, again = (node(message(8, value)).literal for value in (b"1", b"2", b"1"))
    assert one == again != two


def test_trips_of_a_loop():
    config = '{"known_trip_count":{"n":"24"},"known_init_step":{}}'
    assert (node(config=config).trips, node(config='{"n":"24"}').trips) == (24, None)


def test_where_it_stands():
    assert (
        node(message(7, message(2, "jit(f)/mlp/dot") + message(3, "a.py") + number(4, 12))).source
        == "a.py:12"
    )
    assert node(op_name="jit(f)/mlp/dot").op_name == "jit(f)/mlp/dot"


def test_where_it_stands_by_stack_frames():
    frames = b"".join(
        (
            message(1, "a.py"),
            message(1, "b.py"),
            message(3, number(1, 2) + number(2, 1) + number(3, 34)),
            message(4, number(1, 1)),
        )
    )
    own = instruction("a.1", "add", id=1) + message(7, number(15, 1))
    module = message(1, "jit_f") + message(17, frames) + message(3, computation(3, 1, own))
    (found,) = programs(message(1, module))
    assert found.nodes["a.1"].source == "b.py:34"


def test_donated_arguments():
    alias = message(1, packed(1, [0]) + number(2, 3) + packed(3, [1]))
    module = message(1, "jit_f") + message(8, alias)
    (found,) = programs(message(1, module))
    assert found.donated == (((0,), 3, (1,)),)


def test_groups_of_devices():
    assert node(groups=[[0, 1], [2, 3]]).groups == ((0, 1), (2, 3))


def test_programs_in_the_order_of_their_ids():
    found = programs(hlo_proto(name="jit_b"), hlo_proto(name="jit_a"))
    assert [one.program_id for one in found] == [7, 8]


def test_a_file_without_protos_has_no_programs():
    space = Space("h")
    space.host()
    assert read_programs(io.BytesIO(space.encode()), path="h.xplane.pb") == []


@pytest.mark.slow
def test_a_damaged_proto_gives_what_stands_before_the_damage():
    proto = hlo_proto(
        computation(
            3,
            2,
            *(instruction(f"a.{at}", "add", id=at, op_name="jit(f)/mlp/add") for at in range(1, 4)),
        )
    )
    for cut in range(len(proto)):
        for found in programs(proto[:cut]):
            assert list(found.nodes) == [f"a.{at}" for at in range(1, 4)][: len(found.nodes)]
        for at in range(0, cut, 7):
            programs(proto[:at] + b"\xff" + proto[at + 1 : cut])


def test_the_programs_of_a_real_capture(traces):
    """31 instructions by the number of messages in the proto; three outputs take over arguments."""
    (path,) = Path(traces, "tpu_v6e_4dev").rglob("*.xplane.pb")
    with path.open("rb") as stream:
        found = {one.name: one for one in read_programs(stream, path=str(path))}
    main = found["jit_f"]
    assert (len(main.nodes), len(main.donated)) == (31, 3)
