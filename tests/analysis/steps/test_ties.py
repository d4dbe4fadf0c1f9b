"""Which device work is a marker's: launches, flows, order, launch time."""

from __future__ import annotations

import numpy as np
import pytest

from builders_xspace import US, Space
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.find import find_steps
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.analysis.steps.ties import _executions_per_marker

MS = 1000


def steps(space: Space, shuffle: int | None = None) -> StepSeries:
    return find_steps(find_devices(space.timeline(shuffle), ""))


def ms(values: np.ndarray) -> list[list[float]]:
    return (values / (US * MS)).tolist()


def micro_batches(launch_line: str, *, ids: bool = True, flows: bool = True) -> Space:
    """Five markers of 4 ms, 100 ms apart; each launches grad twice (30 ms) and apply once (10 ms),
    and flows lead to where libtpu enqueues. The work begins 5 ms after the marker."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    run_id = 0
    for number in range(5):
        at = (95 + 100 * number) * MS
        host.marker(number, at, 4 * MS)
        for index, (offset, length, program) in enumerate(
            ((0, 30, "jit_grad(111)"), (32, 30, "jit_grad(111)"), (64, 10, "jit_apply(222)"))
        ):
            run_id += 1
            call = at + (index + 1) * MS
            begin = at + 5 * MS + offset * MS
            if flows:
                host.call("linkage", call, 10, _pt=14, _p=8_589_934_592 + run_id)
                host.call("Execute", call + 20, 300, line=launch_line,
                          _ct=14, _c=8_589_934_592 + run_id)  # fmt: skip
            if ids:
                host.call("DoEnqueueProgram", call + 50, 100, line=launch_line, run_id=run_id,
                          device_ordinal=0)  # fmt: skip
            tpu.module(program, begin, length * MS, run_id=run_id if ids else None)
            tpu.op(f"fusion.{program[4]}", begin, length * MS)
    return space


@pytest.mark.parametrize("line", ["python", "main/4711"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_launches_on_the_markers_line_or_joined_by_flows(line, seed):
    series = steps(micro_batches(line), seed)
    assert (series.source, series.linked) == ("annotation", True)
    assert list(series.numbers) == [0, 1, 2, 3, 4]
    assert ms(series.end - series.start) == [[74] * 5]
    assert ms(np.diff(series.boundary)) == [[100] * 4]
    assert series.doubts == ()


def test_without_ids_the_same_steps_come_from_the_order():
    """Two grads between each marker and the next, and an apply before the next grad."""
    series = steps(micro_batches("main/4711", ids=False, flows=False))
    assert (series.source, list(series.numbers)) == ("annotation", [0, 1, 2, 3, 4])
    assert ms(series.end - series.start) == [[74] * 5]
    assert ms(np.diff(series.boundary)) == [[100] * 4]


def test_without_flows_launches_out_of_sight_leave_the_order():
    """As trace JSON has them: run ids, but nothing that leads from the marker to them."""
    series = steps(micro_batches("main/4711", flows=False))
    assert (series.source, list(series.numbers)) == ("annotation", [0, 1, 2, 3, 4])
    assert ms(series.end - series.start) == [[74] * 5]


def test_more_executions_in_one_marker_than_in_another_are_no_order():
    space = micro_batches("main/4711", ids=False, flows=False)
    tpu = space.planes[0]
    tpu.module("jit_grad(111)", 280 * MS, 10 * MS).op("fusion.g", 280 * MS, 10 * MS)
    series = steps(space)
    assert series.source == "module"
    assert any("cannot be tied to device work" in doubt for doubt in series.doubts)


def test_what_the_first_marker_finds_queued_was_launched_before_the_capture():
    """Three executions are still queued when the capture begins: one runs before the first marker,
    two after it. Of the three between the first two markers the last is the first marker's."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    for number in range(5):
        host.marker(number, 100 * MS * (number + 1), 2 * MS)
    for at in (40, 127, 139, 150, 219, 290 + 10, 400, 500):
        tpu.module("jit_step(7)", at * MS, 10 * MS).op("fusion", at * MS, 10 * MS)
    series = steps(space)
    assert (series.source, list(series.numbers)) == ("annotation", [0, 1, 2, 3, 4])
    # Times count from the first event, at 40 ms.
    assert ms(series.start + 40 * MS * US) == [[150, 219, 300, 400, 500]]


