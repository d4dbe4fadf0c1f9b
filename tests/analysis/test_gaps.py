"""Idle time before ops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders_xspace import US, Space
from marin_profile.analysis.gaps import (
    NO_REGION,
    NOISE_ROW,
    GapTotals,
    find_gaps,
    gap_totals,
    merge_gaps,
)


def gaps(space: Space) -> dict[str, tuple[str, int, int, int]]:
    """payload -> (marker, count, total us, longest us)"""
    return {
        gap.payload: (gap.marker, gap.count, gap.total // US, gap.longest // US)
        for gap in gap_totals(space.devices())
    }


def ops(*rows: tuple[str, int, int]) -> Space:
    space = Space()
    tpu = space.tpu(0)
    for name, start, duration in rows:
        tpu.op(name, start, duration)
    return space


def test_a_gap_belongs_to_the_op_that_ends_it():
    space = ops(("a", 0, 10), ("b", 15, 5), ("a", 20, 5), ("b", 30, 5))
    assert gaps(space) == {"b": ("b", 2, 10, 5)}


def test_bookkeeping_gives_way_to_the_next_op():
    space = ops(("a", 0, 10), ("copy-start.3", 20, 1), ("iota.1", 21, 0), ("fusion.2", 21, 5))
    assert gaps(space) == {"fusion.2": ("copy-start.3", 1, 10, 10)}


def test_a_second_gap_between_keeps_the_marker():
    space = ops(("a", 0, 10), ("copy-start.3", 20, 1), ("fusion.2", 25, 5))
    assert gaps(space) == {
        "copy-start.3": ("copy-start.3", 1, 10, 10),
        "fusion.2": ("fusion.2", 1, 4, 4),
    }


@pytest.mark.parametrize(("between", "payload"), [(7, "fusion.2"), (8, "constant.0")])
def test_the_payload_is_within_eight_ops(between, payload):
    """The marker, `between` - 1 more bookkeeping ops and then the fusion."""
    rows = [("a", 0, 10), ("constant.0", 20, 1)]
    rows += [(f"constant.{n}", 20 + n, 1) for n in range(1, between + 1)]
    rows.append(("fusion.2", 21 + between, 5))
    assert set(gaps(ops(*rows))) == {payload}


def test_only_bookkeeping_to_the_end():
    space = ops(("a", 0, 10), ("copy-done.3", 20, 1))
    assert set(gaps(space)) == {"copy-done.3"}


def test_overlap_and_containers_leave_no_gap():
    space = ops(("while.1", 0, 100), ("a", 10, 20), ("b", 50, 20), ("c", 90, 20), ("d", 110, 5))
    assert gaps(space) == {}


def test_the_union_of_lanes_counts():
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("a", 0, 10, stream="Stream #1").kernel("b", 5, 45, stream="Stream #2")
    gpu.kernel("c", 20, 10, stream="Stream #1").kernel("d", 60, 10, stream="Stream #1")
    assert gaps(space) == {"d": ("d", 1, 10, 10)}


def test_devices_do_not_fill_each_others_gaps():
    space = Space()
    space.tpu(0).op("a", 0, 10).op("b", 30, 10)
    space.tpu(1).op("a", 10, 20)
    assert gaps(space) == {"b": ("b", 1, 20, 20)}


def test_the_device_clock_counts():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 0, 10, device_start=0, device_duration=10)
    tpu.op("b", 10, 10, device_start=13, device_duration=10)
    assert gaps(space) == {"b": ("b", 1, 3, 3)}


def test_regions_of_gaps():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("a", 0, 10, scope="jit(f)/x/add").op("b", 20, 5, scope="jit(f)/mlp/dot")
    tpu.op("c", 30, 5)
    found = {gap.payload: gap for gap in gap_totals(space.devices())}
    assert found["b"].region_time == {"jit(f)=>mlp=>dot": 10 * US}
    assert found["c"].region_time == {NO_REGION: 5 * US}


def test_markers_and_regions_are_counted():
    """Gaps of 3, 5, 7, 11 and 13 us before b, which runs at two places; three have a copy before
    it as their marker."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for gap, marker, part in (
        (3, "copy-start.1", "mlp"),
        (5, "copy-start.1", "attn"),
        (7, "", "mlp"),
        (11, "copy-start.1", "mlp"),
        (13, "", "attn"),
    ):
        tpu.op("a", at, 10)
        at += 10 + gap
        if marker:
            tpu.op(marker, at, 1)
            at += 1
        tpu.op("b", at, 2, scope=f"jit(f)/{part}/dot")
        at += 2
    (b,) = gap_totals(space.devices())
    assert (b.payload, b.count, b.total // US, b.longest // US) == ("b", 5, 39, 13)
    assert (b.marker, b.markers) == ("copy-start.1", {"copy-start.1": 3, "b": 2})
    assert b.regions == {"jit(f)=>mlp=>dot": 3, "jit(f)=>attn=>dot": 2}
    times = {"jit(f)=>mlp=>dot": 21 * US, "jit(f)=>attn=>dot": 18 * US}
    assert b.region_time == times


def test_totals_begin_at_nothing():
    assert GapTotals("b") == GapTotals("b", 0, 0, 0, {}, {}, {}, 0, 0, 0, 0, 0, 0)


def test_only_the_row_of_noise_is_noise():
    assert [GapTotals(name).is_noise for name in ("%add", NOISE_ROW, "add")] == [False, True, False]


def test_of_equally_common_markers_the_first_by_name_is_shown():
    assert GapTotals("b", markers={"y": 2, "x": 2, "a": 1}).marker == "x"


def test_merging_hosts():
    one = GapTotals("b", 2, 10, 7, {"b": 2}, {"r": 2}, {"r": 10}, longest_each=7)
    other = GapTotals("b", 1, 9, 9, {"x": 1}, {"r": 1}, {"r": 9}, longest_each=9)
    noise = GapTotals(NOISE_ROW, 90, 99, 1)
    larger = GapTotals("c", 1, 50, 50, {"c": 1}, {}, {})
    merged = merge_gaps([noise, one, other, larger])
    assert [gap.payload for gap in merged] == ["c", "b", NOISE_ROW]
    b = merged[1]
    assert (b.count, b.total, b.longest, b.longest_each, b.marker) == (3, 19, 9, 16, "b")
    assert (b.regions, b.region_time) == ({"r": 3}, {"r": 19})


def test_rounding_of_the_clock_is_noise_in_one_row():
    """Gaps of 1.25 ns, of 2 ns, of 2.001 ns and of 5 us."""
    space = ops(
        ("a", 0, 10),
        ("b", 10.00125, 5),
        ("c", 15.00325, 5),
        ("d", 20.005251, 5),
        ("e", 30.005251, 1),
    )
    found = {
        gap.payload: (gap.count, gap.total, gap.longest) for gap in gap_totals(space.devices())
    }
    assert found == {
        NOISE_ROW: (2, 3_250, 2_000),
        "d": (1, 2_001, 2_001),
        "e": (1, 5 * US, 5 * US),
    }


@pytest.mark.parametrize("noise", [1, 2])
def test_noise_is_no_second_gap(noise):
    space = ops(("a", 0, 10), ("copy-start.3", 20, 1), ("fusion.2", 21 + noise / 1000, 5))
    found = {gap.payload: gap for gap in gap_totals(space.devices())}
    assert found["fusion.2"].marker == "copy-start.3"
    assert (found["fusion.2"].total, found[NOISE_ROW].total) == (10 * US, noise * 1_000)
    assert found[NOISE_ROW].marker is None


def test_gaps_and_noise_are_all_idle_time():
    space = ops(("a", 0, 10), ("b", 10.001, 5), ("c", 18.001, 2))
    part = space.analyse()
    (device,) = part.devices
    assert sum(gap.total for gap in part.gaps) == device.capture.idle == 3_001_000


def test_the_longest_gap_of_each_device():
    """A stall of two devices at once, and small gaps: 30 of 34 us on one, 31 of 33 on the other."""
    space = Space()
    space.tpu(0).op("a", 0, 10).op("b", 40, 5).op("a", 45, 5).op("b", 54, 1)
    space.tpu(1).op("a", 0, 10).op("b", 41, 5).op("a", 46, 5).op("b", 53, 1)
    (gap,) = gap_totals(space.devices())
    assert (gap.total // US, gap.longest // US, gap.longest_each // US) == (67, 31, 61)


def test_gaps_inside_the_steady_window_and_the_account():
    """Gaps before b at 10-17, 40-53 and 80-81 and of 1 ns at 91; steady is 12-50, the account 45-95
    on the first device and nothing on the second."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal)
        for at, length in ((0, 10), (20, 20), (56, 24), (84, 7)):
            tpu.op("a", at, length)
        for at, length in ((17, 3), (53, 3), (81, 3), (91.001, 9)):
            tpu.op("b", at, length)
    totals = gap_totals(space.devices(), (12 * US, 50 * US), [(45 * US, 95 * US), None])
    found = {gap.payload: gap for gap in totals}
    gap = found["b"]
    assert (gap.count, gap.total // US, gap.longest_each // US) == (6, 42, 26)
    assert (gap.steady_count, gap.steady_total // US) == (4, 2 * (5 + 10))
    assert gap.steady_longest_each == 20 * US
    assert (gap.account_count, gap.account_total // US) == (2, 8 + 1)
    noise = found[NOISE_ROW]
    assert (noise.count, noise.steady_count, noise.account_count) == (2, 0, 1)
    assert (noise.total, noise.account_total) == (2_000, 1_000)


def test_without_windows_nothing_is_inside_one():
    (gap,) = gap_totals(ops(("a", 0, 0), ("b", 10, 1)).devices())
    assert (gap.steady_count, gap.steady_total, gap.account_count, gap.account_total) == (
        0,
        0,
        0,
        0,
    )


def test_sparse_cores_have_no_gaps():
    space = Space()
    space.tpu(0).op("a", 0, 10).op("b", 15, 5)
    space.tpu(0, core="SparseCore 0").op("lookup.1", 0, 1).op("lookup.2", 90, 1)
    assert gaps(space) == {"b": ("b", 1, 5, 5)}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 10), st.booleans()), min_size=1, max_size=20
    ),
    st.integers(1, 8),
    st.integers(0, 3),
)
def test_find_gaps_against_plain_python(raw, lookahead, noise):
    raw.sort()
    start, length, flags = (list(column) for column in zip(*raw, strict=True))
    end = [a + b for a, b in zip(start, length, strict=True)]
    expected = []
    for i in range(1, len(raw)):
        busy = max(end[:i])
        if start[i] <= busy:
            continue
        payload = i
        if flags[i]:
            for j in range(i + 1, min(len(raw), i + 1 + lookahead)):
                if start[j] > max(end[:j]) + noise:
                    break
                if not flags[j]:
                    payload = j
                    break
        expected.append((payload, i, start[i] - busy))
    found = find_gaps(
        np.array(start, np.int64), np.array(end, np.int64), np.array(flags), lookahead, noise
    )
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
    idle = set(range(start[0], max(end)))
    for a, b in zip(start, end, strict=True):
        idle -= set(range(a, b))
    assert sum(gap for _, _, gap in expected) == len(idle)


@pytest.mark.parametrize(("lookahead", "payload"), [(1, 1), (2, 1), (3, 4), (8, 4)])
def test_the_last_op_that_is_looked_ahead_to(lookahead: int, payload: int):
    start = np.array([0, 20, 30, 40, 50], np.int64)
    is_bookkeeping = np.array([False, True, True, True, False])
    found = find_gaps(start, start + 10, is_bookkeeping, lookahead, 0)
    assert [column.tolist() for column in found] == [[payload], [1], [10]]
