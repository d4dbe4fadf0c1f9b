"""The replay of a program's plan, and what is alive at its peak."""

from __future__ import annotations

import numpy as np
import pytest
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
    shape_proto,
)
from marin_profile.analysis.memory import KINDS, ScopeMemory, peak_of, program_memory
from marin_profile.analysis.planes import CPU, GPU, TPU
from marin_profile.events.buffers import NOTHING
from marin_profile.readers.hlo_memory import read_buffer_plan


def replayed(*parts: bytes, space: int = 0) -> tuple[int, str, list[tuple[str, int]]]:
    """The peak, the instruction there and what is alive, as (kind, bytes) by rising buffer row."""
    proto = buffer_assignment(*parts)
    plan = read_buffer_plan(np.frombuffer(proto, np.uint8), 0, len(proto))
    assert plan is not None
    peak, at, live = peak_of(plan, space)
    return peak, "" if at == NOTHING else plan.names[at], [one[:2] for one in live]


def buffers(*sizes: int) -> bytes:
    """Buffers 1, 2, ... of these sizes."""
    return b"".join(logical_buffer(at, size) for at, size in enumerate(sizes, 1))


def temporaries(*events, sizes=(10, 20, 30)):
    peak, at, live = replayed(
        buffers(*sizes), allocation(99, *range(1, len(sizes) + 1)), heap_trace(*events)
    )
    assert {kind for kind, _ in live} <= {"temporary"}
    return peak, at, [size for _, size in live]


def test_the_peak_is_what_is_alive_at_once():
    """10 and 20 together; 30 comes after 10 has gone, and 20 stays: 50."""
    events = (
        ("alloc", 1, 0, "a"),
        ("alloc", 2, 0, "b"),
        ("free", 1, 0, "c"),
        ("alloc", 3, 0, "d"),
        ("free", 2, 0, "e"),
        ("free", 3, 0, "e"),
    )
    assert temporaries(*events) == (50, "d", [20, 30])


def test_of_two_equal_maxima_the_first_counts():
    events = (
        ("alloc", 1, 0, "first"),
        ("alloc", 2, 0, "second"),
        ("free", 1, 0, "x"),
        ("free", 2, 0, "x"),
        ("alloc", 3, 0, "third"),
    )
    assert temporaries(*events, sizes=(10, 20, 30)) == (30, "second", [10, 20])


def test_a_buffer_that_shares_takes_no_memory_and_keeps_the_other_alive():
    """2 shares 1: after the FREE of 1 its 10 bytes are still there when 3 comes; 40, not 30."""
    events = (
        ("alloc", 1, 0, "a"),
        ("share", 2, 1, "b"),
        ("free", 1, 0, "c"),
        ("alloc", 3, 0, "d"),
        ("free", 2, 0, "e"),
        ("free", 3, 0, "e"),
    )
    assert temporaries(*events) == (40, "d", [10, 30])


def test_a_share_after_the_last_free_makes_the_memory_alive_again():
    events = (
        ("alloc", 1, 0, "a"),
        ("free", 1, 0, "b"),
        ("alloc", 3, 0, "c"),
        ("share", 2, 1, "d"),
    )
    assert temporaries(*events) == (40, "d", [10, 30])


def test_shares_of_shares_are_of_the_first():
    events = (
        ("alloc", 1, 0, "a"),
        ("share", 2, 1, "b"),
        ("share", 3, 2, "c"),
        ("free", 1, 0, "d"),
        ("free", 2, 0, "d"),
        ("alloc", 4, 0, "e"),
        ("free", 3, 0, "f"),
    )
    assert temporaries(*events, sizes=(10, 20, 30, 5)) == (15, "e", [10, 5])


def test_a_buffer_may_share_a_later_ones_memory():
    events = (
        ("alloc", 3, 0, "a"),
        ("share", 1, 3, "b"),
        ("free", 3, 0, "c"),
        ("alloc", 2, 0, "d"),
        ("free", 1, 0, "e"),
    )
    assert temporaries(*events) == (50, "d", [20, 30])


def test_a_trace_that_begins_with_an_unknown_buffer_is_no_allocations():
    """Nor that of the last buffer's allocation: the other trace, with more events, is it."""
    parts = (
        buffers(10, 20),
        allocation(1, 2),
        heap_trace(("alloc", 77, 0, "a"), ("alloc", 1, 0, "a")),
        heap_trace(("alloc", 1, 0, "b"), ("free", 1), ("alloc", 78), ("alloc", 2, 0, "c")),
    )
    assert replayed(*parts)[:2] == (20, "c")


@pytest.mark.parametrize(
    "events",
    [
        [("free", 1)],
        [("share", 1, 1, "a"), ("free", 1)],
        [("share", 1, 2), ("share", 2, 1), ("alloc", 1)],
        [("alloc", 77), ("share", 1, 77), ("share", 77, 1), ("free", 77)],
    ],
)
def test_events_that_cannot_be_end(events):
    peak, _, live = temporaries(*events)
    assert peak == sum(live) <= 60


