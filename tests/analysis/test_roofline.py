"""Static costs over measured time, by hand and with uneven numbers."""

from dataclasses import replace

import pytest

from builders_xspace import Space, summarize_spaces, summary_of
from marin_profile.analysis.roofline import (
    Peaks,
    Work,
    op_rate,
    peaks_of,
    total,
    work_by_family,
    work_by_pass,
    work_by_program,
    work_by_region,
    work_of_ops,
)

PEAKS = Peaks(teraflops=100.0, hbm_gigabytes=1000.0)
MI300X = {
    "device_vendor": "AMD",
    "clock_rate": 2_100_000,
    "core_count": 304,
    "compute_cap_major": 9,
    "compute_cap_minor": 4,
    "memory_bandwidth": 2_662_400_000_000,
}
A100 = {
    "device_vendor": "Nvidia",
    "clock_rate": 1_410_000,
    "core_count": 108,
    "compute_cap_major": 8,
    "compute_cap_minor": 0,
    "memory_bandwidth": 1_555_000_000_000,
}


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (
            {
                "peak_teraflops_per_second": 918.0,
                "peak_hbm_bw_gigabytes_per_second": 1637.99,
            },
            Peaks(918.0, 1637.99),
        ),
        ({"memory_bandwidth": 2_662_400_000_000}, Peaks(None, 2662.4)),
        ({"peak_teraflops_per_second": 0.0}, Peaks(None, None)),
        ({"peak_teraflops_per_second": "918"}, Peaks(None, None)),
        ({"peak_teraflops_per_second": float("nan")}, Peaks(None, None)),
        ({"peak_teraflops_per_second": float("inf")}, Peaks(None, None)),
        ({}, Peaks(None, None)),
        # 2.1 GHz x 304 x 2048; four transfers per clock where the plane counts two.
        (MI300X, Peaks(1307.4432, 5324.8)),
        # 1.41 GHz x 108 x 2048.
        (A100, Peaks(311.86944, 1555.0)),
        ({**A100, "peak_teraflops_per_second": 300.0}, Peaks(300.0, 1555.0)),
        ({**A100, "peak_hbm_bw_gigabytes_per_second": 1500.0}, Peaks(311.86944, 1500.0)),
        ({**A100, "compute_cap_minor": 6}, Peaks(None, 1555.0)),
        ({k: A100[k] for k in A100 if k != "compute_cap_minor"}, Peaks(311.86944, 1555.0)),
        ({**A100, "device_vendor": "AMD"}, Peaks(None, 1555.0)),
        ({**A100, "core_count": 0}, Peaks(None, 1555.0)),
        ({**A100, "clock_rate": "fast"}, Peaks(None, 1555.0)),
    ],
)
def test_peaks(stats, expected):
    found = peaks_of(stats)
    assert found.teraflops == pytest.approx(expected.teraflops)
    assert found.hbm_gigabytes == pytest.approx(expected.hbm_gigabytes)


@pytest.mark.parametrize(
    ("vendor", "major", "minor", "flops"),
    [
        ("Nvidia", 8, 0, 2048),
        ("Nvidia", 9, 0, 4096),
        ("Nvidia", 10, 0, 8192),
        ("AMD", 9, 0, 1024),
        ("AMD", 9, 4, 2048),
        ("AMD", 9, 5, 4096),
    ],
)
def test_flops_per_cycle(vendor, major, minor, flops):
    stats = {
        "device_vendor": vendor,
        "compute_cap_major": major,
        "compute_cap_minor": minor,
        "clock_rate": 1_000_000,
        "core_count": 7,
    }
    assert peaks_of(stats).teraflops == pytest.approx(7 * flops / 1000)


def rate(peaks: Peaks = PEAKS, **costs: int):
    space = Space()
    tpu = space.tpu(0)
    tpu.op("dot.1", 0, 10, **costs).op("dot.1", 10, 30, **costs)
    (op,) = space.analyse().ops
    return op_rate(op, peaks)


def test_rates_by_hand():
    """Two executions in 40 us: 2 x 1e9 flops = 50 TFLOP/s; 2 x 2 MB = 100 GB/s."""
    found = rate(flops=1_000_000_000, bytes_accessed=2_000_000)
    assert found.tflops == pytest.approx(50.0)
    assert found.gbps == pytest.approx(100.0)
    assert found.bound_by == "compute"
    assert not found.impossible


