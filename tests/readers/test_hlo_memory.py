"""The buffer assignment of HLO protos."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import (
    Space,
    allocation,
    buffer_assignment,
    computation,
    heap_trace,
    hlo_proto,
    instruction,
    logical_buffer,
    message,
    number,
)
from marin_profile.events.buffers import NOTHING, BufferPlan
from marin_profile.readers.hlo_memory import read_buffer_plan

MODULE = hlo_proto(
    computation(
        1, 1, instruction("p.1", "parameter", id=1 << 32 | 1), instruction("add.2", "add", id=2)
    )
)
PLAN = buffer_assignment(
    logical_buffer(10, 64, instruction=1 << 32 | 1),
    logical_buffer(11, 32, instruction=2, index=[1, 0], space=5),
    logical_buffer(12, 16, instruction=99, index=[0, 1, 2, 3, 4]),
    allocation(64, 10, parameter=True),
    allocation(48, 11, 12, 13, space=5, output=True, thread_local=False),
    heap_trace(("alloc", 11, 0, "add.2"), ("free", 11, 0, "add.2"), ("share", 12, 11, "p.1")),
    heap_trace(),
    heap_trace(("alloc", 77)),
)


def read(proto: bytes) -> BufferPlan | None:
    return read_buffer_plan(np.frombuffer(proto, np.uint8), 0, len(proto))


def names(plan: BufferPlan, column: np.ndarray) -> list[str]:
    return ["" if at == NOTHING else plan.names[at] for at in column.tolist()]


def test_a_plan_as_columns():
    plan = read(MODULE + PLAN)
    assert plan is not None
    assert plan.is_whole
    buffers, allocations, events = plan.buffers, plan.allocations, plan.events
    assert buffers.size.tolist() == [64, 32, 16]
    assert buffers.space.tolist() == [0, 5, 0]
    assert names(plan, buffers.instruction) == ["p.1", "add.2", ""]
    assert buffers.index.tolist() == [[-1] * 4, [1, 0, -1, -1], [0, 1, 2, 3]]
    assert buffers.too_deep.tolist() == [False, False, True]
    assert allocations.size.tolist() == [64, 48]
    assert allocations.space.tolist() == [0, 5]
    assert allocations.is_parameter.tolist() == [True, False]
    assert allocations.is_output.tolist() == [False, True]
    assert not (allocations.is_thread_local | allocations.is_constant).any()
    assert allocations.holder.tolist() == [0, 1, 1, 1]
    assert allocations.held.tolist() == [0, 1, 2, NOTHING]
    assert events.first.tolist() == [0, 3, 3, 4]
    assert events.kind.tolist() == [0, 1, 2, 0]
    assert events.buffer.tolist() == [1, 1, 2, NOTHING]
    assert events.shares.tolist()[2] == 1
    assert names(plan, events.instruction) == ["add.2", "", "p.1", ""]


def test_a_proto_without_a_plan_has_none():
    assert read(MODULE) is None
    assert read(b"") is None
    empty = read(MODULE + buffer_assignment())
    assert empty is not None
    assert len(empty.buffers.size) == len(empty.events.kind) == 0


def test_sizes_that_cannot_be_are_no_plan():
    for size in (-1, 1 << 62, (1 << 63) - 1):
        assert read(buffer_assignment(logical_buffer(1, size), logical_buffer(2, size))) is None
        assert read(buffer_assignment(allocation(size), allocation(size))) is None


def test_a_cut_event_leaves_the_rest_and_says_so():
    cut = message(3, logical_buffer(1, 8) + message(4, message(1, b"\x10\x01\x22\x7f")))
    plan = read(MODULE + cut)
    assert plan is not None
    assert not plan.is_whole
    assert plan.buffers.size.tolist() == [8]
    assert plan.events.buffer.tolist() == [0]


def test_plans_stand_beside_their_programs():
    space = Space().hlo(7, MODULE + PLAN).hlo(8, MODULE)
    assert list(space.timeline().hlo_memory) == [7]
    assert set(space.timeline().hlo) == {7, 8}


@settings(max_examples=300)
@given(st.data())
def test_damage_never_crashes(data):
    content = bytearray(MODULE + PLAN)
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    plan = read(bytes(content[: data.draw(st.integers(0, len(content)))]))
    if plan is not None:
        count = len(plan.buffers.size)
        for rows in (plan.allocations.held, plan.events.buffer, plan.events.shares):
            assert ((rows >= NOTHING) & (rows < count)).all()
        for places in (plan.buffers.instruction, plan.events.instruction):
            assert ((places >= NOTHING) & (places < len(plan.names))).all()


@given(st.binary(max_size=80))
def test_random_bytes_never_crash(content):
    read(message(3, content))
    read(number(1, 1) + content)
