"""JAX on MI300X and GTX 1080 Ti: real scopes, repeated module names, driver copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marin_profile.analysis.flows import Spans, steps_of_events
from real.captures import (
    GPU_CONV,
    GPU_GEMM,
    GPU_GTX,
    GPU_LEGACY,
    ledgers,
    read,
    summarize,
    terms,
)

ALL = [GPU_CONV, GPU_GEMM, GPU_GTX, GPU_LEGACY]


@pytest.mark.parametrize("folder", ALL)
def test_no_steps_and_ledgers_that_sum(traces: Path, folder):
    summary = summarize(traces / folder)
    assert summary.step_time.source == "none"
    assert summary.step_time.all_steps.count == 0
    assert {row.window for row in summary.device_ledger} == {"capture"}
    assert {row.kind for row in summary.device_ledger} == {"gpu"}
    for row in ledgers(summary, "capture").values():
        assert terms(row) == pytest.approx(row.window_duration, rel=1e-12)
    assert summary.time_breakdown.basis == "capture"


@pytest.mark.parametrize("folder", ALL)
def test_scopes_are_paths(traces: Path, folder):
    summary = summarize(traces / folder, hot_op_limit=1000)
    paths = {op.tf_op_path for op in summary.hot_ops if op.tf_op_path}
    assert not any("XlaModule" in path for path in paths)
    assert not paths & {"kernel", "x"}
    roots = {region.path for region in summary.hierarchical_regions if region.depth == 1}
    expected = {
        GPU_CONV: {"jit(forward_3d_conv)"},
        GPU_LEGACY: {"jit(forward_3d_conv)"},
        GPU_GEMM: {"jit(dot)", "jit(broadcast_in_dim)"},
        GPU_GTX: set(),
    }[folder]
    assert expected <= roots


def test_repeated_module_names_are_kept_apart(traces: Path):
    summary = summarize(traces / GPU_GEMM, hot_op_limit=1000)
    programs = {op.program_id for op in summary.hot_ops if op.module == "jit_dot"}
    names = {(op.name, op.program_id) for op in summary.hot_ops if op.module == "jit_dot"}
    assert len(programs) > 1
    assert len(names) >= len(programs)


def test_rocclr_copies_are_transfers(traces: Path):
    for folder in (GPU_CONV, GPU_GEMM):
        summary = summarize(traces / folder, hot_op_limit=1000)
        copies = [op for op in summary.hot_ops if op.name.startswith("__amd_rocclr_copyBuffer")]
        assert copies
        assert {op.category for op in copies} == {"unknown_transfer"}


def test_empty_planes_are_named_and_not_averaged(traces: Path):
    summary = summarize(traces / GPU_GEMM)
    assert summary.coverage.empty_devices == [f"/device:GPU:{i}" for i in range(1, 8)]
    assert summary.run_metadata.num_devices == 1
    warnings = summary.trace_overview.quality_warnings
    assert any("7 of 8 device planes are empty" in warning for warning in warnings)
    legacy = summarize(traces / GPU_LEGACY)
    assert len(legacy.coverage.empty_devices) == 6
    assert legacy.run_metadata.num_devices == 2


def test_attribution_is_measured(traces: Path):
    """gtx: both kernels name an HLO op; conv: the driver's copies do not."""
    assert summarize(traces / GPU_GTX).coverage.hlo_attributed_share == 1.0
    conv = summarize(traces / GPU_CONV).coverage
    assert 0.97 < conv.hlo_attributed_share < 0.99
    # One execution each of two kernels names no HLO op either.
    assert {row.name: row.count for row in conv.unattributed_ops} == {
        "__amd_rocclr_copyBuffer.kd": 35,
        "Im3d2Col.kd": 1,
        "input_transpose_fusion_1.kd": 1,
    }


def test_peaks_come_from_clock_cores_and_compute_capability(traces: Path):
    """MI300X: 2.1 GHz x 304 compute units x 2048 flops; 4 x 1.3 GHz x 1024 bytes."""
    peaks = summarize(traces / GPU_CONV).roofline.peaks
    assert peaks["teraflops_per_second"] == pytest.approx(1307.4432)
    assert peaks["hbm_gigabytes_per_second"] == pytest.approx(5324.8)
    assert summarize(traces / GPU_GTX).roofline.peaks == {"hbm_gigabytes_per_second": 484.44}