def test_model_flops_come_first():
    assert rate(flops=8, model_flops=1_000_000_000).tflops == pytest.approx(50.0)


def test_memory_bound():
    assert rate(flops=1_000_000, bytes_accessed=10_000_000).bound_by == "memory"
    # A copy.
    assert rate(flops=0, bytes_accessed=10_000_000).bound_by == "memory"


def test_no_verdict_without_both():
    assert rate(flops=1_000_000).bound_by is None
    assert rate(bytes_accessed=1_000_000).bound_by is None
    assert rate(Peaks(None, None), flops=1_000_000, bytes_accessed=5).bound_by is None
    assert rate(Peaks(100.0, None), flops=1_000_000, bytes_accessed=5).bound_by is None
    assert rate(Peaks(None, 1000.0), flops=1_000_000, bytes_accessed=5).bound_by is None
    assert rate().tflops is None


def test_what_costs_nothing_is_bound_by_nothing():
    space = Space()
    space.tpu(0).op("tuple.1", 0, 10, flops=0, bytes_accessed=0)
    (op,) = space.analyse().ops
    found = op_rate(op, PEAKS)
    assert (found.tflops, found.gbps, found.bound_by) == (0.0, 0.0, None)
    assert Work(time=5, known_time=5).bound_by(PEAKS) is None


def test_what_xla_cannot_see_into_has_no_rate():
    """A kernel with flops and no bytes: neither is believed."""
    found = rate(flops=1_080_000_000, bytes_accessed=0, category="custom-call")
    assert (found.tflops, found.gbps, found.bound_by, found.impossible) == (None, None, None, False)


@pytest.mark.parametrize(
    "costs",
    [
        {"flops": 2_000_000_001, "bytes_accessed": 5},
        {"flops": 5, "bytes_accessed": 20_000_001},
    ],
)
def test_more_than_a_peak_is_an_error_of_the_data(costs):
    """100 TFLOP/s and 1000 GB/s are 4e9 flops and 40 MB in 40 us."""
    found = rate(**costs)
    assert found.impossible
    assert (found.tflops, found.gbps, found.bound_by) == (None, None, None)
    assert not rate(flops=2_000_000_000, bytes_accessed=20_000_000).impossible


def test_an_instant_has_no_rate():
    space = Space()
    space.tpu(0).op("a", 0, 0, flops=5)
    (op,) = space.analyse().ops
    assert op_rate(op, PEAKS).tflops is None


def test_a_wait_has_no_rate():
    space = Space()
    space.tpu(0).op("all-reduce.1", 0, 20, category="all-reduce", flops=7, bytes_accessed=7)
    (op,) = space.analyse().ops
    assert op_rate(op, PEAKS).tflops is None


