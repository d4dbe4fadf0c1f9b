"""Totals per op."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Space
from marin_profile.analysis.ops import merge_op_totals


def totals(space: Space, **options) -> dict[str, tuple[int, int, int]]:
    """(count, total, self) in us by name."""
    return {
        op.facts.name: (op.count, op.total // US, op.exclusive // US)
        for op in space.analyse(**options).ops
    }


def test_counts_and_times_by_hand():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("while.1", 0, 100, category="while")
    tpu.op("fusion.1", 10, 30).op("fusion.1", 60, 20)
    assert totals(space) == {"while.1": (1, 100, 50), "fusion.1": (2, 50, 50)}


def test_sums_over_devices():
    space = Space()
    for ordinal in range(3):
        space.tpu(ordinal).op("fusion.1", 0, 10 + ordinal)
    assert totals(space) == {"fusion.1": (3, 33, 33)}


def test_lengths_are_of_the_device_clock():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 0, device_start=5, device_duration=8_000)
    assert totals(space) == {"fusion.1": (1, 8_000, 8_000)}


def test_ops_of_two_programs_are_two_rows():
    space = Space()
    tpu = space.tpu(0)
    tpu.module("jit_f(1)", 0, 10).module("jit_f(2)", 10, 10)
    tpu.op("fusion.1", 0, 10).op("fusion.1", 10, 5)
    rows = [(op.module, op.program_id, op.exclusive // US) for op in space.analyse().ops]
    assert rows == [("jit_f", 1, 10), ("jit_f", 2, 5)]


def test_what_is_exposed():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("fusion", 0, 40, stream="Stream #1")
    gpu.kernel("ncclDevKernel_AllReduce_x", 20, 40, stream="Stream #2")
    gpu.kernel("MemcpyH2D", 50, 30, stream="Stream #3")
    exposed = {op.facts.name: op.exposed // US for op in space.analyse().ops}
    assert exposed == {"fusion": 40, "ncclDevKernel_AllReduce_x": 20, "MemcpyH2D": 20}


def test_the_steady_window_cuts():
    space = Space()
    tpu = space.tpu(0)
    for index in range(4):
        tpu.step(index, index * 100, 100)
        tpu.op("fusion.1", index * 100, 80)
    # Kept are the steps 1-3: three executions.
    (op,) = space.analyse(warmup_steps=1).ops
    assert (op.count, op.steady_count, op.steady_exclusive // US) == (4, 3, 240)


def test_the_order_is_by_self_time_then_name():
    space = Space()
    space.tpu(0).op("b", 0, 5).op("a", 5, 5).op("c", 10, 50)
    assert [op.facts.name for op in space.analyse().ops] == ["c", "a", "b"]


def test_merging_adds_up():
    space = Space()
    space.tpu(0).op("a", 0, 5, category="loop fusion")
    part = space.analyse().ops
    (merged,) = merge_op_totals([*part, *part])
    assert (merged.count, merged.total // US, merged.exclusive // US) == (2, 10, 10)


def test_concurrent_threads_of_a_cpu_device():
    space = Space()
    host = space.host()
    host.cpu_op("a", 0, 100, thread=1).cpu_op("b", 10, 20, thread=2)
    assert totals(space) == {"a": (1, 100, 100), "b": (1, 20, 20)}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 60), st.integers(0, 40)),
        min_size=1,
        max_size=14,
    )
)
def test_self_is_never_more_than_total(ops):
    space = Space()
    tpu = space.tpu(0)
    for name, start, duration in ops:
        tpu.op(name, start, duration)
    part = space.analyse()
    for op in part.ops:
        assert 0 <= op.exclusive <= op.total
        assert 0 <= op.exposed <= op.exclusive
        assert op.count == sum(name == op.facts.name for name, _, _ in ops)
        assert op.total == sum(d for name, _, d in ops if name == op.facts.name) * US
    ledger = part.devices[0].capture
    # Without partial overlap self times add up to the busy time; never to less.
    assert sum(op.exclusive for op in part.ops) >= ledger.compute


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_the_file_does_not_matter(seed):
    space = Space()
    tpu = space.tpu(0)
    for index, (name, start, duration) in enumerate(
        (("while.1", 0, 90), ("a", 0, 90), ("b", 0, 30), ("a", 30, 30), ("b", 30, 30))
    ):
        tpu.op(name, start, duration, flops=index)
    expected = [(op.facts.name, op.exclusive) for op in space.analyse().ops]
    from marin_profile.analysis.host import analyse_host

    found = analyse_host(space.timeline(seed), "", warmup_steps=1)
    assert [(op.facts.name, op.exclusive) for op in found.ops] == expected
