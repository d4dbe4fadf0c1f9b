"""Collectives: instances, bytes, what hides them, bandwidth by the nccl-tests convention."""

from fractions import Fraction

import pytest

from builders_xspace import (
    US,
    Space,
    collectives_of,
    computation,
    hlo_proto,
    instruction,
    shape_proto,
    summarize_spaces,
)
from marin_profile.analysis.collectives.bandwidth import bus_factor
from marin_profile.analysis.collectives.waits import MergedCollectives, bandwidth


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        ("all-reduce", 4, 1.5),
        ("all-reduce", 8, 1.75),
        ("all-gather", 4, 0.75),
        ("reduce-scatter", 8, 0.875),
        ("all-to-all", 2, 0.5),
        ("collective-permute", 8, 1.0),
        ("broadcast", None, 1.0),
        ("all-reduce", None, None),
        # Alone it sends nothing; of other kinds nccl-tests says nothing.
        ("all-reduce", 1, None),
        ("all-gather", 0, None),
        ("send", 2, None),
    ],
)
def test_bus_factors(kind, size, expected):
    assert bus_factor(kind, size) == expected


def collective(
    space_shape: str, kind: str, *, groups: str = "replica_groups={{0,1,2,3}}", durations=(10,)
) -> Space:
    space = Space()
    text = f"%x.1 = {space_shape} {kind}(f32[1]{{0}} %p), {groups}"
    for ordinal, duration in enumerate(durations):
        space.tpu(ordinal).op("x.1", 0, duration, category=kind, long_name=text)
    return space


def row(space: Space):
    (found,) = collectives_of(space).rows
    return found


@pytest.mark.parametrize(
    ("shape", "kind", "expected"),
    [
        ("f32[1000]{0}", "all-reduce", 4_000),
        ("bf16[10,100]{1,0}", "all-gather", 2_000),
        # The result is one shard of the full tensor.
        ("f32[250]{0}", "reduce-scatter", 4_000),
        ("(f32[100]{0}, bf16[100]{0})", "all-reduce", 600),
        ("s8[16]{0}", "collective-permute", 16),
        ("token[]", "all-reduce", None),
    ],
)
def test_bytes_of_the_full_tensor(shape, kind, expected):
    assert row(collective(shape, kind)).payload == expected


def test_bandwidth_and_wait_by_hand():
    """4,000,000 bytes; devices take 10, 12, 14 and 20 us: the last to arrive did not wait."""
    found = row(collective("f32[1000000]{0}", "all-reduce", durations=(12, 10, 20, 14)))
    assert (found.kind, found.group_size, found.count) == ("all-reduce", 4, 4)
    assert found.duration == 56 * US
    assert found.wire == 40 * US
    assert found.wait == 16 * US
    assert found.payload == 16_000_000
    algorithm, bus = bandwidth(found)
    # 4 MB in 10 us = 400 GB/s; times 2 x 3/4.
    assert algorithm == pytest.approx(400.0)
    assert bus == pytest.approx(600.0)


def test_an_instant_is_an_execution_too():
    """The second device takes no time: both send their 32 bytes, and the first waits."""
    found = row(
        collective("f32[8]{0}", "all-reduce", groups="replica_groups={{0,1}}", durations=(10, 0))
    )
    assert (found.count, found.instances, found.members_seen) == (2, 1, 2)
    assert (found.payload, found.wire, found.wait) == (64, 0, 10 * US)
    assert bandwidth(found) == (None, None)


def test_a_picosecond_is_a_wait():
    durations = (10, 10 + Fraction(1, US), 10)
    merged = collectives_of(
        collective(
            "f32[8]{0}", "all-reduce", groups="replica_groups={{0,1,2}}", durations=durations
        )
    )
    assert merged.rows[0].wait == 1
    assert [one.arrived_last for one in merged.members] == [1, 0, 0]


def test_one_device_has_no_partners_to_wait_for():
    assert row(collective("f32[8]{0}", "all-reduce")).wait is None


