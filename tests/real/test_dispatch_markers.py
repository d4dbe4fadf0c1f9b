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

NOISE_US = 0.001
MAKE_CAPTURE = Path(__file__).parents[1] / "make_capture.py"


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    pytest.importorskip("jax", reason="jax is not installed: no capture can be made")
    folder = tmp_path_factory.mktemp("capture")
    subprocess.run([sys.executable, str(MAKE_CAPTURE), str(folder)], check=True, timeout=600)
    return folder


def by_hand(capture: Path) -> tuple[list[dict], list[dict[int, list[tuple[float, float]]]]]:
    """From the trace JSON as it stands: the markers, and per marker and device (start, end) of the
    ops whose run id was launched inside the marker."""
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
    steps = []
    for marker in markers:
        end = marker["ts"] + marker["dur"]
        runs = {e["args"]["run_id"] for e in launches if marker["ts"] <= e["ts"] < end}
        per_device: dict[int, list[tuple[float, float]]] = {}
        for event in events:
            args = event.get("args", {})
            if "hlo_op" in args and args["run_id"] in runs:
                span = (event["ts"], event["ts"] + event["dur"])
                per_device.setdefault(args["device_ordinal"], []).append(span)
        steps.append(per_device)
    return markers, steps


def test_steps_are_the_linked_executions(capture):
    steps = summarize(capture).step_time
    _, by_device = by_hand(capture)
    durations = [
        statistics.median(max(b for _, b in ops) - min(a for a, _ in ops) for ops in step.values())
        for step in by_device
    ]
    assert (steps.source, steps.annotation, steps.linked) == ("annotation", "train", True)
    assert [step.step_num for step in steps.steps] == list(range(12))
    assert [step.duration for step in steps.steps] == pytest.approx(durations, abs=1e-3)


def test_periods_are_boundary_to_boundary(capture):
    """A step begins at its marker or at the end of what ran before, whichever is later, and at the
    latest with its first op."""
    steps = summarize(capture).step_time.steps
    markers, by_device = by_hand(capture)
    boundaries: list[list[float]] = []
    for device in sorted(by_device[0]):
        busy_until = float("-inf")
        own = []
        for marker, step in zip(markers, by_device, strict=True):
            first = min(begin for begin, _ in step[device])
            begin = min(first, max(marker["ts"], busy_until))
            own.append(first if first - begin <= NOISE_US else begin)
            busy_until = max(busy_until, *(end for _, end in step[device]))
        boundaries.append(own)
    periods = [
        statistics.median(own[index + 1] - own[index] for own in boundaries) for index in range(11)
    ]
    assert [step.period for step in steps[:-1]] == pytest.approx(periods, abs=3e-3)
    assert steps[-1].period is None


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
