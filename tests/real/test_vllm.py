"""TPU serving, JSON only, one step a file: names alone do not tell collectives."""

from __future__ import annotations

import gzip
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from builders_xspace import summary_of
from marin_profile.analysis.host import analyse_host
from marin_profile.analysis.roofline import Peaks
from marin_profile.queries import answer
from marin_profile.reports.report import render_markdown
from marin_profile.reports.screen import render_screen
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import assess
from real.captures import VLLM_AFTER, VLLM_BEFORE, ledgers, read, summarize, terms


@pytest.fixture(scope="module")
def before(traces: Path):
    return summarize(traces / VLLM_BEFORE, hot_op_limit=10_000)


@pytest.fixture(scope="module")
def after(traces: Path):
    return summarize(traces / VLLM_AFTER, hot_op_limit=10_000)


def counts(summary) -> dict[str, int]:
    return {row.collective: row.count for row in summary.communication_ops}


def test_collectives_are_found_whatever_their_names(before, after):
    assert counts(before) == {"all-reduce": 2 * 129, "all-gather": 2 * 2}
    assert counts(after) == {"all-reduce": 2 * 129, "all-to-all": 2 * 128, "all-gather": 2 * 2}
    named_psum = [op for op in after.hot_ops if op.name.startswith("psum")]
    assert sum(op.count for op in named_psum) == 2 * 128
    assert {op.category for op in named_psum} == {"all-reduce"}


@pytest.mark.parametrize(
    ("which", "device", "window", "busy", "communication"),
    [
        ("before", 0, 67_234.949579, 67_209.386199, 3_438.250901),
        ("before", 1, 67_235.345738, 67_206.929977, 3_458.381758),
        ("after", 0, 65_748.357743, 65_722.837391, 4_191.624251),
        ("after", 1, 65_748.693877, 65_719.868641, 4_275.472996),
    ],
)
def test_capture_windows(request, which, device, window, busy, communication):
    row = ledgers(request.getfixturevalue(which), "capture")[f"/device:TPU:{device}"]
    assert row.window_duration == window
    assert terms(row) == pytest.approx(window, rel=1e-12)
    exposed = row.exposed_communication_duration + row.overlapped_communication_duration
    assert exposed == pytest.approx(communication, abs=0.001)
    # Async copies in flight fill what the op line leaves idle, so idle can only be smaller.
    assert row.idle_duration <= window - busy + 1e-6
    assert row.compute_duration < busy


def test_start_done_pairs_are_transfers(before):
    pairs = [
        op
        for op in before.hot_ops
        if op.canonical_name in ("slice-start", "slice-done", "copy-start", "copy-done")
    ]
    assert len(pairs) > 700
    assert {op.category for op in pairs} <= {
        "on_chip",
        "host_to_device",
        "device_to_host",
        "device_to_device",
    }


def step_by_hand(path: Path) -> float:
    """Median over devices of first start to last end (device clock, us) of the ops that start
    inside jit_step_fun's execution (event clock), from the JSON as it stands."""
    (file,) = path.glob("*.trace.json.gz")
    events = [
        event
        for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
        if event.get("ph") == "X" and "device_offset_ps" in event.get("args", {})
    ]
    lengths = []
    for pid in (3, 4):
        (module,) = (
            event
            for event in events
            if event["pid"] == pid and event["name"].startswith("jit_step_fun(")
        )
        begin, end = module["ts"], module["ts"] + module["dur"]
        inside = [
            (int(event["args"]["device_offset_ps"]), int(event["args"]["device_duration_ps"]))
            for event in events
            if event["pid"] == pid and event["tid"] == 3 and begin <= event["ts"] <= end
        ]
        first = min(offset for offset, _ in inside)
        last = max(offset + length for offset, length in inside)
        lengths.append((last - first) / 1e6)
    return statistics.median(lengths)


@pytest.mark.parametrize(
    ("which", "folder", "module_ms"),
    [("before", VLLM_BEFORE, (66.91, 66.98)), ("after", VLLM_AFTER, (65.43, 65.56))],
)
def test_one_step_pretends_no_statistics(request, traces, which, folder, module_ms):
    summary = request.getfixturevalue(which)
    steps = summary.step_time
    assert (steps.source, steps.annotation) == ("module", "jit_step_fun")
    assert steps.all_steps.count == 1
    assert steps.warmup_steps_ignored == 0
    assert steps.period.count == 0
    assert steps.period.median is None
    assert steps.all_steps.median == pytest.approx(step_by_hand(traces / folder), abs=1e-6)
    # The module's own events are longer: they include the launch before the first op.
    assert 0 < sum(module_ms) / 2 - steps.all_steps.median / 1000 < 0.1
    assert any("only one step" in warning for warning in summary.trace_overview.quality_warnings)