def test_a_multiple_of_the_markers_is_tied_in_order():
    """Dispatch is over before the work begins: 3 markers within 30 us, 6 executions later."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    for number in range(3):
        host.marker(number, 10 * number, 5)
    for index in range(6):
        tpu.module("jit_f(1)", (1 + 10 * index) * MS, 9 * MS)
        tpu.op("fusion.1", (1 + 10 * index) * MS, 9 * MS)
    series = steps(space)
    assert (series.source, list(series.numbers)) == ("annotation", [0, 1, 2])
    assert ms(series.end - series.start) == [[19] * 3]
    assert ms(series.start) == [[1, 21, 41]]
    assert series.doubts == ()


@pytest.mark.parametrize(
    ("start", "first", "each"),
    [
        ([6, 16, 26], 0, 1),
        ([5, 15, 25], 0, 1),
        ([6, 7, 16, 17, 26, 27], 0, 2),
        # Launched before the first marker.
        ([1, 6, 16, 26], 1, 1),
        ([1, 2, 3, 6, 16, 26], 3, 1),
        # The last one's are not all there; they are more than one has, and not a multiple.
        ([6, 16], 0, 1),
        ([6, 7, 16, 17, 26], 0, 2),
        ([1, 6, 7, 16, 17, 26], 1, 2),
        ([6, 16, 26, 27], 0, 0),
        ([1, 6, 16, 26, 27], 0, 0),
        # As many as the markers, or a multiple, in any place.
        ([30, 40, 50], 0, 1),
        ([30, 31, 40, 41, 50, 51], 0, 2),
        ([6, 7, 16, 26, 27, 28], 0, 2),
        ([6, 16, 17, 26, 27, 28], 0, 2),
        ([30, 40, 50, 60], 0, 0),
        ([6, 7, 16, 26], 0, 0),
        ([6, 16, 17, 26], 0, 0),
    ],
)
def test_executions_are_tied_in_order_if_each_marker_has_as_many(start, first, each):
    found = _executions_per_marker(np.array(start), np.array([5, 15, 25]))
    assert found == (first, each)


def nested(inner: int) -> Space:
    """Step 5's marker holds a second one of `inner`, and each launches one execution."""
    space = Space()
    host = space.host()
    spans = ((5, 0, 60), (inner, 20, 40), (7, 100, 160))
    for number, start, end in spans:
        host.marker(number, start * MS, (end - start) * MS)
    for run_id, (launched, begin) in enumerate(((5, 6), (25, 26), (45, 46), (105, 106))):
        host.call("Execute", launched * MS, 10, run_id=run_id)
        host.cpu_op("fusion.1", begin * MS, 10 * MS, run_id=run_id)
    return space


def test_of_two_nested_markers_the_inner_one_has_what_is_in_it():
    """What the outer one launches after the inner one is the outer one's again."""
    series = steps(nested(6))
    assert list(series.numbers) == [5, 6, 7]
    assert ms(series.start) == [[6, 26, 106]]
    assert ms(series.end) == [[56, 36, 116]]


def test_nested_markers_of_one_number_are_one_step():
    series = steps(nested(5))
    assert list(series.numbers) == [5, 7]
    assert ms(series.start) == [[6, 106]]
    assert ms(series.end) == [[56, 116]]


def test_an_event_that_waits_in_the_next_marker_does_not_move_what_was_launched_outside():
    """Run 9 is launched between the markers; the next step's marker waits for it."""
    space = Space()
    host = space.host()
    for number in range(3):
        at = 100 * MS * number
        host.marker(number, at, 20 * MS)
        host.call("Execute", at + 10, 10, run_id=number)
        host.cpu_op("fusion.1", at + MS, 30 * MS, run_id=number)
    host.call("Execute", 50 * MS, 10, run_id=9)
    host.cpu_op("log.1", 51 * MS, 5 * MS, run_id=9, module="jit_log")
    host.call("Await", 101 * MS, 10, run_id=9)
    series = steps(space)
    assert ms(series.start) == [[1, 101, 201]]
    assert ms(series.end - series.start) == [[30] * 3]


def test_launches_of_eight_gpus_two_hops_away_from_the_markers():
    """The marker's thread hands the call over (type 14), this hands one task to each device's pool
    thread (type 5), and the driver's launches are on a third kind of line."""
    space = Space()
    host = space.host()
    gpus = [space.gpu(ordinal) for ordinal in range(8)]
    for number in range(3):
        at = 100 * MS * number
        host.marker(number, at, 2 * MS)
        host.call("linkage", at + 100, 5, _pt=14, _p=7)
        host.call("Execute", at + 3 * MS, 2 * MS, line="main/1", _ct=14, _c=7)
        host.call("hand over", at + 4 * MS, 5, line="main/1", _pt=5, _p=7)
        for ordinal, gpu in enumerate(gpus):
            task = at + 6 * MS + 10 * ordinal
            host.call("task", task, 5 * MS, line=f"pool/{ordinal}", _ct=5, _c=7)
            for index in range(2):
                correlation = 100 * number + 10 * ordinal + index
                host.call(
                    "launch", task + 100 + index, 1, line=f"Host Threads/{ordinal}",
                    correlation_id=correlation,
                )  # fmt: skip
                gpu.kernel("k", at + (20 + 30 * index) * MS, 30 * MS, correlation=correlation)
    series = steps(space)
    assert (series.linked, list(series.numbers), series.doubts) == (True, [0, 1, 2], ())
    assert ms(series.end - series.start) == [[60] * 3] * 8
    assert ms(series.boundary) == [[0, 100, 200]] * 8