def test_a_pair_is_one_instance_with_the_bytes_of_its_result():
    space = Space()
    tpu = space.tpu(0)
    start = (
        "%all-gather-start.1 = (f32[100]{0}, f32[400]{0}) "
        "all-gather-start(f32[100]{0} %p), replica_groups={{0,1,2,3}}"
    )
    done = (
        "%all-gather-done.1 = f32[400]{0} "
        "all-gather-done((f32[100]{0}, f32[400]{0}) %all-gather-start.1)"
    )
    tpu.op("all-gather-start.1", 0, 1, category="all-gather-start", long_name=start)
    tpu.op("fusion.1", 1, 15, category="loop fusion")
    tpu.op("all-gather-done.1", 16, 4, category="all-gather-done", long_name=done)
    found = row(space)
    assert (found.count, found.duration // US, found.payload) == (1, 20, 1_600)
    assert (found.exposed // US, found.overlapped // US) == (5, 15)
    # The text of the start knows the group.
    assert found.group_size == 4


def test_kinds_and_group_sizes_are_rows():
    space = Space()
    tpu = space.tpu(0)
    for index, (kind, size) in enumerate((("all-reduce", 2), ("all-reduce", 4), ("all-gather", 4))):
        groups = "{{" + ",".join(map(str, range(size))) + "}}"
        text = f"%x.{index} = f32[8]{{0}} {kind}(f32[8]{{0}} %p), replica_groups={groups}"
        tpu.op(f"x.{index}", index * 10, 5 + index, category=kind, long_name=text)
    rows = collectives_of(space).rows
    assert [(row.kind, row.group_size, row.duration // US) for row in rows] == [
        ("all-gather", 4, 7),
        ("all-reduce", 4, 6),
        ("all-reduce", 2, 5),
    ]


def test_bytes_that_are_not_known_stay_unknown():
    space = collective("f32[8]{0}", "all-reduce", durations=(10, 12))
    space.planes[0].op(
        "y.1",
        20,
        5,
        category="all-reduce",
        long_name="%y.1 = token[] all-reduce(f32[1] %p), replica_groups={{0,1,2,3}}",
    )
    found = row(space)
    assert (found.count, found.payload) == (3, None)
    assert bandwidth(found) == (None, None)


def test_runtime_name_and_hlo_name_are_one_kind():
    """Runtime "reduce-scatter.12", HLO "reduce-scatter-start": one kind, one row."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("reduce-scatter.12", 0, 5).op("reduce-scatter-start", 10, 5)
    (found,) = collectives_of(space).rows
    assert (found.kind, found.count, found.duration // US) == ("reduce-scatter", 2, 10)


def test_no_collectives_no_rows():
    space = Space()
    space.tpu(0).op("fusion.1", 0, 5)
    assert collectives_of(space) == MergedCollectives()


def test_nccl_kernels_are_rows_too():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("ncclDevKernel_AllGather_RING_LL(x)", 0, 100, stream="Stream #2", hlo_op="cc.1")
    gpu.kernel("gemm", 10, 30, stream="Stream #1")
    found = row(space)
    assert (found.kind, found.duration // US) == ("all-gather", 100)
    assert (found.exposed // US, found.overlapped // US) == (70, 30)


def test_a_half_without_a_partner_is_in_flight_too():
    """Its start is before the profile; what is no half keeps its device."""

    def in_flight(category: str) -> bool:
        text = f"%x.1 = f32[8]{{0}} {category}(%s), replica_groups={{{{0,1}}}}"
        space = Space()
        for ordinal in range(2):
            space.tpu(ordinal).op("x.1", 0, 10, category=category, long_name=text)
        (op,) = space.analyse().collectives.ops
        return op.in_flight

    assert in_flight("all-reduce-done")
    assert not in_flight("all-reduce")


def test_halves_without_a_partner_count_once():
    """Neither operand nor name tells which start a done ends."""
    space = Space()
    tpu = space.tpu(0)
    for at in (0, 100, 200):
        tpu.op("collective-permute-start.3", at, 1, category="collective-permute-start")
        tpu.op("collective-permute-done.9", at + 90, 1, category="collective-permute-done")
    (row,) = collectives_of(space).rows
    assert row.count == 3


def test_wait_is_within_a_group():
    """{0,1} take 100 and 90 us, {2,3} 20 and 10: wait 20, wire 200."""
    space = Space()
    for ordinal, duration in enumerate((100, 90, 20, 10)):
        space.tpu(ordinal).op(
            "all-reduce.1",
            0,
            duration,
            long_name="%all-reduce.1 = f32[1000] all-reduce(f32[1000] %x), "
            "replica_groups={{0,1},{2,3}}",
        )
    (row,) = collectives_of(space).rows
    assert (row.group_size, row.wire, row.wait) == (2, 200 * US, 20 * US)
    algorithm, _ = bandwidth(row)
    assert algorithm == pytest.approx(4 * 4000 / 200e-6 / 1e9)


def start(kind: str, shape: str, *, category: str = "", size: int = 4) -> int | None:
    """Bytes of a start that the capture cut off from its done."""
    space = Space()
    groups = "replica_groups={{" + ",".join(map(str, range(size))) + "}}"
    text = f"%x.1 = {shape} {kind}-start(f32[1] %p), {groups}"
    space.tpu(0).op(f"{kind}-start.1", 0, 5, category=category or f"{kind}-start", long_name=text)
    return row(space).payload


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        # (operands), (results), context: the results are the full tensors.
        ("all-gather", "(f32[7]{0}, f32[28]{0})", 112),
        ("all-gather", "((f32[7]{0}, bf16[3]{0}), (f32[28]{0}, bf16[12]{0}))", 112 + 24),
        ("all-gather", "(f32[7]{0}, f32[28]{0}, u32[], u32[])", 112),
        # The operands are.
        ("reduce-scatter", "((f32[28]{0}), f32[7]{0})", 112),
        ("reduce-scatter", "((f32[28], f32[12]), (f32[7], f32[3]))", 160),
        ("collective-permute", "(f32[9]{0}, f32[9]{0}, u32[], u32[])", 36),
        ("all-to-all", "((f32[3], f32[5]), (f32[3], f32[5]), u32[])", 32),
        # Its result alone, one or several tensors.
        ("all-reduce", "f32[9]{0}", 36),
        ("all-reduce", "(f32[9]{0}, bf16[4]{0})", 44),
        # Which of three is which is not known, nor what an unknown type takes.
        ("all-gather", "(f32[7], f32[28], f32[28])", None),
        ("all-gather", "(f32[7], f99[28])", None),
        ("reduce-scatter", "f32[7]", None),
    ],
)
def test_bytes_of_a_start(kind, shape, expected):
    assert start(kind, shape) == expected


def test_a_generic_async_start_gives_its_operands_too():
    space = Space()
    space.hlo(
        7,
        hlo_proto(
            computation(2, 21, instruction("inner", "all-reduce", id=21, groups=[[0, 1, 2]])),
            computation(1, 11, instruction("begin", "async-start", id=11, calls=[2])),
        ),
    )
    space.tpu(0).op(
        "begin",
        0,
        5,
        program_id=7,
        category="async-start",
        long_name="%begin = ((f32[9]), f32[9], u32[]) async-start(f32[9] %p), calls=%c",
    )
    found = row(space)
    # The groups are those of what it wraps.
    assert (found.kind, found.payload, found.group_size) == ("all-reduce", 36, 3)


@pytest.mark.parametrize("late", ["start", "done"])
def test_bytes_of_a_pair_wherever_its_shape_stands(late):
    """A done without a shape takes the bytes of its start, and the group size of either."""
    space = Space()
    tpu = space.tpu(0)
    groups = ", replica_groups={{0,1,2}}"
    tpu.op(
        "reduce-scatter-start.1",
        0,
        1,
        category="reduce-scatter-start",
        long_name="%reduce-scatter-start.1 = ((f32[12]), f32[4]) reduce-scatter-start(f32[12] %p)"
        + (groups if late == "start" else ""),
    )
    tpu.op(
        "reduce-scatter-done.1",
        5,
        1,
        category="reduce-scatter-done",
        long_name="%reduce-scatter-done.1 = f32[4] reduce-scatter-done(%reduce-scatter-start.1)"
        + (groups if late == "done" else ""),
    )
    found = row(space)
    assert (found.count, found.group_size, found.payload) == (1, 3, 48)


def test_groups_of_uneven_sizes_have_no_one_size():
    """{0,1,2} takes 30, 20, 25, {3} 7; no bus factor fits both."""
    space = Space()
    for ordinal, duration in enumerate((30, 20, 25, 7)):
        text = "%x.1 = f32[9] all-reduce(f32[9] %p), replica_groups={{0,1,2},{3}}"
        space.tpu(ordinal).op("x.1", 0, duration, category="all-reduce", long_name=text)
    found = row(space)
    assert (found.group_size, found.groups, found.instances) == (None, 2, 2)
    assert (found.wire, found.wait) == (67 * US, 15 * US)
    assert bandwidth(found)[1] is None


def test_a_gpu_kernel_is_the_whole_of_its_start():
    """NCCL's kernel of "all-gather-start.1" waits and moves; no done follows."""
    space = Space()
    space.hlo(
        7,
        hlo_proto(
            computation(
                1,
                11,
                instruction("all-gather-start.1", "all-gather-start", id=11, groups=[[0, 1]],
                            shape=shape_proto(13, parts=[shape_proto(11, 5), shape_proto(11, 10)])),
            )
        ),
    )  # fmt: skip
    for ordinal, duration in enumerate((40, 25)):
        space.gpu(ordinal).kernel(
            "ncclDevKernel_AllGather_RING_LL(x)", 0, duration, program_id=7,
            hlo_op="all-gather-start.1", module="jit_f",
        )  # fmt: skip
    found = row(space)
    assert (found.count, found.instances, found.members_seen) == (2, 1, 2)
    assert (found.wire, found.wire_is_upper_bound, found.wait) == (50 * US, False, 15 * US)
    assert found.payload == 80


def test_groups_that_never_meet_are_not_what_the_order_of_devices_says():
    """By the order of devices 0 and 1 meet, and 2 and 3; in truth 0 and 2 are in it together at
    0-40, 1 and 3 at 100-140."""
    space = Space()
    text = "%x.1 = f32[9] all-reduce(f32[9] %p), replica_groups={{0,1},{2,3}}"
    for ordinal, at in enumerate((0, 100, 0, 100)):
        for again in range(5):
            space.tpu(ordinal).op(
                "x.1", at + 1000 * again, 40, category="all-reduce", long_name=text
            )
    found = row(space)
    assert (found.instances, found.members_seen, found.wait) == (None, None, None)
    assert bandwidth(found) == (None, None)


def test_members_that_miss_each_other_are_left_out():
    """Eleven times 0 and 1 are in it together (once they only touch), once 1 comes when 0 has left:
    20 us of wait and 10 of wire each, but for that one."""
    space = Space()
    text = "%x.1 = f32[9] all-reduce(f32[9] %p), replica_groups={{0,1}}"
    for ordinal, stay in enumerate((30, 10)):
        tpu = space.tpu(ordinal)
        for again in range(12):
            late = {3: 50, 4: 10}.get(again, 0) if ordinal else 0
            at = 1000 * again + 30 - stay + late
            tpu.op("x.1", at, stay, category="all-reduce", long_name=text)
    merged = collectives_of(space)
    (found,) = merged.rows
    assert (found.instances, found.wire) == (12, 11 * 2 * 10 * US)
    assert (found.wait, found.wait_is_lower_bound) == (11 * 20 * US, True)
    assert [one.arrived_last for one in merged.members] == [0, 11]


def test_waits_outside_the_headline_window_only_are_nobodys(tmp_path):
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for step in range(4):
            tpu.step(step, 100 * step, 100).op("dot.1", 100 * step, 50, category="convolution")
        # Of the warm-up step, which is not in the window.
        tpu.op("all-reduce.1", 60 + 10 * ordinal, 30 - 10 * ordinal, category="all-reduce")

    waits = collectives_of(space)

    assert (waits.members, waits.exposed_wait_caused) == ((), {})
    assert summarize_spaces(tmp_path, space).stragglers == []