def uneven() -> Space:
    """Compute 40 + 7 + 20 + 30 us and 3 us of the loop itself; 97 us of it have no place."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("while.1", 0, 100, category="while", flops=999, bytes_accessed=999)
    tpu.op("dot.1", 0, 40, flops=1_000_000_000, bytes_accessed=8_000_000)
    tpu.op("add.1", 40, 7, flops=14_000, bytes_accessed=2_100_000)
    tpu.op("kernel", 47, 20, category="custom-call", flops=0, bytes_accessed=0)
    tpu.op("too-fast", 67, 30, flops=10**12, bytes_accessed=1)
    tpu.op("all-reduce.1", 100, 20, category="all-reduce", flops=7, bytes_accessed=7)
    tpu.op("instant", 120, 0, flops=10**9, bytes_accessed=1)
    space.tpu(1, core="SparseCore 0").op("sc.1", 0, 50, flops=3, bytes_accessed=5)
    return space


def whole(space: Space) -> Work:
    return total(work_of_ops(space.analyse().ops, PEAKS, in_periods=False))


def test_totals_are_those_of_the_compute_ops_with_known_costs():
    found = whole(uneven())
    assert (found.flops, found.bytes_accessed) == (1_000_014_000, 10_100_000)
    assert (found.time, found.known_time) == (100_000_000, 47_000_000)
    assert found.coverage == 0.47
    # 25 of 100 TFLOP/s against 200 of 1000 GB/s; 0.002 against 300.
    assert (found.compute_bound, found.memory_bound) == (40_000_000, 7_000_000)
    assert Work().coverage is None


@pytest.mark.parametrize("costs", [{"flops": 5}, {"bytes_accessed": 5}])
def test_one_cost_of_two_is_not_known(costs):
    space = Space()
    space.tpu(0).op("dot.1", 0, 10, **costs)
    found = whole(space)
    assert (found.time, found.known_time, found.flops) == (10_000_000, 0, 0)


@pytest.mark.parametrize(
    ("stats", "costs", "reason"),
    [
        ({}, {"flops": 5, "bytes_accessed": 5}, "The file does not state the device's peak."),
        (
            {"peak_teraflops_per_second": 1.0},
            {"flops": 5, "bytes_accessed": 5},
            "The file does not state the device's peak.",
        ),
        (
            {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0},
            {"flops": 0, "bytes_accessed": 0},
            "The ops with known costs neither compute nor access memory.",
        ),
    ],
)
def test_why_nothing_bounds_it(tmp_path, stats, costs, reason):
    space = Space()
    space.tpu(0, **stats).op("tuple.1", 0, 10, **costs)
    found = roofline_of(tmp_path, space)
    assert (found.bound_by, found.bound_by_unknown_because) == (None, reason)


def test_a_graph_of_kernels_is_time_without_costs():
    """30 us of a kernel with costs beside 70 us of a graph that may compute."""
    space = Space()
    gpu = space.gpu(0)
    gpu.kernel("dot", 0, 30, flops=1_000, bytes_accessed=1_000)
    gpu.kernel("CudaGraphExec", 30, 70, flops=1_000, bytes_accessed=1_000)
    found = whole(space)
    assert (found.time, found.known_time, found.flops) == (100_000_000, 30_000_000, 1_000)


def work(**facts: int) -> Work:
    return replace(
        Work(flops=700, recomputed_flops=200, bytes_accessed=30, time=10, known_time=8), **facts
    )


@pytest.mark.parametrize(
    ("known_time", "is_covered"), [(10, True), (5, True), (4, False), (0, False)]
)
def test_below_half_the_time_nothing_is_said_of_the_whole(known_time, is_covered):
    found = work(known_time=known_time)
    assert found.is_covered is is_covered
    assert (found.mfu(PEAKS, 14) is not None) is is_covered
    assert (found.hfu(PEAKS, 14) is not None) is is_covered
    assert (found.bound_by(PEAKS) is not None) is is_covered
    assert (found.tflops is not None) is is_covered
    assert (found.gbps is not None) is is_covered
    assert found.coverage == known_time / 10


def test_rates_of_the_whole_are_of_the_time_with_known_costs():
    """700 flops in 8 ps; 30 bytes in 8 ps are 3,750 GB/s, in 7 ps 4,285.7."""
    assert (work().tflops, work().gbps) == (87.5, 3750.0)
    assert work(known_time=7).gbps == pytest.approx(30_000 / 7)


def test_of_no_time_nothing_is_said():
    assert not Work().is_covered
    assert (Work().tflops, Work().gbps, Work().bound_by(PEAKS)) == (None, None, None)
    assert (Work().mfu(PEAKS, 14), Work().hfu(PEAKS, 14)) == (None, None)


def test_mfu_leaves_out_the_recompute_pass():
    """500 and 700 flops in 14 ps at 100 flops per ps."""
    assert work().mfu(PEAKS, 14) == pytest.approx(500 / 1400)
    assert work().hfu(PEAKS, 14) == pytest.approx(700 / 1400)
    assert work().mfu(Peaks(None, 1000.0), 14) is None
    assert work().hfu(PEAKS, 0) is None


def test_rates_of_the_whole_are_those_of_the_known_part():
    """700 flops and 30 bytes in 8 ps: 87.5 TFLOP/s, 3750 GB/s."""
    assert work().tflops == pytest.approx(87.5)
    assert work().gbps == pytest.approx(3750.0)


def test_the_whole_is_bound_by_the_larger_utilisation():
    """87.5 of 100 against 3750 of 1000, and of 9000."""
    assert work().bound_by(PEAKS) == "memory"
    assert work().bound_by(Peaks(100.0, 9000.0)) == "compute"
    assert work().bound_by(Peaks(100.0, None)) is None


# one step after the other


def training(
    periods: tuple[float, ...] = (100, 100, 100, 100),
    *,
    remat: int = 0,
    kernel: float = 0,
    kernel_costs: dict[str, int] | None = None,
) -> Space:
    """Steps on two devices; the last one only ends the period before it. Of each step's first 80 us
    forward takes 30 and backward 50, of which `remat` are recomputed and `kernel` are a custom
    call's; the rest of the period is idle. 1 TFLOP/s: 1 us is 1e6 flops at the peak."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(
            ordinal, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=100.0
        )
        at = 0.0
        for number, period in enumerate((*periods, 80)):
            tpu.step(number, at, 80).module("jit_step(7)", at, 80)
            common = {"category": "loop fusion", "program_id": 7}
            tpu.op(
                "fusion.1",
                at,
                30,
                scope="jit(step)/jvp(mlp)/dot_general:",
                flops=15_000_000,
                bytes_accessed=300_000,
                **common,
            )
            backward = 50 - remat - kernel
            tpu.op(
                "fusion.2",
                at + 30,
                backward,
                scope="jit(step)/transpose(jvp(attention))/dot_general:",
                flops=200_000 * round(backward),
                bytes_accessed=50_000 * round(backward),
                **common,
            )
            if remat:
                tpu.op(
                    "fusion.3",
                    at + 30 + backward,
                    remat,
                    scope="jit(step)/transpose(jvp(mlp))/rematted_computation/dot_general:",
                    flops=7_000_000,
                    bytes_accessed=100_000,
                    **common,
                )
            if kernel:
                tpu.op(
                    "kernel.1",
                    at + 80 - kernel,
                    kernel,
                    category="custom-call",
                    scope="jit(step)/transpose(jvp(attention))/pallas_call:",
                    program_id=7,
                    **(kernel_costs or {"flops": 0, "bytes_accessed": 0}),
                )
            at += period
    return space


