"""Collectives, who waits for whom, and the gaps before ops."""

from __future__ import annotations

from builders_xspace import Space, summary_of

ALL_REDUCE = "%all-reduce.2 = f32[1024]{0} all-reduce(f32[1024]{0} %p), replica_groups={{0,1,2,3}}"


def test_regions_of_gaps_come_by_time_then_by_op_then_by_region():
    """Idle for 20 us before c.1, for 10 before a.1 and b.1, and for 10 before each of two d.1."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("first.1", 0, 10, category="loop fusion")
    at = 10
    for name, region, idle in (
        ("b.1", "x", 10), ("d.1", "z", 10), ("d.1", "y", 10), ("a.1", "z", 10), ("c.1", "w", 20),
    ):  # fmt: skip
        tpu.op(name, at + idle, 10, category="loop fusion", scope=f"jit(f)/{region}/dot:")
        at += idle + 10
    rows = summary_of(space.analyse()).gap_region_contexts
    assert [(row.op_name, row.region_path, row.count, row.total_gap_duration) for row in rows] == [
        ("c.1", "jit(f)=>w=>dot", 1, 20.0),
        ("a.1", "jit(f)=>z=>dot", 1, 10.0),
        ("b.1", "jit(f)=>x=>dot", 1, 10.0),
        ("d.1", "jit(f)=>y=>dot", 1, 10.0),
        ("d.1", "jit(f)=>z=>dot", 1, 10.0),
    ]
    assert [row.avg_gap_duration for row in rows] == [20.0, 10.0, 10.0, 10.0, 10.0]


def test_collectives_by_kind_and_the_part_that_work_hides():
    """On each of two hosts: an all-reduce of 100 us, of which a gemm hides 50; two all-gathers of
    40 and 60 us, and a copy between devices that is none."""
    parts = []
    for host in ("a", "b"):
        space = Space()
        gpu = space.gpu(0)
        gpu.kernel("gemm", 0, 100)
        for name, at, length in (("AllReduce_Sum", 50, 100), ("AllGather", 200, 40),
                                 ("AllGather", 250, 60)):  # fmt: skip
            gpu.kernel(f"ncclDevKernel_{name}", at, length, stream="Stream #20(Kernel)")
        parts.append(space.analyse(host=host))
    rows = summary_of(*parts).communication_ops
    # Equally long: by name.
    assert [(row.collective, row.count, row.total_duration, row.avg_duration) for row in rows] == [
        ("all-gather", 4, 200, 50), ("all-reduce", 2, 200, 100),
    ]  # fmt: skip
    assert [(row.exposed_duration, row.overlapped_duration) for row in rows] == [
        (200, 0), (100, 100),
    ]  # fmt: skip


def test_the_longest_collective_comes_first():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("ncclDevKernel_AllGather", 0, 40).kernel("ncclDevKernel_AllReduce_Sum", 100, 41)
    rows = summary_of(space.analyse()).communication_ops
    assert [row.collective for row in rows] == ["all-reduce", "all-gather"]


def test_gaps_before_ops_by_hand():
    """20 and 40 us before c.1, 10 before b.1, and 1 ns before a.1, which is noise."""
    space = Space()
    gpu = space.gpu(0)
    for name, at in (("a.1", 0), ("c.1", 30), ("b.1", 50), ("c.1", 100), ("a.1", 110.001)):
        gpu.kernel(name, at, 10, hlo_op=name)
    c, b, noise = summary_of(space.analyse()).gap_before_ops
    assert (c.name, c.payload_op, c.marker_op, c.count) == ("c.1", "c.1", "c.1", 2)
    assert (c.total_gap_duration, c.max_gap_duration, c.avg_gap_duration) == (60, 40, 30)
    assert (c.account_count, c.account_gap_duration) == (None, None)
    assert (b.name, b.count, b.total_gap_duration) == ("b.1", 1, 10)
    assert (noise.payload_op, noise.marker_op, noise.count) == (None, None, 1)
    assert noise.total_gap_duration == 0.001


def waits(*late: int) -> Space:
    """Four steps of 1,000 us on as many devices: each waits in the all-reduce for the latest."""
    space = Space()
    last = max(late)
    for ordinal, own in enumerate(late):
        tpu = space.tpu(ordinal)
        for step in range(4):
            at = 1_000 * step
            tpu.step(step, at, 999).module("jit_f(1)", at, 900, run_id=step)
            tpu.op("dot.1", at, 100 + own, category="convolution")
            tpu.op("all-reduce.2", at + 100 + own, 50 + last - own, category="all-reduce",
                   long_name=ALL_REDUCE)  # fmt: skip
    return space


def test_who_waits_for_whom_by_hand():
    """In each step devices 0, 1 and 3 wait 300, 290 and 280 us for device 2. Devices 0 and 3 cause
    none: they come in the order of their numbers."""
    summary = summary_of(waits(0, 10, 300, 20).analyse())
    rows = {row.device: row for row in summary.stragglers}
    assert [row.device for row in summary.stragglers] == [
        f"/device:TPU:{ordinal}" for ordinal in (2, 0, 1, 3)
    ]
    assert [rows[f"/device:TPU:{ordinal}"].wait for ordinal in range(4)] == [900, 870, 0, 840]
    straggler = summary.stragglers[0]
    assert straggler.is_straggler
    assert (straggler.wait_caused, straggler.arrived_last, straggler.instances) == (2_610, 3, 3)
    assert straggler.exposed_wait_caused == 2_610
    # 870 us in each step, of three devices.
    assert straggler.delay_per_step == 290
    assert summary.straggler_hosts == []
