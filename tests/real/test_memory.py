"""Memory: XProf's memory viewer is the oracle, to the bit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from marin_profile.analysis.memory import TEMPORARY, peak_of
from real.captures import CPU8, GPU_CONV, GPU_GEMM, GPU_GTX, V6E, read, summarize

MIB = 1 << 20
SMALLEST_NAMED = 16 << 10
CAPTURES = {
    "tpu_v6e_4dev": V6E,
    "cpu_8dev": CPU8,
    "gpu_mi300x_conv": GPU_CONV,
    "gpu_mi300x_gemm": GPU_GEMM,
    "gpu_gtx1080ti": GPU_GTX,
}
CELLS = {
    "tpu_v6e_4dev": 5,
    "cpu_8dev": 1,
    "gpu_mi300x_conv": 8,
    "gpu_mi300x_gemm": 16,
    "gpu_gtx1080ti": 2,
}


def timeline_of(traces: Path, capture: str):
    (path,) = sorted((traces / CAPTURES[capture]).glob("*.xplane.pb"))
    return read(path)


@pytest.fixture(scope="module")
def viewer(reference: Path) -> list[dict[str, Any]]:
    cells = json.loads((reference / "memory_viewer_xprof_2.24.2.json").read_text())
    assert len(cells) == sum(CELLS.values()) == 32
    return cells


@pytest.mark.parametrize("capture", CAPTURES)
def test_peaks_are_xprofs_to_the_bit(traces, viewer, capture):
    timeline = timeline_of(traces, capture)
    cells = [cell for cell in viewer if cell["capture"] == capture]
    assert len(cells) == CELLS[capture]
    for cell in cells:
        program_id = int(cell["module"].rsplit("(", 1)[1][:-1])
        plan = timeline.hlo_memory[program_id]
        peak, _, live = peak_of(plan, cell["memory_space"])
        assert peak / MIB == cell["peakHeapMib"]
        assert sum(size for _, size, _ in live) == peak
        lasting = sum(size for kind, size, _ in live if kind != TEMPORARY)
        assert lasting / MIB == (cell["indefiniteBufferAllocationMib"] or 0)
        assert plan.is_whole


def test_what_is_alive_is_xprofs(traces, viewer):
    """XProf lists those of 16 KiB and more by name and kind, and sums up the smaller ones."""
    for capture in CAPTURES:
        timeline = timeline_of(traces, capture)
        for cell in viewer:
            if cell["capture"] != capture or not cell["at_peak"]:
                continue
            plan = timeline.hlo_memory[int(cell["module"].rsplit("(", 1)[1][:-1])]
            _, _, live = peak_of(plan, cell["memory_space"])
            ours = Counter(
                (plan.names[plan.buffers.instruction[row]], kind, size / MIB)
                for kind, size, row in live
                if size >= SMALLEST_NAMED
            )
            named = Counter(
                (name.partition("{")[0], kind.lower(), size)
                for name, _, _, kind, size in cell["at_peak"]
                if name is not None
            )
            assert ours == named


def test_the_summary_of_the_v6e_capture(traces):
    rows = summarize(traces / V6E / "host0.xplane.pb").memory or []
    fullest, offloaded = rows[:2]
    assert (fullest.module, fullest.space, fullest.peak_size) == ("jit_f", "hbm", 21_474_836_512)
    assert (fullest.instruction, fullest.temporary_size) == ("broadcast_add_fusion.2", 20480 * MIB)
    assert (offloaded.module, offloaded.space, offloaded.peak_size) == (
        "jit_f",
        "host",
        15360 * MIB,
    )
    assert offloaded.parameter_size == offloaded.peak_size
    assert [one.argument for one in offloaded.buffers] == ["ws[0]", "ws[1]", "ws[2]"]


def test_json_holds_no_plans(traces):
    assert summarize(traces / V6E / "host0.trace.json.gz").memory is None
