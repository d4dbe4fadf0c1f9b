"""Static cost over measured time."""

import pytest

from builders_xspace import Space
from marin_profile.analysis.roofline import Peaks, op_rate, peaks_of, roofline_totals

PEAKS = Peaks(teraflops=100.0, hbm_gigabytes=1000.0)


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
    ],
)
def test_peaks(stats, expected):
    assert peaks_of(stats) == expected


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


def test_no_verdict_without_both():
    assert rate(flops=1_000_000).bound_by is None
    assert rate(Peaks(None, None), flops=1_000_000, bytes_accessed=5).bound_by is None
    assert rate().tflops is None


def test_more_than_the_peak_is_an_error_of_the_data():
    found = rate(flops=10_000_000_000, bytes_accessed=5)
    assert found.impossible
    assert found.bound_by is None


def test_an_instant_has_no_rate():
    space = Space()
    space.tpu(0).op("a", 0, 0, flops=5)
    (op,) = space.analyse().ops
    assert op_rate(op, PEAKS).tflops is None


def test_totals_leave_out_containers_and_communication():
    space = Space()
    tpu = space.tpu(0)
    tpu.op("while.1", 0, 100, category="while", flops=999, bytes_accessed=999)
    tpu.op("dot.1", 0, 40, flops=10, bytes_accessed=5)
    tpu.op("all-reduce.1", 40, 20, category="all-reduce", flops=7, bytes_accessed=7)
    tpu.op("custom", 60, 20)
    totals = roofline_totals(space.analyse().ops, PEAKS)
    assert (totals.flops, totals.bytes_accessed) == (10, 5)
    assert totals.coverage == pytest.approx(0.4)


def test_totals_leave_out_what_cannot_be():
    """An op faster than the peak, and one without time, say nothing about the program."""
    space = Space()
    tpu = space.tpu(0)
    tpu.op("sound", 0, 100, flops=4 * 10**9, bytes_accessed=1)
    tpu.op("impossible", 100, 1, flops=10**12, bytes_accessed=1)
    tpu.op("instant", 101, 0, flops=10**9, bytes_accessed=1)
    totals = roofline_totals(space.analyse().ops, PEAKS)
    assert totals.flops == 4 * 10**9
    assert totals.coverage == pytest.approx(100 / 101)
