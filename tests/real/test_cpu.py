"""Eight forced CPU devices: threads are a pool, devices are ordinals."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.base.errors import CannotAnswerError
from real.captures import CPU8, CPU_HOST_ONLY, ledgers, share, summarize, terms


@pytest.fixture(scope="module")
def summary(traces: Path):
    return summarize(traces / CPU8)


def test_twelve_steps_on_eight_devices(summary):
    steps = summary.step_time
    assert (steps.source, steps.annotation, steps.linked) == ("annotation", "train", True)
    assert [step.step_num for step in steps.steps] == list(range(12))
    assert [step.kept for step in steps.steps] == [False] + [True] * 11
    assert summary.run_metadata.num_devices == 8


def test_84_ops_on_each_device(summary):
    assert sum(group.count for group in summary.op_groups) == 8 * 84


def test_twelve_all_reduces_of_all_devices(summary):
    """96 executions of 1,334,072.792 us; what exceeds the shortest of each eight is waiting."""
    (row,) = summary.collectives
    assert (row.count, row.instances, row.groups, row.members_seen) == (96, 12, 1, 8)
    assert (row.duration, row.exposed_duration) == (1_334_072.792, 1_334_072.792)
    assert (row.wait_duration, row.wait_is_lower_bound) == (516_243.488, False)
    assert row.bytes == 96 * 512 * 512 * 4
    wire = row.duration - row.wait_duration
    assert row.algorithm_gbps == pytest.approx(row.bytes / wire / 1000)
    assert row.bus_gbps == pytest.approx(row.algorithm_gbps * 1.75)


def test_devices_that_share_processors_wait_for_each_other_in_turn(summary):
    """Eight devices on two processors: long waits, no straggler."""
    assert len(summary.stragglers) == 8
    assert sum(one.arrived_last for one in summary.stragglers) == 11
    waits = sum(one.wait for one in summary.stragglers)
    assert waits == pytest.approx(sum(one.wait_caused for one in summary.stragglers))
    assert 0.3 < waits / 1_334_072.792 < 0.4
    assert not any(one.is_straggler for one in summary.stragglers)
    assert summary.straggler_hosts == []
    assert "straggler" not in {one.candidate_id for one in summary.optimization_candidates}


@pytest.mark.parametrize(
    ("device", "window", "psum", "compute", "idle"),
    [
        (0, 370_971.421, 52.73, 29.47, 17.80),
        (1, 366_819.665, 47.28, 27.33, 25.39),
        (2, 352_538.155, 51.41, 18.53, 30.06),
        (3, 354_511.687, 45.71, 21.89, 32.40),
        (4, 359_570.072, 41.20, 26.42, 32.38),
        (5, 358_837.768, 43.71, 16.36, 39.94),
        (6, 365_565.975, 44.34, 21.38, 34.29),
        (7, 357_276.381, 43.29, 21.23, 35.48),
    ],
)
def test_capture_ledger(summary, device, window, psum, compute, idle):
    row = ledgers(summary, "capture")[f"/device:CPU:{device}"]
    assert row.window_duration == window
    assert terms(row) == pytest.approx(window, rel=1e-12)
    assert share(row.exposed_communication_duration, row) == psum
    assert share(row.compute_duration, row) == compute
    assert share(row.idle_duration, row) == idle
    assert row.overlapped_communication_duration == 0


def test_op_totals(summary):
    totals = {op.name: op for op in summary.hot_ops}
    assert totals["psum_invariant.7"].exclusive_duration == pytest.approx(1_334_072.8, abs=0.05)
    assert totals["psum_invariant.7"].category == "all-reduce"
    assert totals["ynn_fusion.1"].exclusive_duration == pytest.approx(434_300.6, abs=0.05)
    assert totals["ynn_fusion.2"].exclusive_duration == pytest.approx(143_965.6, abs=0.05)


def test_regions_come_from_the_hlo_protos(summary):
    regions = {region.path: region.inclusive_duration for region in summary.hierarchical_regions}
    for name in ("mlp_up", "mlp_down", "norm"):
        assert regions[f"jit(f)=>{name}"] > 0
    psum = regions["jit(f)=>mlp_down=>psum_invariant"]
    assert psum == pytest.approx(1_334_072.8, abs=0.05)


def test_costs_come_from_the_hlo_protos(summary):
    """Each device holds 64 of 512 columns, float32: two products, the sum over devices, tanh, and
    the norm of the whole result."""
    whole, part = 512 * 512, 512 * 64
    found = {op.name: (op.flops, op.bytes_accessed) for op in summary.hot_ops}
    assert (
        found["ynn_fusion.1"]
        == found["ynn_fusion.2"]
        == (
            2 * 512 * 512 * 64,
            4 * (whole + 2 * part),
        )
    )
    assert found["wrapped_tanh"] == (0, 4 * 2 * part)
    assert found["ynn_fusion"] == (whole + whole - 1, 4 * (whole + 1))
    assert found["broadcast_multiply_fusion"] == (whole, 4 * (2 * whole + 1))
    assert found["psum_invariant.7"] == (None, None)
    assert {op.cost_source for op in summary.hot_ops if op.flops is not None} == {"hlo"}


def test_the_roofline_of_a_cpu_knows_no_peak(summary):
    roofline = summary.roofline
    assert (roofline.coverage, roofline.peaks, roofline.mfu) == (1.0, {}, None)
    assert roofline.mfu_unknown_because == "The file does not state the device's peak."
    # Ten whole periods on eight devices.
    (row,) = [row for row in roofline.by if row.by == "program"]
    a_step = 2 * 2 * 512 * 512 * 64 + 3 * 512 * 512 - 1 + 2
    assert row.flops == 8 * 10 * a_step


def test_host_only_profile_is_refused(traces):
    with pytest.raises(CannotAnswerError, match="host-only profile"):
        summarize(traces / CPU_HOST_ONLY)
