"""Summary and report of synthetic captures as they were looked at and found right: a change of any
byte must be meant (`pytest --snapshot-update`)."""

from __future__ import annotations

import pytest

from builders_xspace import STAMP, Space, summarize_spaces
from marin_profile.reports.report import render_markdown


def tpu() -> Space:
    """Four steps on two devices: a hidden all-gather, an exposed all-reduce, an offload copy."""
    space = Space("host-0")
    space.environment(1_700_000_000_000_000_000, 1_700_000_001_000_000_000)
    for ordinal in range(2):
        device = space.tpu(ordinal)
        for step in range(4):
            at = 1_000 * step + 10 * ordinal
            device.module("jit_train_step(77)", at, 900, run_id=step)
            device.op("all-gather-start.1", at, 5, category="all-gather-start", program_id=77)
            device.op(
                "fusion.1", at + 5, 300, category="convolution fusion", program_id=77,
                scope="jit(train_step)/jvp(mlp)/dot_general:",
            )  # fmt: skip
            device.op("all-gather-done.1", at + 305, 20, category="all-gather-done", program_id=77)
            device.op(
                "fusion.2", at + 325, 200, category="loop fusion", program_id=77,
                scope="jit(train_step)/transpose(jvp(mlp))/mul:",
            )  # fmt: skip
            device.op("all-reduce.3", at + 600, 100, category="all-reduce", program_id=77)
    return space


def gpu() -> Space:
    space = Space("host-0")
    space.gpu(1)
    busy = space.gpu(0, device_vendor="Nvidia", memory_bandwidth=2_000_000_000_000)
    for at in (0, 100):
        busy.kernel("gemm", at, 40, hlo_op="dot.1", scope="jit(f)/layer/dot_general")
        busy.kernel("ncclDevKernel_AllReduce_Sum", at + 20, 50, stream="Stream #20(Kernel)")
        busy.kernel("MemcpyD2H", at + 80, 10, stream="Stream #8(MemcpyD2H)")
    return space


def uneven() -> Space:
    """26 steps of 1,000 us; every 5th computes 400 us longer, and step 13 waits 700 us more for the
    host's save_checkpoint. Ops take 10, 20 or 30 us more or less, by the step."""
    space = Space("host-0")
    device, host = space.tpu(0), space.host()
    at = 1_000
    for step in range(26):
        extra = 400 if step % 5 == 4 else 0
        wobble = 10 * (step * 7 % 4)
        stall = 700 if step == 13 else 0
        device.module("jit_train_step(77)", at, 800 + extra, run_id=step)
        device.op(
            "fusion.1", at, 500 + wobble, category="convolution fusion", program_id=77,
            scope="jit(train_step)/jvp(mlp)/dot_general:",
        )  # fmt: skip
        device.op(
            "fusion.2", at + 600, 200 + extra, category="loop fusion", program_id=77,
            scope="jit(train_step)/jvp(router)/sort:",
        )  # fmt: skip
        host.marker(step, at - 60, 40)
        host.call("Execute", at - 50, 10, run_id=step)
        if stall:
            host.call("save_checkpoint", at + 850, 800)
        at += 1_000 + extra + stall + wobble
    return space


@pytest.mark.parametrize("make", [tpu, gpu, uneven])
def test_summary_and_report(make, tmp_path, snapshot):
    summary = summarize_spaces(tmp_path, make())
    # The package's version is no part of what is held here.
    capture = summary.capture.model_copy(update={"tool_version": "0"})
    summary = summary.model_copy(update={"capture": capture})
    assert STAMP in summary.source_path
    assert summary.to_json() == snapshot(name="json")
    assert render_markdown(summary) == snapshot(name="report")
