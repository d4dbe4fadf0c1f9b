"""What a reader must know first."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of


def test_of_impossible_ops_the_longest_is_the_example():
    """At 1 TFLOP/s 10 ** 9 flops take 1 ms."""
    space = Space()
    tpu = space.tpu(0, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=1.0)
    tpu.op("add.9", 0, 500, flops=1_000, bytes_accessed=1, category="loop fusion")
    for at, (name, length) in enumerate((("dot.1", 10), ("dot.2", 30), ("dot.3", 20))):
        tpu.op(name, 500 + 50 * at, length, flops=10**9, bytes_accessed=1, category="convolution")
    (found,) = [
        note
        for note in summary_of(space.analyse()).trace_overview.quality_warnings
        if "exceed" in note
    ]
    assert found.startswith("3 ops would exceed the device's peaks (for example dot.2): ")


def test_a_clock_conflict_of_part_of_a_millisecond():
    """The ops begin 1.5 ms before their launch."""
    space = Space()
    space.host().call("Execute", 2_500, 1, run_id=1)
    space.tpu(0).module("jit_f(1)", 1_000, 50, run_id=1).op("dot.1", 1_000, 50)
    (found,) = [
        note
        for note in summary_of(space.analyse()).trace_overview.quality_warnings
        if "Clock conflict" in note
    ]
    assert found.endswith("cannot be compared to better than 1.500 ms.")


def test_of_ops_without_hlo_the_longest_100_are_listed():
    space = Space()
    gpu = space.gpu(0)
    for at in range(103):
        gpu.kernel(f"k{at:03}", 200 * at, 10 + at)
    listed = summary_of(space.analyse()).coverage.unattributed_ops
    assert [op.name for op in listed] == [f"k{at:03}" for at in range(102, 2, -1)]
    assert [op.exclusive_duration for op in listed] == [10.0 + at for at in range(102, 2, -1)]
    assert {(op.count, op.reason) for op in listed} == {(1, "the event names no HLO op")}


@pytest.mark.parametrize(
    ("hlo_op", "why"), [("", ""), ("command_buffer.2", " (command buffer)"), ("dot.2", None)]
)
def test_the_share_of_op_time_without_hlo(hlo_op, why):
    """30 of 40 us name an op."""
    space = Space()
    space.gpu(0).kernel("a", 0, 30, hlo_op="dot.1").kernel("b", 30, 10, hlo_op=hlo_op)
    summary = summary_of(space.analyse())
    found = [note for note in summary.trace_overview.quality_warnings if "attribution" in note]
    share = 1 if why is None else 0.75
    assert summary.coverage.hlo_attributed_share == share
    assert found == ([] if share == 1 else [f"25.0 % of op time has no HLO attribution{why}."])


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (None, "There is only one step: it has a length, but no statistics."),
        (range(3), "There is only one whole step: it has a length, but no statistics."),
        (range(9), None),
    ],
)
def test_one_whole_step_has_no_statistics(last, text):
    """A step of nine ops, and another one that has all of them, or three."""
    space = Space()
    tpu = space.tpu(0)
    for step, ops in enumerate((range(9), last)):
        for op in ops or ():
            at = 100 * step + 10 * op
            tpu.module("jit_f(1)", at, 10 * len(ops)) if op == 0 else None
            tpu.op(f"fusion.{op}", at, 10)
    notes = summary_of(space.analyse()).trace_overview.quality_warnings
    assert [note for note in notes if "There is only one" in note] == ([text] if text else [])


def test_empty_devices_are_named_with_their_host_where_there_are_several():
    def host() -> Space:
        space = Space()
        space.gpu(0).kernel("k", 0, 5)
        space.gpu(1)
        return space

    alone = summary_of(host().analyse(host="a"))
    assert alone.coverage.empty_devices == ["/device:GPU:1"]
    both = summary_of(host().analyse(host="a"), host().analyse(host="b"))
    assert both.coverage.empty_devices == ["a/device:GPU:1", "b/device:GPU:1"]
    (note,) = [note for note in both.trace_overview.quality_warnings if "planes are empty" in note]
    assert note == (
        "2 of 4 device planes are empty and left out of every sum: a/device:GPU:1, b/device:GPU:1."
    )
