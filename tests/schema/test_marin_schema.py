"""Our summaries in marin-core's hands, and theirs in ours. Needs Python 3.12 and marin-core."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from marin_profile.analysis.breakdown_v1 import GLOBAL, PER_TRACK
from marin_profile.schema import parse_summary
from real.captures import CPU8, GPU_GEMM, V6E, VLLM_BEFORE, summarize

REASON = "marin-core is not installed (it needs Python 3.12)"
schema = pytest.importorskip("marin.profiling.schema", reason=REASON)


@pytest.mark.parametrize("folder", [V6E, VLLM_BEFORE, CPU8, GPU_GEMM])
def test_marin_core_reads_our_summary(traces: Path, folder):
    ours = summarize(traces / folder)
    theirs = schema.profile_summary_from_dict(json.loads(ours.to_json()))
    assert theirs.schema_version == "profile_summary.v1"
    assert theirs.step_time.all_steps.count == ours.step_time.all_steps.count
    assert theirs.time_breakdown.compute.total_duration == pytest.approx(
        ours.time_breakdown.compute.total_duration, abs=1e-6
    )
    assert [(op.name, op.count) for op in theirs.hot_ops] == [
        (op.name, op.count) for op in ours.hot_ops
    ]
    rows = theirs.communication_ops
    assert [(row.collective, row.count) for row in rows] == [
        (row.collective, row.count) for row in ours.communication_ops
    ]


def their_summary(path: Path, mode: str | None = None):
    ingest = pytest.importorskip("marin.profiling.ingest", reason=REASON)
    options = {} if mode is None else {"breakdown_mode": mode}
    return ingest.summarize_trace(path, **options)


def test_we_read_their_summary_and_keep_every_field(traces: Path):
    theirs = their_summary(traces / V6E / "host0.trace.json.gz")
    ours = parse_summary(theirs.to_json())
    kept = json.loads(ours.to_json())
    for name, value in json.loads(theirs.to_json()).items():
        assert_kept(value, kept[name])
    assert ours.hot_ops[0].name == theirs.hot_ops[0].name
    assert schema.profile_summary_from_dict(kept).hot_ops[0].name == theirs.hot_ops[0].name


def assert_kept(value, kept) -> None:
    """All that `value` holds stands in `kept` too; numbers to six decimals."""
    if isinstance(value, dict):
        for key, inner in value.items():
            assert_kept(inner, kept[key])
    elif isinstance(value, list):
        assert len(value) == len(kept)
        for inner, other in zip(value, kept, strict=True):
            assert_kept(inner, other)
    elif isinstance(value, float):
        assert kept == pytest.approx(value, abs=1e-6)
    else:
        assert kept == value


@pytest.mark.parametrize("mode", [PER_TRACK, GLOBAL])
@pytest.mark.parametrize(
    "path", [f"{V6E}/host0.trace.json.gz", f"{CPU8}/cpu8.trace.json.gz"], ids=["v6e", "cpu8"]
)
def test_older_bases_are_theirs(traces: Path, path, mode):
    theirs = their_summary(traces / path, mode).time_breakdown
    ours = summarize(traces / path, breakdown_mode=mode).time_breakdown
    assert ours.duration_basis == theirs.duration_basis
    for bucket in ("compute", "communication", "host", "stall", "other"):
        mine, yours = getattr(ours, bucket), getattr(theirs, bucket)
        assert mine.total_duration == pytest.approx(yours.total_duration, rel=1e-9, abs=1.0)
    assert dataclasses.asdict(theirs)["total_duration"] == pytest.approx(
        ours.total_duration, rel=1e-9, abs=1.0
    )
