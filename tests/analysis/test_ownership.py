"""Every instant of a step has one owner or is idle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Space, summary_of
from marin_profile.analysis.ownership import sweep
from marin_profile.schema import CAPTURE, STEADY

pytestmark = pytest.mark.usefixtures("loops")


def owned(space: Space, **options) -> dict[str, int]:
    """Owned us by op name."""
    part = space.analyse(**options)
    result: dict[str, int] = {}
    for op in part.ops:
        result[op.facts.name] = result.get(op.facts.name, 0) + op.owned // US
    return result


def one_step(space: Space, ordinal: int = 0):
    tpu = space.tpu(ordinal)
    tpu.module("jit_step(7)", 0, 200, run_id=1)
    return tpu


def test_terms_before_starts_before_names_by_hand():
    space = Space()
    tpu = one_step(space)
    tpu.op("copy-start.1", 0, 1, long_name=COPY_START)
    tpu.op("fusion.1", 10, 30, category="loop fusion")
    tpu.op("all-reduce.1", 30, 40, category="all-reduce", line="XLA Ops #2")
    tpu.op("fusion.3", 80, 10, category="loop fusion")
    tpu.op("fusion.2", 80, 10, category="loop fusion", line="XLA Ops #2")
    tpu.op("copy-done.1", 95, 5, long_name=COPY_DONE)
    # Compute comes before the all-reduce; of two fusions that start together the first by name
    # owns; the copy in flight owns nothing, its start and its done own what they take.
    assert owned(space, warmup_steps=0) == {
        "copy-start.1": 1,
        "fusion.1": 30,
        "all-reduce.1": 30,
        "fusion.2": 10,
        "fusion.3": 0,
        "copy-done.1": 5,
    }


COPY_START = "%copy-start.1 = (f32[8]{0}, f32[8]{0:S(1)}, u32[]) copy-start(f32[8]{0:S(1)} %a)"
COPY_DONE = "%copy-done.1 = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(1)}, u32[]) %copy-start.1)"


def test_the_later_start_owns_and_gives_back():
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for index in range(2):
        host.marker(index, index * 1000, 900)
        host.call("launch", index * 1000 + 1, 1, correlation_id=index)
        gpu.kernel("outer", index * 1000, 100, stream="Stream #1", correlation=index)
        gpu.kernel("inner", index * 1000 + 20, 30, stream="Stream #2", correlation=index)
    assert owned(space, warmup_steps=0) == {"outer": 70, "inner": 30}


def test_a_container_owns_what_no_child_covers():
    space = Space()
    tpu = one_step(space)
    tpu.op("while.1", 0, 100, category="while")
    tpu.op("fusion.1", 10, 30, category="loop fusion")
    tpu.op("all-reduce.1", 40, 50, category="all-reduce")
    assert owned(space, warmup_steps=0) == {"while.1": 20, "fusion.1": 30, "all-reduce.1": 50}


def test_whole_periods_count_and_warm_up_does_not():
    space = Space()
    tpu = space.tpu(0)
    for index in range(4):
        tpu.step(index, index * 100, 100)
        tpu.op("fusion.1", index * 100, 60 if index else 90, category="loop fusion")
        tpu.op("all-reduce.1", index * 100 + 60, 20, category="all-reduce")
    summary = summary_of(space.analyse())
    account = summary.step_account
    assert account is not None
    assert (account.basis, account.steps, account.devices) == ("periods", 2, 1)
    assert account.total_duration == 200.0
    assert (account.compute_duration, account.exposed_communication_duration) == (120.0, 40.0)
    assert (account.idle_duration, account.launch_duration) == (40.0, None)
    rows = {group.canonical_name: group for group in summary.op_groups}
    assert rows["fusion"].owned_duration == 120.0
    assert rows["fusion"].owned_per_step_duration == 60.0
    assert rows["all-reduce"].account_count == 2
    (gap,) = summary.gap_before_ops
    assert (gap.account_count, gap.account_gap_duration) == (2, 40.0)


def test_a_lone_step_is_each_devices_execution_with_its_launch():
    space = Space()
    for ordinal, launch in ((0, 3), (1, 7)):
        tpu = space.tpu(ordinal)
        tpu.module("jit_step(7)", 0, 100, run_id=1).module("jit_other(8)", 120, 50)
        tpu.op("fusion.1", launch, 80, category="loop fusion")
        tpu.op("fusion.2", launch + 85, 5, category="loop fusion")
        tpu.op("fusion.9", 120, 5, category="loop fusion")
    summary = summary_of(space.analyse())
    account = summary.step_account
    assert account is not None
    assert (account.basis, account.steps, account.devices) == ("execution", 1, 2)
    assert account.total_duration == 200.0
    assert account.launch_duration == 3 + 7 + 7 + 3
    assert (account.compute_duration, account.idle_duration) == (170.0, 10.0)
    assert sum(group.owned_duration or 0 for group in summary.op_groups) == 170.0


def test_launches_are_short_where_clocks_drift():
    """Ops that last longer on the device clock than their execution on the event clock."""
    space = Space()
    tpu = space.tpu(0)
    tpu.module("jit_step(7)", 0, 100, run_id=1)
    tpu.op("fusion.1", 4, 90, category="loop fusion", device_start=50, device_duration=300)
    account = summary_of(space.analyse()).step_account
    assert account is not None
    assert (account.total_duration, account.launch_duration) == (310.0, 10.0)


def test_an_operation_of_the_async_line_alone_owns_nothing():
    space = Space()
    tpu = one_step(space)
    tpu.op("fusion.1", 0, 40, category="loop fusion").op("fusion.2", 60, 40, category="loop fusion")
    tpu.async_op("copy-start.4", 30, 20, name="copy-start.4")
    summary = summary_of(space.analyse(warmup_steps=0))
    assert {group.canonical_name: group.owned_duration for group in summary.op_groups} == {
        "fusion": 80.0
    }
    assert summary.step_account is not None
    assert summary.step_account.exposed_transfer_duration == 0.0
    assert summary.step_account.idle_duration == 20.0


def test_exposed_times_of_ops_sum_to_the_ledgers_terms_by_kind():
    """Uneven, on two devices: what is exposed of each op, and of each kind."""
    space = Space()
    for ordinal, late in ((0, 0), (1, 3)):
        gpu = space.gpu(ordinal)
        gpu.kernel("fusion", 0, 20, stream="Stream #1")
        gpu.kernel("gemm", 15, 12, stream="Stream #2")
        gpu.kernel("ncclDevKernel_AllReduce_x", 10, 30 + late, stream="Stream #3")
        gpu.kernel("ncclDevKernel_AllGather_x", 35, 9, stream="Stream #4")
        gpu.kernel("MemcpyH2D", 38, 20, stream="Stream #5")
        gpu.kernel("MemcpyD2D", 52, 11, stream="Stream #6")
    summary = summary_of(space.analyse())
    # The later of two owns: gemm from 15, the all-gather from 35, the copy in the device from 52.
    assert {op.name: op.exposed_duration for op in summary.hot_ops} == {
        "fusion": 15 + 15,
        "gemm": 12 + 12,
        "ncclDevKernel_AllReduce_x": 8 + 8,
        "ncclDevKernel_AllGather_x": 9 + 9,
        "MemcpyH2D": 8 + 8,
        "MemcpyD2D": 11 + 11,
    }
    rows = [row for row in summary.device_ledger if row.window == CAPTURE]
    assert sum(row.compute_duration for row in rows) == 54
    assert [row.exposed_communication_by_kind for row in rows] == [
        {"all-reduce": 8, "all-gather": 9}
    ] * 2
    assert [row.exposed_transfer_by_kind for row in rows] == [
        {"host_to_device": 8, "device_to_device": 11}
    ] * 2
    assert [row.idle_duration for row in rows] == [0, 0]


def test_without_steps_there_is_no_account():
    space = Space()
    space.gpu(0).kernel("a", 0, 10)
    summary = summary_of(space.analyse())
    assert summary.step_account is None
    assert {group.owned_duration for group in summary.op_groups} == {None}
    assert not [row for row in summary.device_ledger if row.window == STEADY]


# --- against a plain oracle --------------------------------------------------------------------


def plain(pieces) -> list[int]:
    """Instant by instant; a piece is (start, duration, term, rank, start of its op)."""
    owned = [0] * len(pieces)
    for at in range(200):
        active = [
            (term, -op_start, rank, index)
            for index, (start, duration, term, rank, op_start) in enumerate(pieces)
            if start <= at < start + duration
        ]
        if active:
            owned[min(active)[3]] += 1
    return owned


PIECE = st.tuples(
    st.integers(0, 90),
    st.integers(0, 40),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(-20, 40),
)


def test_one_that_comes_late_and_goes_before_older_ones():
    """Thirteen in flight, which rise and sink past each other."""
    check([
        (0, 43, 0, 3, 0), (7, 59, 1, 6, 0), (12, 49, 0, 22, 0), (12, 51, 1, 7, 0),
        (15, 51, 1, 14, 0), (16, 17, 1, 15, 0), (16, 33, 0, 16, 0), (17, 13, 1, 13, 0),
        (17, 57, 1, 11, 0), (21, 45, 1, 23, 0), (21, 58, 1, 10, 0), (23, 5, 1, 29, 0),
        (27, 58, 1, 5, 0),
    ])  # fmt: skip


def test_many_at_once_against_the_plain_oracle():
    """Up to 60 in flight at an instant, which come in any order."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        starts, lengths = rng.integers(0, 20, 60), rng.integers(1, 100, 60)
        terms, ranks, begins = (rng.integers(0, 4, 60) for _ in range(3))
        check(list(zip(*map(list, (starts, lengths, terms, ranks, begins)), strict=True)))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECE, max_size=60))