def test_what_stays_is_added_and_thread_local_memory_left_out():
    """Allocations count with their own size: 100 + 40 + 8. One whose buffers hold nothing, and one
    without buffers, do not count, nor what another space holds."""
    peak, at, live = replayed(
        buffers(90, 33, 8, 0, 500, 7),
        logical_buffer(9, 1000, space=5),
        allocation(100, 1, parameter=True, output=True),
        allocation(40, 2, output=True),
        allocation(8, 3, constant=True),
        allocation(64, 4, output=True),
        allocation(64, parameter=True),
        allocation(500, 5, thread_local=True),
        allocation(600, 5, thread_local=True, parameter=True),
        allocation(1000, 9, parameter=True, space=5),
        allocation(7, 6),
        heap_trace(("alloc", 6, 0, "t")),
    )
    assert (peak, at) == (155, "t")
    assert live == [("temporary", 7), ("parameter", 100), ("output", 40), ("constant", 8)]


def test_the_trace_is_that_of_the_spaces_first_allocation_that_does_not_stay():
    """The second trace has more events, but the first one's allocation comes first."""
    parts = (
        buffers(10, 20, 30, 40),
        allocation(1, 4, output=True),
        allocation(1, 1),
        allocation(1, 2, 3),
        heap_trace(("alloc", 2, 0, "other"), ("alloc", 3, 0, "other")),
        heap_trace(("alloc", 1, 0, "this")),
    )
    assert replayed(*parts) == (11, "this", [("temporary", 10), ("output", 1)])


def test_without_one_it_is_the_trace_with_most_events_of_the_space():
    parts = (
        logical_buffer(1, 10),
        logical_buffer(2, 20),
        logical_buffer(3, 30, space=1),
        heap_trace(("alloc", 1, 0, "a"), ("free", 77)),
        heap_trace(("alloc", 3, 0, "b"), ("alloc", 1, 0, "b"), ("alloc", 2, 0, "c")),
    )
    assert replayed(*parts)[:2] == (60, "c")
    assert replayed(*parts, space=1)[:2] == (60, "c")
    assert replayed(*parts, space=5) == (0, "", [])


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["alloc", "free", "share"]), st.integers(1, 6), st.integers(1, 6)
        ),
        max_size=30,
    )
)
def test_what_is_alive_sums_to_the_peak(events):
    sizes = [1, 2, 4, 8, 16]
    peak, _, live = temporaries(*events, sizes=sizes)
    assert peak == sum(live)
    assert set(live) <= set(sizes)
    assert len(set(live)) == len(live)


F32, TUPLE = 11, 13


def _program() -> Space:
    """Parameter of 1024 bytes in 1536; at the peak a temporary of 64 bytes in 512, second part of a
    tuple, beside one that no instruction defines."""
    module = hlo_proto(
        computation(
            1,
            2,
            instruction(
                "p.1", "parameter", id=1, op_name="state.embed", shape=shape_proto(F32, 16, 16)
            ),
            instruction(
                "fusion.2",
                "fusion",
                id=2,
                op_name="jit(step)/transpose(jvp(layer))/mlp/mul",
                shape=shape_proto(TUPLE, parts=[shape_proto(F32, 2), shape_proto(F32, 4, 4)]),
            ),
            instruction("add.3", "add", id=3, op_name="jit(step)/params/add"),
        )
    )
    plan = buffer_assignment(
        logical_buffer(1, 1536, instruction=1),
        logical_buffer(2, 512, instruction=2, index=[1]),
        logical_buffer(3, 256, instruction=44),
        allocation(1536, 1, parameter=True),
        allocation(2048, 2, 3),
        heap_trace(("alloc", 2, 0, "fusion.2"), ("alloc", 3, 0, "add.3")),
    )
    return Space().hlo(7, module + plan, module="jit_step")


def test_a_program():
    (row,) = program_memory(_program().timeline(), TPU)
    assert (row.program_id, row.module, row.space, row.is_whole) == (7, "jit_step", "hbm", True)
    assert (row.peak, row.instruction) == (2304, "add.3")
    assert (row.scope, row.pass_name) == (("jit(step)", "params"), "optimizer")
    assert [(one.kind, one.instruction, one.size) for one in row.buffers] == [
        ("parameter", "p.1", 1536),
        ("temporary", "fusion.2", 512),
        ("temporary", "", 256),
    ]
    embed, mlp, unknown = row.buffers
    assert (embed.argument, embed.shape, embed.padding) == ("state.embed", "f32[16,16]", 512)
    assert (mlp.argument, mlp.shape, mlp.padding) == ("", "f32[4,4]", 448)
    assert (unknown.shape, unknown.padding) == ("", None)
    assert dict(zip(KINDS, row.kinds, strict=True)) == {
        "parameter": 1536,
        "output": 0,
        "constant": 0,
        "temporary": 768,
    }
    assert row.scopes == (
        ScopeMemory((), "other", 1792, 2),
        ScopeMemory(("jit(step)", "layer", "mlp"), "backward", 512, 1),
    )
    assert (row.count, row.padding) == (3, 512 + 448)


