"""XPlane and JSON of the same capture: equal on the columns that JSON has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from marin_profile.events.timeline import Timeline
from real.captures import CPU8, GPU_CONV, GPU_GTX, V6E, read, summarize

PAIRS = [
    (V6E, "host0.xplane.pb", "host0.trace.json.gz"),
    (V6E, "host0.xplane.pb", "perfetto_trace.json.gz"),
    (CPU8, "cpu8.xplane.pb", "cpu8.trace.json.gz"),
    (CPU8, "cpu8.xplane.pb", "perfetto_trace.json.gz"),
    (GPU_CONV, "tw003.xplane.pb", "tw003.trace.json.gz"),
    (GPU_GTX, "cyclops.xplane.pb", "cyclops.trace.json.gz"),
]
JSON_LEAVES_OUT = ("Async XLA Ops",)
NOT_EXPORTED = {"MemoryAllocation", "MemoryDeallocation"}


def rows(timeline: Timeline, shift: int) -> Counter:
    """What both formats hold of every event, as a multiset."""
    starts, has_start = column(timeline, "device_start")
    lengths, has_length = column(timeline, "device_duration")
    runs, has_run = column(timeline, "run_id")
    steps, has_step = column(timeline, "step_num")
    ordinals, has_ordinal = column(timeline, "device_ordinal")
    correlation, has_correlation = column(timeline, "correlation_id")
    found: Counter = Counter()
    for i in range(timeline.num_events):
        line = timeline.lines[timeline.line[i]]
        op = timeline.ops[timeline.op[i]]
        if line.name in JSON_LEAVES_OUT or op.name in NOT_EXPORTED:
            continue
        is_work = bool(op.category or op.hlo_op)
        key = (
            timeline.planes[line.plane].name,
            line.name,
            op.name,
            int(timeline.start[i]) - shift,
            int(timeline.duration[i]),
            int(starts[i]) if has_start[i] else None,
            int(lengths[i]) if has_length[i] else None,
            int(runs[i]) if has_run[i] else None,
            int(steps[i]) if has_step[i] else None,
            int(ordinals[i]) if has_ordinal[i] else None,
            int(correlation[i]) if has_correlation[i] else None,
            (op.category, op.hlo_op, op.module, op.scope_hints, op.shape, op.model_flops)
            if is_work
            else None,
        )
        found[key] += 1
    return found


def column(timeline: Timeline, name: str) -> tuple[np.ndarray, np.ndarray]:
    has, values = getattr(timeline, name).find(np.arange(timeline.num_events))
    return values, has


def first_shared_start(timeline: Timeline) -> int:
    """The start of the earliest event that both formats hold."""
    keep = [
        i
        for i in range(timeline.num_events)
        if timeline.lines[timeline.line[i]].name not in JSON_LEAVES_OUT
        and timeline.ops[timeline.op[i]].name not in NOT_EXPORTED
    ]
    return int(timeline.start[keep].min())


@pytest.mark.parametrize(("folder", "xplane", "trace_json"), PAIRS)
def test_both_readers_give_the_same_events(traces: Path, folder, xplane, trace_json):
    from_xplane = read(traces / folder / xplane)
    from_json = read(traces / folder / trace_json)
    ours = rows(from_xplane, first_shared_start(from_xplane))
    theirs = rows(from_json, first_shared_start(from_json))
    assert ours == theirs


@pytest.mark.parametrize(("folder", "xplane", "trace_json"), PAIRS)
def test_both_summaries_agree_on_time(traces: Path, folder, xplane, trace_json):
    from_xplane = summarize(traces / folder / xplane)
    from_json = summarize(traces / folder / trace_json)
    assert from_json.coverage.format_lacks
    assert not from_xplane.coverage.format_lacks
    for a, b in zip(from_xplane.device_ledger, from_json.device_ledger, strict=True):
        assert (a.device, a.window, a.window_duration) == (b.device, b.window, b.window_duration)
        assert a.compute_duration == b.compute_duration
        assert a.exposed_communication_duration == b.exposed_communication_duration
        assert a.idle_duration == b.idle_duration
        assert a.exposed_transfer_by_kind == b.exposed_transfer_by_kind
    assert from_xplane.transfers == from_json.transfers
    times = [
        [(op.name, op.count, op.exclusive_duration) for op in summary.hot_ops]
        for summary in (from_xplane, from_json)
    ]
    assert times[0] == times[1]
    assert [step.duration for step in from_xplane.step_time.steps] == [
        step.duration for step in from_json.step_time.steps
    ]
