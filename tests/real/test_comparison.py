"""A natural before and after: one program, one step each, other kernels."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import pytest

from marin_profile.comparison import compare
from real.captures import CPU8, GPU_CONV, GPU_GEMM, V6E, VLLM_AFTER, VLLM_BEFORE, summarize


@pytest.fixture(scope="module")
def vllm(traces: Path):
    return compare(summarize(traces / VLLM_BEFORE), summarize(traces / VLLM_AFTER), top_k=10_000)


def execution_by_hand(path: Path) -> float:
    """The mean over devices of jit_step_fun's own event, us, from the JSON as it stands."""
    (file,) = path.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    lengths = [
        event["dur"]
        for event in events
        if event.get("ph") == "X" and event["name"].startswith("jit_step_fun(")
    ]
    assert len(lengths) == 2
    return statistics.mean(lengths)


def picoseconds(value: float | None) -> int:
    return round((value or 0.0) * 1e6)


def test_the_target_is_the_execution(vllm, traces):
    before, after = (execution_by_hand(traces / one) for one in (VLLM_BEFORE, VLLM_AFTER))
    assert round(after - before) == -1453
    # Ops are timed on the device clock and the launch on the event clock: 1 ns is lost between.
    assert vllm.target.before == pytest.approx(before, abs=0.001)
    assert vllm.target.after == pytest.approx(after, abs=0.001)
    assert (vllm.target.basis, vllm.target.launch_included) == ("execution", True)
    assert vllm.target.delta == pytest.approx(-1452.694, abs=0.002)


@pytest.mark.parametrize("name", ["ledger", "families", "headline", "regions", "ops"])
def test_every_split_sums_to_the_target(vllm, name):
    rows = getattr(vllm.attribution, name).rows
    assert sum(picoseconds(row.delta) for row in rows) == picoseconds(vllm.target.delta)
    for side in ("before", "after"):
        total = sum(getattr(row, side) or 0.0 for row in rows)
        assert total == pytest.approx(getattr(vllm.target, side), abs=1e-4)


def test_kernels_are_matched_or_went_and_came(vllm):
    names = {
        op.canonical_name: row
        for row in vllm.attribution.ops.rows
        for op in (row.before_op, row.after_op)
        if op
    }
    attention = names["RPA-bq_32-bkvp_64-p_64-"]
    assert attention is names["RPA-bq_32-bkvp_32-p_128-"]
    assert attention.match == "kernel_variant"
    assert (attention.before_op.count, attention.after_op.count) == (64.0, 64.0)
    # Matrix products of bf16 went, quantized kernels came, with ops that quantize.
    for kernel in (
        "quantized_matmul_kernel_512_6400_1024",
        "quantized_matmul_kernel_1024_5120_512",
        "quantized_matmul_kernel_512_5120_2560",
    ):
        assert (names[kernel].match, names[kernel].before) == ("only_after", None)
    # The all-reduces of one region are the same under another name and scope.
    assert names["psum"].match == "replaced"
    assert names["psum"].before_op.canonical_name == "all-reduce"


def test_gross_and_net(vllm):
    gross = vllm.attribution.ops.gross
    no_ops = sum(row.delta for row in vllm.attribution.ops.rows if row.match in ("idle", "launch"))
    parts = gross.added + gross.removed + gross.grown + gross.shrunk
    assert parts == pytest.approx(vllm.target.delta - no_ops, abs=1e-5)
    assert gross.added > 20 * abs(vllm.target.delta)
    assert gross.removed < -20 * abs(vllm.target.delta)


def test_the_regions_that_account_for_it(vllm):
    rows = {row.name: row.delta for row in vllm.attribution.headline.rows}
    assert list(rows)[:4] == [
        "jit(step_fun)=>MergedColumnParallelLinear",
        "jit(step_fun)=>(itself)",
        "jit(step_fun)=>RowParallelLinear",
        "jit(step_fun)=>aten::mul.Tensor",
    ]
    assert round(rows["jit(step_fun)=>MergedColumnParallelLinear"]) == -8682


def test_one_step_gives_no_statistics(vllm):
    assert any(caveat.about == "window" for caveat in vllm.comparability.caveats)
    assert {row.statistic for row in vllm.step_time} == {"median"}


def test_formats_of_one_capture_differ_by_nothing(traces):
    folder = traces / V6E
    found = compare(
        summarize(folder / "host0.xplane.pb"), summarize(folder / "host0.trace.json.gz")
    )
    assert found.target is not None
    assert found.target.delta == 0.0
    assert found.attribution is not None
    assert all(row.delta == 0.0 for row in found.attribution.ops.rows)
    assert {caveat.about for caveat in found.comparability.caveats} == {"facts", "format"}


def test_the_mean_period_is_the_target(traces):
    """Whole periods: their mean is the target, whatever the number of steps."""
    summary = summarize(traces / CPU8, warmup_steps=1)
    found = compare(summary, summarize(traces / CPU8, warmup_steps=6))
    assert found.comparability.same_capture
    assert found.target is not None
    assert (found.target.before_steps, found.target.after_steps) == (10, 5)
    assert summary.step_time.period is not None
    # The summary's period is a median over devices, the target a mean.
    assert found.target.before == pytest.approx(summary.step_time.period.mean, rel=0.02)


@pytest.mark.parametrize("capture", [V6E, CPU8, VLLM_BEFORE])
def test_a_capture_and_itself(traces, capture):
    """Sameness, and no other doubt than that which one side alone gives."""
    summary = summarize(traces / capture)
    found = compare(summary, summary)
    assert found.comparability.same_capture
    assert found.comparability.blocking == []
    assert found.comparability.shapes is None
    assert {caveat.about for caveat in found.comparability.caveats} <= {"facts", "window"}
    assert found.devices == []


def kernel_time_by_hand(path: Path, module: str) -> float:
    """The sum of the kernels of all streams, us, from the JSON as it stands; none overlap."""
    (file,) = path.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    streams = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"].startswith("Stream")
    }
    return sum(
        event["dur"]
        for event in events
        if event.get("ph") == "X"
        and (event["pid"], event["tid"]) in streams
        and event.get("args", {}).get("hlo_module") == module
    )


def test_executions_stand_in_for_steps(traces):
    """8 devices run the convolution 5 times each."""
    folder = traces / GPU_CONV
    summary = summarize(folder)
    found = compare(summary, summary)
    assert found.basis is not None
    assert (found.basis.program, found.basis.before_executions) == ("jit_forward_3d_conv", 40)
    assert found.target is not None
    by_hand = kernel_time_by_hand(folder, "jit_forward_3d_conv") / 40
    assert found.target.before == pytest.approx(by_hand, abs=1e-3)
    assert (found.target.delta, found.devices) == (0.0, [])
    assert {caveat.about for caveat in found.comparability.caveats} == {"steps"}
    assert found.comparability.blocking == []


def test_programs_of_one_name_leave_the_whole_capture(traces):
    """Six programs are called jit_dot, so that its launches are none's."""
    summary = summarize(traces / GPU_GEMM)
    found = compare(summary, summary)
    assert found.basis is not None
    assert found.basis.kind == "capture"
    assert found.target is not None
    (row,) = [row for row in summary.device_ledger if row.window == "capture"]
    assert (found.target.before, found.target.delta) == (row.window_duration, 0.0)
