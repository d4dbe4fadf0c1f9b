"""JAX on MI300X and GTX 1080 Ti: real scopes, repeated module names, driver copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from real.captures import (
    GPU_CONV,
    GPU_GEMM,
    GPU_GTX,
    GPU_LEGACY,
    ledgers,
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