def test_kernels_whose_launches_lie_in_the_time_of_markers_are_theirs_in_any_number():
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    correlation = 0
    for number, kernels in enumerate((3, 1, 2)):
        at = 100 * MS * number
        host.marker(number, at, 90 * MS)
        for index in range(kernels):
            begin = at + (5 + 10 * index) * MS
            host.call("launch", begin - MS, 5, line="pjrt", correlation_id=correlation)
            gpu.kernel("k", begin, 8 * MS, correlation=correlation, hlo_op="fusion.1")
            correlation += 1
    series = steps(space)
    assert (series.linked, list(series.numbers)) == (True, [0, 1, 2])
    assert ms(series.end - series.start) == [[28, 8, 18]]


def test_kernels_launched_when_all_markers_are_over_are_of_none():
    """Ten markers within 10 us; the launches follow from another thread."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for number in range(10):
        host.marker(number, number, 0.5)
    for index in range(10):
        host.call("launch", (1 + 10 * index) * MS, 5, line="pjrt", correlation_id=index)
        gpu.kernel("k", (2 + 10 * index) * MS, 8 * MS, correlation=index, hlo_op="fusion.1")
    series = steps(space)
    assert series.source == "none"
    assert any("end long before" in doubt for doubt in series.doubts)


def test_the_warning_that_only_the_period_is_known_stands_first(tmp_path):
    from builders_xspace import hlo_proto, summarize_spaces

    space = Space("other-name").hlo(1, hlo_proto())
    host, gpu = space.host(), space.gpu(0)
    for number in range(4):
        host.marker(number, 100 * MS * number, MS)
        gpu.kernel("k", (100 * number + 1) * MS, 80 * MS)
    summary = summarize_spaces(tmp_path, space)
    first, *others = summary.trace_overview.quality_warnings
    assert "only the period is known" in first
    # Not the host's name, which changes no reading.
    assert any("named after" in text for text in others)
    assert [row.duration for row in summary.step_time.steps] == [None] * 4
    assert [row.period for row in summary.step_time.steps] == [100 * MS] * 3 + [None]


def evaluated(evaluations: int, *, each_ms: int = 4) -> Space:
    """Eight markers of 10 ms, 100 ms apart, without ids: each step runs 9 ms; after the marker of
    step 3 evaluations run, and after the last of them a program that every step runs too."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    for number in range(8):
        at = 100 * number * MS
        host.marker(number, at, 10 * MS)
        for name, offset, length in (("jit_step(1)", 1, 8), ("jit_isnan(2)", 10, 1)):
            tpu.module(name, at + offset * MS, length * MS)
            tpu.op(f"fusion.{name[4:6]}", at + offset * MS, length * MS)
        for index in range(evaluations if number == 3 else 0):
            begin = at + (12 + each_ms * index) * MS
            tpu.module("jit_eval(3)", begin, (each_ms - 1) * MS)
            tpu.op("fusion.ev", begin, (each_ms - 1) * MS)
        if evaluations and number == 3:
            tpu.module("jit_isnan(2)", at + 95 * MS, MS).op("fusion.is", at + 95 * MS, MS)
    return space


@pytest.mark.parametrize(
    ("evaluations", "each_ms"), [(0, 4), (1, 40), (7, 4), (16, 4), (16, 5), (1, 80)]
)
@pytest.mark.parametrize("seed", [None, 1])
def test_an_evaluation_between_steps_is_no_steps(evaluations, each_ms, seed):
    """However often it runs, as often as there are steps or twice, and however much it weighs. The
    steps are told by their markers; the evaluation's time is in the period alone."""
    series = steps(evaluated(evaluations, each_ms=each_ms), seed)
    assert (series.source, series.linked) == ("annotation", True)
    assert list(series.numbers) == list(range(8))
    assert ms(series.end - series.start) == [[10] * 8]
    assert ms(np.diff(series.boundary)) == [[100] * 7]
    assert not series.cut.any()
