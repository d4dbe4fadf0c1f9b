"""A capture whose markers cover the dispatch only, as Levanter's do: made here, by real JAX."""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from real.captures import summarize

MAKE_CAPTURE = Path(__file__).parents[1] / "make_capture.py"


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    pytest.importorskip("jax", reason="jax is not installed: no capture can be made")
    folder = tmp_path_factory.mktemp("capture")
    subprocess.run([sys.executable, str(MAKE_CAPTURE), str(folder)], check=True, timeout=600)
    return folder


def by_hand(capture: Path) -> tuple[list[float], list[float], list[float]]:
    """Per step, from the trace JSON as it stands: (marker length, median over devices of first
    start to last end of the ops whose run id was launched inside the marker, earliest start)."""
    (file,) = capture.glob("plugins/profile/*/*.trace.json.gz")
    payload = json.loads(gzip.decompress(file.read_bytes()))
    events = [e for e in payload["traceEvents"] if e.get("ph") == "X"]
    markers = sorted((e for e in events if "step_num" in e.get("args", {})), key=lambda e: e["ts"])
    markers = [e for e in markers if e["name"] == "train"]
    launches = [
        e
        for e in events
        if e["tid"] == markers[0]["tid"]
        and "run_id" in e.get("args", {})
        and "hlo_op" not in e["args"]
    ]
    marker_lengths, durations, starts = [], [], []
    for marker in markers:
        end = marker["ts"] + marker["dur"]
        runs = {e["args"]["run_id"] for e in launches if marker["ts"] <= e["ts"] < end}
        per_device: dict[str, list[tuple[float, float]]] = {}
        for event in events:
            args = event.get("args", {})
            if "hlo_op" in args and args["run_id"] in runs:
                span = (event["ts"], event["ts"] + event["dur"])
                per_device.setdefault(args["device_ordinal"], []).append(span)
        lengths = [max(b for _, b in ops) - min(a for a, _ in ops) for ops in per_device.values()]
        marker_lengths.append(marker["dur"])
        durations.append(statistics.median(lengths))
        starts.append(statistics.median(min(a for a, _ in ops) for ops in per_device.values()))
    return marker_lengths, durations, starts


def test_steps_are_the_linked_executions(capture):
    steps = summarize(capture).step_time
    markers, durations, _ = by_hand(capture)
    assert (steps.source, steps.annotation, steps.linked) == ("annotation", "train", True)
    assert [step.step_num for step in steps.steps] == list(range(12))
    assert [step.duration for step in steps.steps] == pytest.approx(durations, abs=1e-3)
    # The marker ends while the devices still work.
    assert statistics.median(markers) < 0.9 * statistics.median(durations)


def test_periods_are_start_to_start(capture):
    steps = summarize(capture).step_time.steps
    assert steps[-1].period is None
    for step in steps[:-1]:
        assert step.period > 0
    # Medians over devices of differences, against differences of medians: the same on average.
    _, _, starts = by_hand(capture)
    mean = (starts[-1] - starts[0]) / (len(starts) - 1)
    assert statistics.mean(step.period for step in steps[:-1]) == pytest.approx(mean, rel=0.05)


def test_costs_of_what_was_captured(capture):
    """x [512, 512] by 64 columns, the part by [64, 512]: float32, on each of eight devices."""
    summary = summarize(capture, hot_op_limit=1000)
    whole, part = 512 * 512, 512 * 64
    products = [op for op in summary.hot_ops if op.flops == 2 * 512 * 512 * 64]
    assert len(products) == 2
    assert {op.bytes_accessed for op in products} == {4 * (whole + 2 * part)}
    assert {op.count for op in products} == {8 * 12}
    assert summary.roofline.coverage == pytest.approx(1.0, abs=0.01)
    assert summary.roofline.peaks == {}