def roofline_of(tmp_path, space: Space):
    found = summarize_spaces(tmp_path, space).roofline
    assert found is not None
    return found


def test_mfu_by_hand(tmp_path):
    """25e6 flops a step and device of 100e6 at the peak; all of the compute time is covered."""
    found = roofline_of(tmp_path, training())
    assert found.mfu == found.hfu == pytest.approx(0.25)
    assert (found.mfu_is_lower_bound, found.coverage) == (False, 1.0)
    assert (found.mfu_unknown_because, found.bound_by_unknown_because) == (None, None)
    assert found.achieved == {
        "teraflops_per_second": pytest.approx(25 / 80),
        "hbm_gigabytes_per_second": pytest.approx(35.0),
        "operational_intensity": pytest.approx(25 / 2.8),
    }
    assert found.utilization == {
        "teraflops_per_second": pytest.approx(25 / 80),
        "hbm_gigabytes_per_second": pytest.approx(0.35),
    }
    assert found.bound_by == "memory"
    # Three whole periods on two devices; forward 0.5 against 0.1, backward 0.2 against 0.5.
    assert found.compute_duration == 2 * 3 * 80
    assert found.compute_bound_duration == 2 * 3 * 30
    assert found.memory_bound_duration == 2 * 3 * 50


def test_the_basis_is_said(tmp_path):
    stepped = summarize_spaces(tmp_path / "steps", training())
    assert stepped.list_basis["roofline"] == "whole_periods"
    space = Space()
    space.tpu(0).op("dot.1", 0, 10, flops=5, bytes_accessed=5)
    without = summarize_spaces(tmp_path / "none", space)
    assert without.list_basis["roofline"] == "capture"
    assert without.roofline.mfu is None
    assert without.roofline.mfu_unknown_because == "There are no whole steps."


def test_recomputed_flops_raise_hfu_and_leave_mfu(tmp_path):
    """At an equal step: 7e6 recomputed flops in time that fusion.2 leaves; mfu 15 + 8 of 100."""
    before = roofline_of(tmp_path / "before", training())
    after = roofline_of(tmp_path / "after", training(remat=10))
    assert before.mfu == pytest.approx(0.25)
    assert (after.mfu, after.hfu) == (pytest.approx(0.23), pytest.approx(0.30))
    same = training()
    for plane in same.planes:
        for step in range(5):
            plane.op(
                "remat.1",
                100 * step + 80,
                5,
                category="loop fusion",
                scope="jit(step)/transpose(jvp(mlp))/rematted_computation/mul:",
                program_id=7,
                flops=3_000_000,
                bytes_accessed=100_000,
            )
            plane.module("jit_step(7)", 100 * step + 80, 5)
    added = roofline_of(tmp_path / "added", same)
    assert (added.mfu, added.hfu) == (pytest.approx(0.25), pytest.approx(0.28))