def test_long_lists_end_with_their_rest():
    """Scope k of 30 has one buffer of k bytes: 11..30 are listed, the rest is 1 + ... + 10 = 55."""
    count = 30
    module = computation(
        1,
        1,
        *(
            instruction(f"a.{at}", "add", id=at, op_name=f"jit(f)/s{at:02}/add")
            for at in range(1, count + 1)
        ),
    )
    plan = buffer_assignment(
        *(logical_buffer(at, at, instruction=at) for at in range(1, count + 1)),
        *(allocation(at, at, output=True) for at in range(1, count + 1)),
    )
    (row,) = program_memory(Space().hlo(7, hlo_proto(module) + plan).timeline(), TPU)
    assert (row.peak, row.instruction, row.count) == (465, "", 30)
    assert [scope.size for scope in row.scopes] == [*range(30, 10, -1), 55]
    assert (row.scopes[0].scope, row.scopes[-1]) == (
        ("jit(f)", "s30"),
        ScopeMemory(None, "other", 55, 10),
    )
    assert [one.size for one in row.buffers] == list(range(30, 10, -1))
    assert row.padding is None


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (TPU, ["hbm", "vmem", "smem", "space 3", "host"]),
        (GPU, ["hbm", "collective", "space 2", "space 3", "host"]),
        (CPU, ["host", "space 1", "space 2", "space 3", "space 5"]),
    ],
)
def test_spaces_have_the_names_of_the_device(kind, names):
    """Space k holds 100 - k bytes."""
    spaces = (0, 1, 2, 3, 5)
    plan = buffer_assignment(
        *(logical_buffer(at + 1, 100 - at, space=at) for at in spaces),
        *(allocation(100 - at, at + 1, space=at, output=True) for at in spaces),
    )
    rows = program_memory(Space().hlo(7, hlo_proto() + plan).timeline(), kind)
    assert [row.space for row in rows] == names
    assert [row.peak for row in rows] == [100, 99, 98, 97, 95]


def test_the_fullest_programs_come_first_and_empty_spaces_not_at_all():
    """Program k of 40 needs k bytes, in space 5, and names space 0 with nothing in it."""
    space = Space()
    for size in range(1, 41):
        plan = buffer_assignment(
            logical_buffer(1, size, space=5),
            logical_buffer(2, 0),
            allocation(size, 1, space=5, output=True),
            allocation(0, 2, output=True),
        )
        space.hlo(size, hlo_proto() + plan, module="jit_f")
    rows = program_memory(space.timeline(), TPU)
    assert [(row.program_id, row.space, row.peak) for row in rows] == [
        (size, "host", size) for size in range(40, 8, -1)
    ]


def test_a_fusion_that_says_nothing_is_where_its_root_is():
    module = hlo_proto(
        computation(
            2,
            21,
            instruction("add.20", "add", id=20, op_name="jit(f)/attention/add"),
            instruction("mul.21", "multiply", id=21, op_name="jit(f)/mlp/mul"),
        ),
        computation(1, 1, instruction("fusion.1", "fusion", id=1, calls=[2])),
    )
    plan = buffer_assignment(
        logical_buffer(1, 8, instruction=1), allocation(8, 1, output=True), heap_trace()
    )
    (row,) = program_memory(Space().hlo(7, module + plan).timeline(), TPU)
    assert row.scopes == (ScopeMemory(("jit(f)", "mlp"), "other", 8, 1),)


def test_of_a_buffer_and_what_shares_it_the_peak_is_where_it_came():
    assert temporaries(("alloc", 1, 0, "a"), ("share", 2, 1, "b")) == (10, "a", [10])
    assert temporaries(("alloc", 1, 0, "a"), sizes=(1,)) == (1, "a", [1])


def test_the_trace_with_most_events_may_come_first():
    parts = (
        buffers(10, 20),
        logical_buffer(3, 30, space=1),
        heap_trace(("alloc", 1, 0, "a"), ("alloc", 2, 0, "b")),
        heap_trace(("alloc", 3, 0, "c"), ("free", 3), ("alloc", 3, 0, "d"), ("alloc", 1, 0, "e")),
    )
    assert replayed(*parts)[:2] == (30, "b")


def test_an_allocation_is_named_by_the_first_of_its_largest_buffers():
    names = ["small.1", "large.2", "large.3"]
    module = computation(
        1, 1, *(instruction(name, "add", id=at) for at, name in enumerate(names, 1))
    )
    plan = buffer_assignment(
        logical_buffer(1, 8, instruction=1),
        logical_buffer(2, 16, instruction=2, index=[5]),
        logical_buffer(3, 16, instruction=3),
        allocation(32, 1, 2, 3, output=True),
    )
    (row,) = program_memory(Space().hlo(7, hlo_proto(module) + plan).timeline(), TPU)
    assert [(one.instruction, one.size, one.shape) for one in row.buffers] == [("large.2", 32, "")]
