"""Every HLO op of the GPU captures against XProf 2.24.2's hlo_stats: executions and total time."""

from __future__ import annotations

from pathlib import Path

import pytest

from real.captures import GPU_CONV, GPU_GEMM, GPU_GTX, GPU_LEGACY, summarize

# (program id, HLO op): executions, total microseconds; all kernels of an op together.
XPROF = {
    GPU_CONV: {
        ("15", "input_transpose_fusion"): (40, 14344.14),
        ("15", "cudnn-conv.1"): (79, 12531.616),
        ("15", "input_transpose_fusion.1"): (39, 481.4),
        ("15", "loop_transpose_fusion"): (40, 193.52),
    },
    GPU_GEMM: {
        ("49", "custom-call.1"): (3, 1833.003),
        ("79", "custom-call.1"): (3, 552.961),
        ("34", "custom-call.1"): (3, 449.28),
        ("64", "custom-call.1"): (3, 352.28),
        ("21", "custom-call.1"): (3, 31.36),
        ("32", "wrapped_broadcast"): (2, 29.6),
        ("1", "copy.1"): (12, 27.64),
        ("45", "wrapped_broadcast"): (1, 23.16),
        ("47", "wrapped_broadcast"): (1, 22.92),
        ("60", "wrapped_broadcast"): (1, 16.16),
        ("62", "wrapped_broadcast"): (1, 15.44),
        ("5", "gemm_fusion_dot_general.1"): (3, 15.0),
        ("75", "wrapped_broadcast"): (1, 13.8),
        ("3", "wrapped_broadcast"): (2, 11.08),
        ("19", "wrapped_broadcast"): (2, 11.0),
        ("77", "wrapped_broadcast"): (1, 10.56),
    },
    GPU_LEGACY: {
        ("15", "input_transpose_fusion"): (5, 1950.96),
        ("15", "cudnn-conv.1.0"): (10, 1539.832),
        ("15", "input_transpose_fusion.1"): (5, 69.261),
        ("15", "loop_transpose_fusion"): (5, 26.44),
    },
    GPU_GTX: {("3", "loop_add_multiply_fusion"): (2, 3.808)},
}


@pytest.mark.parametrize("folder", XPROF)
def test_every_op_equals_xprof(traces: Path, folder):
    found: dict[tuple[str | None, str], tuple[int, float]] = {}
    for op in summarize(traces / folder, hot_op_limit=1000).hot_ops:
        if op.hlo_op:
            count, total = found.get((op.program_id, op.hlo_op), (0, 0.0))
            found[op.program_id, op.hlo_op] = (count + op.count, total + op.total_duration)
    assert found.keys() == XPROF[folder].keys()
    for key, (count, total) in XPROF[folder].items():
        assert found[key][0] == count
        assert found[key][1] == pytest.approx(total, abs=1e-3)
