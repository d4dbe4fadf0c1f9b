"""Clocks of host and device in real captures: what is called a conflict is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.pipeline import summarize
from real.captures import VLLM_AFTER, VLLM_BEFORE


@pytest.mark.parametrize(
    ("name", "conflicts"),
    [("cpu_8dev", None), ("gpu_gtx1080ti", 0), ("gpu_mi300x_conv", 0), ("gpu_mi300x_gemm", 0)],
)
def test_clocks_that_agree(traces: Path, name: str, conflicts: int | None) -> None:
    summary = summarize(traces / name)
    (host,) = summary.hosts
    assert (host.clock_conflicts, host.clock_offset, host.clock_uncertainty) == (
        conflicts, None, None,
    )  # fmt: skip
    assert not any("Clock conflict" in text for text in summary.trace_overview.quality_warnings)


@pytest.mark.parametrize(("name", "offset"), [(VLLM_BEFORE, 610.321848), (VLLM_AFTER, 533.925531)])
def test_serving_work_begins_before_its_launch(traces: Path, name: str, offset: float) -> None:
    """jit_step_fun was launched half a millisecond after its first op began, on both devices; in
    the first capture TPU:1 ran op 0 at 1,144,569.654152 us, launched at 1,145,179.976."""
    (host,) = summarize(traces / name).hosts
    assert (host.clock_conflicts, host.clock_offset_limit) == (2, None)
    assert host.clock_offset == host.clock_uncertainty == pytest.approx(offset, abs=1e-9)


def test_ends_that_no_constant_mends(traces: Path) -> None:
    """On v6e the event clock runs away within programs: of 414 executions 169 end up to 197.8 ms
    after the host saw it end, the others before; every launch is before its work."""
    summary = summarize(traces / "tpu_v6e_4dev")
    (host,) = summary.hosts
    assert (host.clock_conflicts, host.clock_offset, host.clock_offset_limit) == (169, None, None)
    assert host.clock_uncertainty == pytest.approx(197_800.1175, abs=1e-9)
    assert any(
        "169 of 828 launches and completions contradict" in text
        for text in summary.trace_overview.quality_warnings
    )