def test_against_the_plain_oracle(raw):
    check(raw)


def check(raw):
    raw.sort()
    # No two alike: equal ops may own for each other.
    pieces = [(s, d, term, 100 * rank + i, op) for i, (s, d, term, rank, op) in enumerate(raw)]
    columns = [np.array([row[at] for row in pieces], np.int64) for at in range(5)]
    start, end, owner = sweep(
        columns[0],
        columns[0] + columns[1],
        np.arange(len(pieces), dtype=np.int64),
        columns[4],
        columns[2],
        columns[3],
    )
    assert (end > start).all()
    assert (start[1:] >= end[:-1]).all()
    owned = np.bincount(owner, end - start, len(pieces)).astype(int).tolist()
    assert owned == plain(pieces)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["fusion", "ncclDevKernel_AllReduce_x", "MemcpyH2D"]),
            st.integers(0, 60),
            st.integers(0, 40),
            st.sampled_from(["Stream #1", "Stream #2"]),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_owned_times_sum_to_the_account(kernels):
    """Steps named by their markers; every term by its ops (the analysis asserts it as well)."""
    space = Space()
    host = space.host()
    for index in range(3):
        host.marker(index, index * 100, 100)
    for ordinal in range(2):
        gpu = space.gpu(ordinal)
        for number, (name, start, duration, stream, step) in enumerate(kernels):
            host.call("launch", step * 100 + 50, 1, correlation_id=number)
            gpu.kernel(name, step * 100 + start, duration, stream=stream, correlation=number)
    summary = summary_of(space.analyse(warmup_steps=0))
    account = summary.step_account
    if account is None:
        return
    busy = sum(group.owned_duration or 0.0 for group in summary.op_groups)
    assert abs(busy + account.idle_duration - account.total_duration) < 1e-6
    assert abs(sum(f.owned_duration or 0.0 for f in summary.semantic_families) - busy) < 1e-6


def test_hosts_add_up():
    spaces = [Space(), Space()]
    for space in spaces:
        tpu = one_step(space)
        tpu.op("fusion.1", 0, 40, category="loop fusion").op("fusion.2", 60, 40)
    account = summary_of(*(space.analyse(warmup_steps=0) for space in spaces)).step_account
    assert account is not None
    assert (account.devices, account.steps) == (2, 1)
    # A module execution of 200 us: 40 + 40 of ops, 20 between them, 100 after.
    assert (account.compute_duration, account.idle_duration, account.launch_duration) == (
        160.0,
        40.0,
        200.0,
    )
    assert account.total_duration == 400.0


def test_sparse_cores_assist_and_own_nothing():
    space = Space()
    one_step(space).op("fusion.1", 0, 40, category="loop fusion")
    space.tpu(0, core="SparseCore 0").op("lookup.1", 0, 90)
    summary = summary_of(space.analyse(warmup_steps=0))
    assert summary.step_account is not None
    assert (summary.step_account.device_kind, summary.step_account.devices) == ("tpu", 1)
    rows = {group.canonical_name: group.owned_duration for group in summary.op_groups}
    assert rows == {"fusion": 40.0, "lookup": 0.0}