def test_a_stall_lowers_both(tmp_path):
    """One period of 9.1 ms among five: the mean falls on 1.9 ms, the median stays at 100 us."""
    periods = (100, 100, 100, 9_100, 100, 100)
    summary = summarize_spaces(tmp_path, training(periods, remat=10))
    assert summary.step_time.period.median == 100.0
    mean = (5 * 100 + 9_100 - 100) / 5
    assert summary.roofline.mfu == pytest.approx(23 / mean)
    assert summary.roofline.hfu == pytest.approx(30 / mean)


def test_uncosted_time_makes_mfu_a_lower_bound(tmp_path):
    """20 of 80 us are a kernel that XLA cannot see into: fusion.2 has 6e6 flops left."""
    found = roofline_of(tmp_path, training(kernel=20))
    assert found.coverage == 0.75
    assert (found.mfu, found.mfu_is_lower_bound) == (pytest.approx(0.21), True)
    assert found.bound_by == "compute"
    assert found.compute_duration == 480
    assert found.compute_bound_duration + found.memory_bound_duration == 360


def test_below_half_there_is_no_mfu(tmp_path):
    found = roofline_of(tmp_path, training(kernel=41))
    assert found.coverage == pytest.approx(39 / 80)
    reason = "Less than half of the compute time has known costs."
    assert (found.mfu, found.hfu, found.mfu_is_lower_bound) == (None, None, None)
    assert (found.bound_by, found.mfu_unknown_because) == (None, reason)
    assert found.bound_by_unknown_because == reason
    half = roofline_of(tmp_path / "half", training(kernel=40))
    assert (half.coverage, half.mfu) == (0.5, pytest.approx(0.17))


def test_a_cost_estimate_with_both_is_known(tmp_path):
    stated = {"flops": 4_000_000, "bytes_accessed": 200_000}
    found = roofline_of(tmp_path, training(kernel=20, kernel_costs=stated))
    assert (found.coverage, found.mfu_is_lower_bound) == (1.0, False)
    assert found.mfu == pytest.approx(0.25)


def test_a_matmul_that_becomes_a_kernel_is_no_fall_of_the_rate(tmp_path):
    """What falls is the coverage: too little is left that has a rate."""
    before = roofline_of(tmp_path / "before", training(kernel=0))
    after = roofline_of(tmp_path / "after", training(kernel=41))
    rows = {
        side: {row.name: row for row in found.by if row.by == "family"}
        for side, found in (("before", before), ("after", after))
    }
    assert before.coverage == 1.0
    assert after.coverage < 0.5
    assert before.achieved["teraflops_per_second"] == pytest.approx(25 / 80)
    assert (after.achieved, after.utilization, after.mfu) == ({}, {}, None)
    assert rows["after"]["attention"].achieved_tflops is None
    assert rows["after"]["attention"].coverage == 0.0
    assert rows["after"]["attention"].flops is None


def test_without_any_costs_there_are_no_rows(tmp_path):
    space = Space()
    space.tpu(0).op("dot.1", 0, 10)
    found = roofline_of(tmp_path, space)
    assert (found.by, found.coverage, found.achieved) == ([], 0.0, {})
    assert found.bound_by_unknown_because == "No op carries costs."
    assert (found.compute_duration, found.memory_bound_duration) == (10.0, 0.0)


def test_without_compute_there_is_no_roofline():
    space = Space()
    space.tpu(0).op("all-reduce.1", 0, 10, category="all-reduce", flops=5, bytes_accessed=5)
    assert summary_of(space.analyse()).roofline is None


def test_more_than_the_peak_counts_as_unknown(tmp_path):
    """1e15 flops in 20 us: named, without a rate, and neither in flops nor in coverage."""
    wrong = {"flops": 10**15, "bytes_accessed": 100}
    summary = summarize_spaces(tmp_path, training(kernel=20, kernel_costs=wrong))
    assert summary.roofline.coverage == 0.75
    assert summary.roofline.mfu == pytest.approx(0.21)
    (op,) = [op for op in summary.hot_ops if op.name == "kernel.1"]
    assert (op.flops, op.achieved_tflops, op.bound_by) == (10**15, None, None)
    assert any("kernel.1" in note for note in summary.trace_overview.quality_warnings)