def test_one_step_a_side_cannot_be_judged(before, after):
    found = assess([before], [after])
    assert (found.status, found.reasons) == (
        "inconclusive",
        ("one step per side cannot be judged",),
    )
    assert found.change_pct == pytest.approx(-2.22, abs=0.01)
    assert found.interval_pct is None


# costs


def at_peaks(path: Path, peaks: Peaks) -> ProfileSummary:
    """Summarised as if the file told the device's peaks."""
    (file,) = path.glob("*.trace.json.gz")
    part = analyse_host(read(file), "", warmup_steps=1)
    devices = tuple(replace(device, peaks=peaks) for device in part.devices)
    return summary_of(replace(part, devices=devices))


# Above what any op of the two captures reaches.
PEAKS = Peaks(teraflops=2_000.0, hbm_gigabytes=20_000.0)


def by_hand(path: Path, *, only_step: bool) -> tuple[float, float, int]:
    """From the JSON as it stands, over both devices (device clock, us): compute time, that of
    custom calls, and the flops of all other ops; of the whole file or inside jit_step_fun."""
    (file,) = path.glob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    spans = {
        event["pid"]: (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("name", "").startswith("jit_step_fun(") and event.get("pid") in (3, 4)
    }
    compute = uncosted = 0.0
    flops = 0
    waits = ("all-reduce", "all-gather", "all-to-all", "async-start", "async-done")
    for event in events:
        args = event.get("args", {})
        category = args.get("hlo_category")
        if category is None or category.startswith("copy-") or category in waits:
            continue
        begin, end = spans[event["pid"]]
        if only_step and not begin <= event["ts"] <= end:
            continue
        length = int(args["device_duration_ps"]) / 1e6
        compute += length
        if category == "custom-call":
            uncosted += length
        else:
            flops += int(args["model_flops"])
    return compute, uncosted, flops


@pytest.mark.parametrize(("folder", "uncosted"), [(VLLM_BEFORE, 26.7), (VLLM_AFTER, 74.8)])
def test_what_xla_cannot_see_into_is_not_covered(traces, folder, uncosted):
    compute, custom, _ = by_hand(traces / folder, only_step=False)
    assert round(100 * custom / compute, 1) == uncosted
    compute, custom, _ = by_hand(traces / folder, only_step=True)
    roofline = summarize(traces / folder).roofline
    assert roofline.compute_duration == pytest.approx(compute, rel=1e-9)
    assert roofline.coverage == pytest.approx(1 - custom / compute, rel=1e-9)
    assert roofline.coverage < 1 - uncosted / 100
    assert roofline.mfu is None


def test_with_peaks_mfu_is_a_lower_bound_before_and_absent_after(traces):
    first = at_peaks(traces / VLLM_BEFORE, PEAKS)
    _, _, flops = by_hand(traces / VLLM_BEFORE, only_step=True)
    roofline = first.roofline
    assert roofline.mfu_is_lower_bound is True
    period = first.step_time.all_steps.median
    assert roofline.mfu == pytest.approx(flops / (2 * period * 1e-6 * 2e15), rel=1e-6)
    assert "MFU: at least" in render_markdown(first)
    second = at_peaks(traces / VLLM_AFTER, PEAKS)
    assert (second.roofline.mfu, second.roofline.hfu) == (None, None)
    assert "half of the compute time" in second.roofline.mfu_unknown_because
    assert (roofline.bound_by, second.roofline.bound_by) == ("compute", None)
    refusal = answer(second, "is it memory-bound?")["cannot_answer"]
    assert "known costs" in refusal["reason"]


def test_the_first_screen_names_the_kernels_without_costs(after):
    """By the file's own events: three quarters of compute time, all of it in custom calls."""
    screen = " ".join(render_screen(after, "serving", width=100).split())
    assert (
        "No costs are known for 75.2 % of compute time (matmul 41.1 %, attention 34.1 %), so there "
        "are no rates and no MFU; pallas_call(cost_estimate=...) states a kernel's"
    ) in screen
    assert "No costs are known for 75.2 % of compute time" in render_markdown(after)


def test_a_matmul_that_became_a_kernel_is_no_fall_of_its_rate(before, after):
    """The matmuls of the second capture are kernels without costs: their rate is not known."""
    rows = [
        next(row for row in summary.roofline.by if (row.by, row.name) == ("family", "matmul"))
        for summary in (before, after)
    ]
    assert rows[0].achieved_tflops == pytest.approx(761.2, abs=0.1)
    assert (rows[1].achieved_tflops, rows[1].coverage) == (None, 0.0)
    assert before.roofline.achieved["teraflops_per_second"] == pytest.approx(688.5, abs=0.1)
    assert after.roofline.achieved == {}