def costs(folder: Path) -> dict[tuple[str, str], tuple[int | None, int | None]]:
    summary = summarize(folder, hot_op_limit=1000)
    return {
        (op.module, op.hlo_op): (op.flops, op.bytes_accessed)
        for op in summary.hot_ops
        if op.achieved_tflops is not None and op.bytes_accessed
    }


@pytest.mark.parametrize("folder", [GPU_CONV, GPU_LEGACY])
def test_costs_of_a_convolution_by_miopen(traces: Path, folder):
    """Input [1,16,32,60,104], kernel [5120,16,1,2,2], strides 1, 2, 2, output 34 x 31 x 53, bf16.
    The padding meets no input: each input element meets each kernel output once."""
    found = costs(traces / folder)
    conv = next(value for (_, op), value in found.items() if op.startswith("cudnn-conv"))
    inputs, kernel, output = 16 * 32 * 60 * 104, 5120 * 16 * 4, 5120 * 34 * 31 * 53
    assert conv == (2 * 5120 * inputs, 2 * (inputs + kernel + output))
    transposed = found["jit_forward_3d_conv", "input_transpose_fusion"]
    assert transposed == (0, 2 * 2 * output)


def test_of_the_convolutions_kernels_one_bears_its_costs(traces: Path):
    summary = summarize(traces / GPU_CONV)
    kernels = [op for op in summary.hot_ops if op.hlo_op == "cudnn-conv.1"]
    assert [(op.name.split("_")[0], op.count) for op in kernels] == [
        ("Cijk", 40),
        ("Im3d2Col.kd", 39),
    ]
    assert (kernels[1].flops, kernels[1].bytes_accessed) == (0, 0)
    # Two kernels without an HLO op, at the edge of the capture, have unknown costs.
    assert 0.999 < summary.roofline.coverage < 1.0
    assert summary.roofline.bound_by == "memory"


def test_costs_of_products_by_rocblas(traces: Path):
    """Square and oblong bf16 products: 2 m n k flops; from the strides in the backend config."""
    summary = summarize(traces / GPU_GEMM, hot_op_limit=1000)
    products = {op.flops for op in summary.hot_ops if op.hlo_op == "custom-call.1"}
    assert products == {2 * 8192 * 8192 * 4096, 2 * 4096**3, 2 * 4096 * 4096 * 2048, 2 * 1024**3}
    assert summary.roofline.coverage == 1.0
    assert summary.roofline.bound_by == "compute"
    assert 0.5 < summary.roofline.utilization["teraflops_per_second"] < 1.0


def test_flows_lead_from_each_call_to_its_launches_on_other_threads(traces: Path):
    """Calls on `python`, by two hops to thread pools, launches on `Host Threads/<tid>` beside
    these. Each call waits for its devices, so the time of a launch tells the same."""
    timeline = read(traces / GPU_CONV / "tw003.xplane.pb")
    names = np.array([op.name for op in timeline.ops])[timeline.op]
    lines = np.array([line.name for line in timeline.lines])[timeline.line]
    calls = np.flatnonzero((names == "PjitFunction(forward_3d_conv)") & (lines == "python"))
    calls = calls[np.argsort(timeline.start[calls], kind="stable")]
    # Two events a call, one inside the other.
    outer = calls[::2]
    markers = Spans(
        timeline.start[outer],
        timeline.start[outer] + timeline.duration[outer],
        timeline.line[outer].astype(np.int64),
        np.arange(len(outer)),
    )
    rows = timeline.correlation_id.rows
    launches = rows[np.char.startswith(lines[rows], "Host Threads/")]
    found = steps_of_events(timeline, markers, launches)
    by_time = np.searchsorted(markers.start, timeline.start[launches], side="right") - 1
    assert found.tolist() == by_time.tolist()
    assert np.bincount(found).tolist() == [47, 46, 47, 47, 47]
