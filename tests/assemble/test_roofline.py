"""The roofline section: how many rows it has, in which order, and why figures are not known."""

from __future__ import annotations

import pytest

from builders_xspace import Space, summary_of
from marin_profile.schema import Roofline

PEAKS = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}


def roofline(*ops: tuple[int, int, int], peaks: dict[str, float] = PEAKS) -> Roofline:
    """Three steps of 100 us with these ops, each of another region: length in us, flops, bytes. At
    the peak an op does 10 ** 6 flops and 1,000 bytes in 1 us."""
    space = Space()
    tpu = space.tpu(0, **peaks)
    for step in range(3):
        at = 100 * step
        tpu.step(step, at, 99)
        for place, (length, flops, size) in enumerate(ops):
            tpu.op(f"dot.{place:03}", at, length, category="convolution", flops=flops,
                   bytes_accessed=size, scope=f"jit(f)/r{place:03}/dot:")  # fmt: skip
            at += length
    found = summary_of(space.analyse()).roofline
    assert found is not None
    return found


@pytest.mark.parametrize(("count", "rows"), [(9, 19), (10, 20), (12, 20)])
def test_of_each_kind_the_twenty_rows_with_the_most_time_are_given(count, rows):
    """Regions are jit(f), and two of each op; they come by time and then by name."""
    found = roofline(*[(3 if place == 5 else 2, 1_000, 10) for place in range(count)])
    names = [row.name for row in found.by if row.by == "region"]
    places = [5, *(place for place in range(count) if place != 5)]
    every = ["jit(f)", *(f"jit(f)=>r{at:03}{end}" for at in places for end in ("", "=>dot"))]
    assert names == every[:rows]


def test_the_mfu_of_a_step_by_hand():
    """50e6 flops and 5,000 bytes in 60 us of a step of 100; 20 us more have no costs."""
    found = roofline((60, 50 * 10**6, 5_000), (20, 0, 0))
    assert (found.mfu, found.hfu, found.mfu_unknown_because) == (0.5, 0.5, None)
    assert (found.mfu_is_lower_bound, found.coverage, found.compute_duration) == (True, 0.75, 80)
    assert found.achieved == {
        "teraflops_per_second": pytest.approx(50 / 60),
        "hbm_gigabytes_per_second": pytest.approx(5 / 60),
        "operational_intensity": 10_000,
    }


def test_a_step_may_reach_the_peak():
    found = roofline((100, 100 * 10**6, 10))
    assert (found.mfu, found.hfu, found.mfu_unknown_because) == (1.0, 1.0, None)


@pytest.mark.parametrize("missing", sorted(PEAKS))
def test_without_a_peak_the_reason_is_given(missing):
    found = roofline((60, 50 * 10**6, 10), peaks={name: 1.0 for name in PEAKS if name != missing})
    assert found.bound_by_unknown_because == "The file does not state the device's peak."
    assert (found.mfu is None) == (missing == "peak_teraflops_per_second")
