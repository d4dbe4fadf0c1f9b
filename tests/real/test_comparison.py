"""A natural before and after: one program, one step each, other kernels."""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import pytest

from marin_profile.comparison import compare
from marin_profile.reports import render_comparison
from real.captures import CPU8, V6E, VLLM_AFTER, VLLM_BEFORE, summarize


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


@pytest.mark.parametrize("name", ["ledger", "families", "regions", "ops"])
def test_every_split_sums_to_the_target(vllm, name):
    rows = getattr(vllm.attribution, name).rows
    assert sum(picoseconds(row.delta) for row in rows) == picoseconds(vllm.target.delta)
    for side in ("before", "after"):
        total = sum(getattr(row, side) or 0.0 for row in rows)
        assert total == pytest.approx(getattr(vllm.target, side), abs=1e-4)


def test_replaced_kernels_are_matched_and_named(vllm):
    names = {
        (op.canonical_name): row
        for row in vllm.attribution.ops.rows
        for op in (*row.before_ops, *row.after_ops)
    }
    attention = names["RPA-bq_32-bkvp_64-p_64-"]
    assert attention is names["RPA-bq_32-bkvp_32-p_128-"]
    assert attention.match == "kernel_variant"
    assert (attention.before_count, attention.after_count) == (64.0, 64.0)
    for kernel, region in (
        ("quantized_matmul_kernel_512_6400_1024", "MergedColumnParallelLinear"),
        ("quantized_matmul_kernel_1024_5120_512", "RowParallelLinear"),
        ("quantized_matmul_kernel_512_5120_2560", "QKVParallelLinear"),
    ):
        row = names[kernel]
        assert row.match == "replaced"
        assert row.before_ops[0].scope == f"jit(step_fun)/{region}/mn,pn->mp/dot_general"
        assert row.delta < 0
    assert names["psum"].before_ops[0].canonical_name == "all-reduce"


def test_the_rest_is_small_and_loose_matches_are_reported(vllm):
    rest, target = vllm.attribution.ops.rest, abs(vllm.target.delta)
    assert abs(rest.delta) <= 0.02 * target
    assert max(rest.before, rest.after) <= 0.02 * target
    assert 0.25 * target < vllm.attribution.ops.loose.delta < 0.5 * target
    assert "matched by kind alone" in render_comparison(vllm)


def test_the_regions_that_account_for_it(vllm):
    top = [row.name for row in vllm.attribution.regions.rows[:3]]
    assert "jit(step_fun)=>MergedColumnParallelLinear" in top
    assert "jit(step_fun)=>RowParallelLinear" in top


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