def test_ops_at_once_cannot_exceed_the_peak_together(tmp_path):
    """Two streams, each at 80 % of the peak at the same time: the file contradicts itself."""
    space = Space()
    gpu = space.gpu(0, **{**MI300X, "core_count": 1})
    for step in range(3):
        gpu.kernel("a", 100 * step, 100, flops=344_064_000, bytes_accessed=1)
        gpu.kernel(
            "b", 100 * step, 100, stream="Stream #17(Kernel)", flops=344_064_000, bytes_accessed=1
        )
    host = space.host()
    for step in range(3):
        host.marker(step, 100 * step, 100)
    found = roofline_of(tmp_path, space)
    assert found.mfu is None
    assert found.mfu_unknown_because


def test_rows_by_program_pass_family_and_region(tmp_path):
    """Sums of three periods on two devices: six times a step's."""
    rows = {(row.by, row.name): row for row in roofline_of(tmp_path, training(remat=10)).by}
    assert set(rows) == {
        ("program", "jit_step"),
        ("pass", "forward"),
        ("pass", "backward"),
        ("pass", "recompute"),
        ("family", "matmul"),
        ("region", "jit(step)"),
        ("region", "jit(step)=>mlp"),
        ("region", "jit(step)=>attention"),
        ("region", "jit(step)=>mlp=>dot_general"),
        ("region", "jit(step)=>attention=>dot_general"),
    }
    mlp = rows["region", "jit(step)=>mlp"]
    assert (mlp.flops, mlp.bytes_accessed, mlp.duration) == (6 * 22_000_000, 6 * 400_000, 240.0)
    assert mlp.achieved_tflops == pytest.approx(22 / 40)
    assert mlp.achieved_gbps == pytest.approx(10.0)
    assert (mlp.mfu, mlp.hfu) == (pytest.approx(15 / 40), pytest.approx(22 / 40))
    assert (mlp.bound_by, mlp.coverage) == ("compute", 1.0)
    again = rows["pass", "recompute"]
    assert (again.mfu, again.hfu, again.duration) == (0.0, pytest.approx(0.7), 60.0)
    program = rows["program", "jit_step"]
    assert (program.flops, program.duration) == (6 * 30_000_000, 480.0)
    assert program.mfu == pytest.approx(23 / 80)


def test_a_row_of_uncosted_ops_has_no_figures(tmp_path):
    rows = {(row.by, row.name): row for row in roofline_of(tmp_path, training(kernel=20)).by}
    kernel = rows["region", "jit(step)=>attention"]
    assert (kernel.coverage, kernel.flops) == (0.6, 6 * 6_000_000)
    assert kernel.achieved_tflops == pytest.approx(6 / 30)
    assert kernel.mfu == pytest.approx(6 / 50)


def test_only_the_largest_rows_of_a_kind_are_listed(tmp_path):
    space = Space()
    tpu = space.tpu(0)
    for index in range(30):
        tpu.op(
            f"fusion.{index}",
            100 * index,
            50 + index,
            category="loop fusion",
            scope=f"jit(f)/layer_{index:02}/add:",
            flops=5,
            bytes_accessed=5,
        )
    regions = [row for row in roofline_of(tmp_path, space).by if row.by == "region"]
    assert len(regions) == 20
    assert regions[0].name == "jit(f)"
    assert regions[1].duration == regions[2].duration == 79.0
    assert [row.name for row in regions[1:3]] == [
        "jit(f)=>layer_29",
        "jit(f)=>layer_29=>add",
    ]


def test_programs_of_one_name_are_told_apart():
    space = Space()
    tpu = space.tpu(0)
    for program, at in ((7, 0), (8, 100)):
        tpu.module(f"jit_f({program})", at, 50)
        tpu.op("dot.1", at, 50, program_id=program, flops=program, bytes_accessed=5)
    tpu.module("jit_g(9)", 200, 50).op("dot.2", 200, 50, program_id=9, flops=9, bytes_accessed=5)
    works = work_of_ops(space.analyse().ops, PEAKS, in_periods=False)
    programs = work_by_program(works)
    assert {name: found.flops for name, found in programs.items()} == {
        "jit_f(7)": 7,
        "jit_f(8)": 8,
        "jit_g": 9,
    }
    assert {name: found.flops for name, found in work_by_pass(works).items()} == {"other": 24}
    assert {name: found.flops for name, found in work_by_family(works).items()} == {"matmul": 24}
    assert work_by_region(works) == {}


@pytest.mark.parametrize("steps", [2, 5])
def test_the_last_step_only_ends_the_period_before_it(tmp_path, steps):
    found = roofline_of(tmp_path, training((100,) * (steps - 1)))
    assert found.mfu == pytest.approx(0.25 if steps > 2 else 25 / 80)
