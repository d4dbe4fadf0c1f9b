"""Where steps begin, which are cut, and what is named because it would mislead."""

from __future__ import annotations

import numpy as np
import pytest

from builders_xspace import US, Host, Space, summary_of
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.boundaries import _ops_of_steps
from marin_profile.analysis.steps.find import find_steps
from marin_profile.analysis.steps.series import StepSeries
from marin_profile.reports.headline import headline

MS = 1000


def steps(space: Space, shuffle: int | None = None) -> StepSeries:
    return find_steps(find_devices(space.timeline(shuffle), ""))


def ms(values: np.ndarray) -> list[list[float]]:
    return (values / (US * MS)).tolist()


def boundaries(space: Space, shuffle: int | None = None) -> list[float]:
    (own,) = ms(steps(space, shuffle).boundary)
    return own


def step(host: Host, number: int, marker: tuple[float, float], *work: tuple[float, float]) -> None:
    """A marker (start, end) and executions (start, end) launched just after its start, in ms."""
    start, end = marker
    host.marker(number, start * MS, (end - start) * MS)
    for index, (begin, stop) in enumerate(work):
        run_id = 100 * number + index
        host.call("Execute", start * MS + 1 + index, 1, run_id=run_id)
        host.cpu_op("fusion.1", begin * MS, (stop - begin) * MS, run_id=run_id, program_id=1)


def other_work(host: Host, start: float, end: float, run_id: int) -> None:
    """An evaluation: launched outside the markers."""
    host.call("Execute", start * MS - 1, 1, run_id=run_id)
    host.cpu_op(
        "eval.1", start * MS, (end - start) * MS, run_id=run_id, module="jit_eval", program_id=2
    )


# --- boundaries --------------------------------------------------------------------------------


def test_idle_time_inside_a_marker_is_its_steps():
    """Step 2 compiles for 200 ms before it works: its period pays, not that of step 1."""
    space = Space()
    host = space.host()
    step(host, 0, (0, 20), (5, 19))
    step(host, 1, (20, 40), (25, 39))
    step(host, 2, (40, 260), (245, 259))
    step(host, 3, (260, 280), (265, 279))
    assert boundaries(space) == [0, 20, 40, 260]
    series = steps(space)
    assert ms(np.diff(series.boundary)) == [[20, 20, 220]]
    assert ms(series.end - series.start) == [[14, 14, 14, 14]]
    assert series.periods(0) == ([(0, 260 * MS * US)], 3)
    # From its boundary the window holds all of the compilation.
    assert series.window(2) == (40 * MS * US, 279 * MS * US)


def test_idle_time_between_markers_is_the_step_befores():
    space = Space()
    host = space.host()
    for number in range(3):
        at = 100 * number
        step(host, number, (at, at + 10), (at + 3, at + 12))
    # The loader runs from 12 to 100; the next step begins where its marker does.
    assert boundaries(space) == [0, 100, 200]


def test_an_evaluation_between_markers_is_the_step_befores():
    """It ends at 93, after the marker's start: the device then begins at once with what is next."""
    space = Space()
    host = space.host()
    step(host, 0, (0, 10), (2, 30))
    other_work(host, 40, 93, 7)
    step(host, 1, (90, 100), (95, 120))
    step(host, 2, (130, 140), (135, 160))
    # Not 95, when its own work starts, and not 90, when its marker does.
    assert boundaries(space) == [0, 93, 130]
    assert ms(np.diff(steps(space).boundary)) == [[93, 37]]


def test_a_device_that_is_still_busy_with_the_step_before():
    """Dispatch runs ahead: the marker starts at 10, the device is busy until 80."""
    space = Space()
    host = space.host()
    step(host, 0, (0, 5), (2, 80))
    step(host, 1, (10, 15), (80, 150))
    step(host, 2, (20, 25), (155, 220))
    # No idle time before step 1; from 150 to 155 the device waited for step 2's work.
    assert boundaries(space) == [0, 80, 150]


@pytest.mark.parametrize(("gap_ns", "boundary_ns"), [(1, 80_001), (2, 80_000), (1_000, 80_000)])
def test_a_gap_of_one_tick_is_none(gap_ns, boundary_ns):
    space = Space()
    host = space.host()
    for number, start in enumerate((0, 80 + gap_ns / 1000)):
        host.marker(number, number, 0.5)
        host.call("Execute", number + 0.1, 0.1, run_id=number)
        host.cpu_op("fusion.1", start + (2 if number == 0 else 0), 78 if number == 0 else 50,
                    run_id=number)  # fmt: skip
    assert steps(space).boundary[0, 1] == boundary_ns * 1000


def test_each_device_has_its_own_boundaries():
    space = Space()
    host = space.host()
    for number in range(2):
        at = 100 * MS * number
        host.marker(number, at, 5 * MS)
        host.call("Execute", at + 1, 1, run_id=number)
        for ordinal, end in ((0, 80), (1, 130)):
            begin = at + 2 * MS if number == 0 else 103 * MS if ordinal == 0 else 132 * MS
            stop = at + end * MS if number == 0 else 250 * MS
            host.cpu_op("f", begin, stop - begin, ordinal=ordinal, run_id=number)
    # The first device was idle before marker 1, the second busy until 130.
    assert ms(steps(space).boundary) == [[0, 100], [0, 130]]


def test_work_that_started_earlier_may_end_later():
    """On another stream, of no step: it ends at 95, long after the last op that started."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    gpu.kernel("copy", 0, 95 * MS, stream="Stream #2", correlation=9)
    for number, (at, begin) in enumerate(((0, 10), (60, 97), (160, 170))):
        host.marker(number, at * MS, 5 * MS)
        host.call("launch", at * MS + 1, 1, correlation_id=number)
        gpu.kernel("k", begin * MS, 20 * MS, correlation=number, hlo_op="fusion.1")
    assert boundaries(space) == [10, 95, 160]


def test_boundaries_are_on_the_device_clock():
    """The op's device clock is 7 ms ahead of the event clock on which the marker is."""
    space = Space()
    host, tpu = space.host(), space.tpu(0, device_clock_shift=7 * MS)
    for number in range(3):
        at = 100 * MS * number
        host.marker(number, at, 5 * MS)
        host.call("Enqueue", at + 1, 1, run_id=number, device_ordinal=0)
        tpu.module("jit_f(1)", at + 10 * MS, 50 * MS, run_id=number)
        tpu.op("fusion.1", at + 10 * MS, 50 * MS)
    series = steps(space)
    # Device times count from the first one: the markers are 10 ms before the ops.
    assert ms(series.start) == [[0, 100, 200]]
    assert ms(series.boundary) == [[-10, 90, 190]]


def test_several_markers_of_one_step_begin_with_the_first():
    space = Space()
    host = space.host()
    for number in range(2):
        at = 100 * MS * number
        for half in range(2):
            host.marker(number, at + 40 * MS * half, 20 * MS)
            run_id = 10 * number + half
            host.call("Execute", at + 40 * MS * half + 1, 1, run_id=run_id)
            host.cpu_op("f", at + 40 * MS * half + 10 * MS, 20 * MS, run_id=run_id)
    assert boundaries(space) == [0, 100]


def test_periods_add_up_whatever_the_steps_are_like():
    rng = np.random.default_rng(3)
    space = Space()
    host = space.host()
    at, busy = 0, 0
    for number in range(30):
        at += int(rng.integers(5, 60))
        begin = max(at + int(rng.integers(1, 40)), busy)
        busy = begin + int(rng.integers(10, 90))
        step(host, number, (at, at + 4), (begin, busy))
    series = steps(space)
    known = series.period()[0]
    assert not np.isnan(known[:-1]).any()
    assert known[:-1].sum() == series.boundary[0, -1] - series.boundary[0, 0]
    assert (np.diff(series.boundary) > 0).all()
    assert (series.boundary <= series.start).all()


def test_a_step_that_runs_before_the_one_before_has_no_negative_period():
    """Markers of two threads: step 1 is launched after step 0, and runs before it."""
    space = Space()
    host = space.host()
    for number, begin in enumerate((50, 10, 100, 150)):
        host.marker(number, number * MS, MS, line=f"python/{number}")
        host.call("Execute", number * MS + 1, 1, line=f"python/{number}", run_id=number)
        host.cpu_op("fusion.1", begin * MS, 20 * MS, run_id=number)
    period = steps(space).period()[0]
    assert np.isnan(period[[0, 3]]).all()
    assert (period[[1, 2]] > 0).all()


def test_with_a_clock_conflict_boundaries_are_first_ops():
    """The device begins 20 ms before it is told to: its idle time says nothing about markers."""
    space = Space()
    host, tpu = space.host(), space.tpu(0)
    for number in range(5, 10):
        at = 100 * MS * number
        host.marker(number, at, 5 * MS)
        host.call("Execute", at + MS, MS, run_id=number, device_ordinal=0)
        tpu.module("jit_f(1)", at - 19 * MS, 80 * MS, run_id=number)
        tpu.op("fusion.1", at - 19 * MS, 80 * MS)
    series = steps(space)
    assert list(series.numbers) == [5, 6, 7, 8, 9]
    assert series.boundary.tolist() == series.start.tolist()
    assert series.doubts == (
        "The clocks of host and device do not agree, so step boundaries are the starts of the "
        "steps' first ops.",
    )
    warnings = summary_of(space.analyse()).trace_overview.quality_warnings
    assert warnings[0] == series.doubts[0]
    assert "began 20.000 ms before its launch" in warnings[1]
    assert "; 5 of 5 launches and completions contradict" in warnings[1]
    assert warnings[1].endswith("cannot be compared to better than 20.000 ms.")


def test_without_ids_a_device_before_its_markers_is_tied_by_order_and_told():
    space = Space()
    host, tpu = space.host(), space.tpu(0)
    for number in range(5, 10):
        at = 100 * MS * (number - 3)
        host.marker(number, at, 5 * MS)
        tpu.module("jit_f(1)", at - 120 * MS, 80 * MS).op("fusion.1", at - 120 * MS, 80 * MS)
    series = steps(space)
    assert list(series.numbers) == [5, 6, 7, 8, 9]
    assert ms(np.diff(series.boundary)) == [[100] * 4]
    assert "do not agree, or the step numbers are shifted" in series.doubts[0]


# --- cut steps ---------------------------------------------------------------------------------


def executions(*kept: range, ops: int = 9, backwards: bool = False) -> Space:
    """Execution k begins at 100 k ms and runs `kept[k]` of its ops of 10 ms. `backwards`: the file
    has the last one first."""
    space = Space()
    tpu = space.tpu(0)
    for index, own in sorted(enumerate(kept), reverse=backwards, key=lambda one: one[0]):
        at = 100 * MS * index
        tpu.module("jit_step(1)", at + 10 * MS * own.start, 10 * MS * len(own))
        for number in own:
            tpu.op(f"fusion.{number}", at + 10 * MS * number, 10 * MS)
    assert ops == max(own.stop for own in kept)
    return space


def test_steps_that_the_edges_cut_are_in_no_statistic():
    """Four of nine ops of the last step, the first begins with the sixth."""
    space = executions(range(5, 9), *[range(9)] * 4, range(4))
    series = steps(space)
    assert series.cut.tolist() == [True, False, False, False, False, True]
    assert series.whole == range(1, 5)
    part = space.analyse()
    assert (part.warmup_ignored, part.first_kept, part.periods) == (1, 2, 3)
    summary = summary_of(part)
    time = summary.step_time
    assert [row.cut for row in time.steps] == series.cut.tolist()
    assert [row.kept for row in time.steps] == [False, False, True, True, True, False]
    assert (time.all_steps.count, time.steady_state_steps.count) == (4, 3)
    assert (time.all_steps.min, time.all_steps.max) == (90 * MS, 90 * MS)
    assert (time.warmup_steps_ignored, time.period.count, time.period.min) == (1, 3, 100 * MS)
    # The first op of the capture is at 50 ms.
    (steady, _) = summary.device_ledger
    assert (steady.window_start, steady.window_duration) == (150 * MS, 290 * MS)
    warnings = summary.trace_overview.quality_warnings
    assert any("The first step is cut" in text for text in warnings)
    assert any("The last step is cut" in text for text in warnings)


def test_only_the_first_or_only_the_last_step_is_cut():
    whole = [range(9)] * 3
    assert steps(executions(range(2, 9), *whole)).cut.tolist() == [True, False, False, False]
    assert steps(executions(*whole, range(8))).cut.tolist() == [False, False, False, True]
    assert not steps(executions(*whole)).cut.any()


def test_ops_that_run_several_times_a_step_count_as_often_as_they_are_missing():
    """load, then layer three times; the last step has its load only."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        at = 100 * MS * index
        names = ["load", "layer", "layer", "layer"][: 1 if index == 4 else 4]
        tpu.module("jit_step(1)", at, 20 * MS * len(names))
        for place, name in enumerate(names):
            tpu.op(name, at + 20 * MS * place, 20 * MS)
    assert steps(space).cut.tolist() == [False] * 4 + [True]


def test_work_of_no_step_does_not_make_a_cut_step_whole():
    """Step 2 has no work; the last one lacks its second op, which then runs behind it."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        at = 100 * MS * index
        tpu.step(index, at, 90 * MS)
        if index != 2:
            tpu.op("load", at, 20 * MS)
        if index not in (2, 4):
            tpu.op("layer", at + 30 * MS, 20 * MS)
    tpu.op("layer", 495 * MS, 4 * MS)
    series = steps(space)
    assert list(series.numbers) == [0, 1, 3, 4]
    assert series.cut.tolist() == [False, False, False, True]


@pytest.mark.parametrize("backwards", [False, True])
def test_two_steps_are_held_to_each_other(backwards):
    def held(*kept: range) -> StepSeries:
        return steps(executions(*kept, backwards=backwards))

    assert held(range(5, 9), range(9)).cut.tolist() == [True, False]
    assert held(range(9), range(3)).cut.tolist() == [False, True]
    both = held(range(5, 9), range(5))
    assert both.cut.tolist() == [True, True]
    assert (both.whole, both.window(1), both.periods(1)) == (range(1, 1), None, ([], 0))


def test_a_capture_of_two_cut_steps_has_no_steps_to_keep():
    part = executions(range(5, 9), range(5)).analyse()
    summary = summary_of(part)
    assert [row.kept for row in summary.step_time.steps] == [False, False]
    assert summary.step_time.all_steps.count == 0
    assert {row.window for row in summary.device_ledger} == {"capture"}


def test_a_light_step_at_the_edge_is_not_cut():
    """It lacks an op that all others have, but begins and ends like them."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(4):
        at = 100 * MS * index
        tpu.module("jit_step(1)", at, 90 * MS).op("first", at, 10 * MS)
        if 0 < index < 3:
            tpu.op("refresh", at + 10 * MS, 10 * MS)
        tpu.op("last", at + 80 * MS, 10 * MS)
    assert not steps(space).cut.any()


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("where", [0, -1])
def test_a_step_with_more_work_at_the_edge_cuts_none(count, where):
    """The first step begins with an op of its own, or the last one ends with one."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(count):
        at = 100 * MS * index
        tpu.module("jit_step(1)", at, 90 * MS)
        if where == 0 and index == 0:
            tpu.op("restore", at, 10 * MS)
        tpu.op("first", at + 10 * MS, 10 * MS)
        if index == 1 and count > 2:
            tpu.op("refresh", at + 20 * MS, 10 * MS)
        if index == 1 or index in (0, count - 1):
            tpu.op("seldom", at + 40 * MS, 10 * MS)
        tpu.op("last", at + 60 * MS, 10 * MS)
        if where == -1 and index == count - 1:
            tpu.op("save", at + 70 * MS, 10 * MS)
    assert not steps(space).cut.any()


def test_more_warmup_than_whole_steps_drops_none():
    part = executions(range(5, 9), range(9), range(9), range(4)).analyse(warmup_steps=2)
    assert (part.warmup_ignored, part.first_kept) == (0, 1)
    assert any("Only 2 whole steps, too few to drop 2 as warm-up" in note for note in part.notes)


def test_a_last_step_without_its_second_execution_is_cut():
    space = Space()
    host = space.host()
    for number in range(4):
        at = 100 * number
        work = [(at + 5, at + 30), (at + 30, at + 60)]
        step(host, number, (at, at + 10), *work[: 1 if number == 3 else 2])
    assert steps(space).cut.tolist() == [False, False, False, True]


@pytest.mark.parametrize(("count", "is_cut"), [(3, False), (4, True)])
@pytest.mark.parametrize("edge", [0, -1])
def test_two_steps_between_show_that_an_edge_lacks_an_execution(count, is_cut, edge):
    """All executions run the same op: the first (the last) step has one, the others two."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(count):
        at = 100 * MS * index
        tpu.step(index, at, 90 * MS)
        for place in range(1 if index == edge % count else 2):
            tpu.module("jit_f(1)", at + 40 * MS * place, 30 * MS)
            tpu.op("fusion.1", at + 40 * MS * place, 30 * MS)
    wanted = [False] * count
    wanted[edge] = is_cut
    assert steps(space).cut.tolist() == wanted


@pytest.mark.parametrize("like", [1, 2, 3])
@pytest.mark.parametrize("edge", [0, 4])
def test_an_edge_that_runs_as_often_as_one_step_between_is_not_cut(edge, like):
    """All executions run the same op; the edge and one of three steps between have one of two."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        at = 100 * MS * index
        tpu.step(index, at, 90 * MS)
        for place in range(1 if index in (edge, like) else 2):
            tpu.module("jit_f(1)", at + 40 * MS * place, 30 * MS)
            tpu.op("fusion.1", at + 40 * MS * place, 30 * MS)
    assert not steps(space).cut.any()


# --- what must be named ------------------------------------------------------------------------


def collapse(kernel_ms: float) -> Space:
    """32 markers of 50 ms, 56 ms apart. Only two have device work, launched from another thread:
    20 kernels of 0.5 ms, then one of `kernel_ms`."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for number in range(32):
        host.marker(number, 56 * MS * number, 50 * MS, name="decode")

    def kernel(correlation: int, at: float, length: float, launched: float) -> None:
        host.call("hipLaunchKernel", launched, 5, line="pjrt", correlation_id=correlation)
        gpu.kernel("Cijk.kd", at, length, correlation=correlation, hlo_op="custom-call.1")

    for index in range(20):
        kernel(index, 1_000 + 600 * index, 500, 200 + 10 * index)
    kernel(20, 60 * MS, kernel_ms * MS, 56 * MS + 100)
    return space


def test_steps_without_work_and_an_op_longer_than_all_of_them_are_named():
    series = steps(collapse(1_732))
    assert list(series.numbers) == [0, 1]
    assert "Only 2 of 32 steps have device work" in series.doubts[0]
    assert series.doubts[1] == (
        "Cijk.kd on /device:GPU:0 runs for 1,732.00 ms, longer than 30 typical steps of 56.00 ms."
    )
    summary = summary_of(collapse(1_732).analyse())
    warnings = summary.trace_overview.quality_warnings
    assert warnings[:2] == list(series.doubts)
    assert "No step is kept: numbers cover the whole capture." in warnings
    time = summary.step_time
    assert [row.kept for row in time.steps] == [False, False]
    assert (time.period.count, time.steady_state_steps.count, time.warmup_steps_ignored) == (0,) * 3
    assert {row.window for row in summary.device_ledger} == {"capture"}
    assert summary.step_time.steps_without_work == 30
    long_op = summary.step_time.long_op
    assert (long_op.name, long_op.duration, long_op.steps) == ("Cijk.kd", 1_732_000.0, 30)
    assert headline(summary).startswith(
        "Only 2 of 32 steps have device work, and Cijk.kd runs longer than 30 typical steps: check "
        "the capture before reading on. No step of the capture could be kept; "
    )
    assert [one.candidate_id for one in summary.optimization_candidates] == [
        "op-longer-than-steps",
        "capture-too-short",
        "no-hlo-protos",
    ]


@pytest.mark.parametrize(("with_work", "count"), [(3, 10), (4, 10), (2, 4), (1, 2)])
def test_steps_of_a_device_that_lags_behind_the_markers_are_kept(with_work, count):
    """The capture ends before the device has come to the others."""
    space = Space()
    host = space.host()
    for number in range(count):
        at = 100 * number
        step(host, number, (at, at + 10), *([(at + 5, at + 60)] if number < with_work else []))
    series = steps(space)
    assert (series.too_few, series.whole) == (False, range(with_work))
    assert f"{count - with_work} of {count} steps have no device work" in series.doubts[0]


@pytest.mark.parametrize(
    ("idle", "named"),
    [(8, "1, 2, 3, 4, 5, 6, 7, 8."), (9, "1, 2, 3, 4, 5, 6, 7, 8 and 1 more."),
     (20, "1, 2, 3, 4, 5, 6, 7, 8 and 12 more.")],
)  # fmt: skip
def test_of_many_steps_without_work_the_first_are_named(idle, named):
    space = Space()
    host = space.host()
    for number in range(idle + 3):
        at = 100 * number
        is_idle = 0 < number <= idle
        step(host, number, (at, at + 10), *([] if is_idle else [(at + 5, at + 60)]))
    series = steps(space)
    assert series.without_work == idle
    assert (
        f"{idle} of {idle + 3} steps have no device work in the capture and are left out: "
        in (series.doubts[0])
    )
    assert series.doubts[0].endswith(named)


def test_an_op_that_outlasts_the_markers_is_named_where_one_step_has_all_the_work():
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for number in range(8):
        host.marker(number, 50 * MS * number, 40 * MS)
    host.call("launch", 5, 1, correlation_id=1)
    gpu.kernel("gemm", MS, 360 * MS, correlation=1)
    series = steps(space)
    assert "Only 1 of 8 steps have device work" in series.doubts[0]
    assert series.doubts[1] == (
        "gemm on /device:GPU:0 runs for 360.00 ms, longer than 7 typical steps of 50.00 ms."
    )


def test_an_op_that_outlasts_steps_is_named_where_markers_have_no_work():
    """No launch leads to it: the period of the markers is all that is known."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for number in range(8):
        host.marker(number, 50 * MS * number, 40 * MS)
    gpu.kernel("gemm", MS, 360 * MS)
    series = steps(space)
    assert not series.linked
    assert "only the period is known" in series.doubts[0]
    assert (
        "gemm on /device:GPU:0 runs for 360.00 ms, longer than 7 typical steps" in series.doubts[1]
    )


def test_of_several_ops_that_outlast_steps_the_longest_is_named():
    """On either device; an op as long as a step does not outlast it."""
    for first, second in ((360, 250), (250, 360)):
        space = Space()
        host = space.host()
        for number in range(8):
            host.marker(number, 50 * MS * number, 40 * MS)
        space.gpu(0).kernel("gemm", MS, first * MS)
        space.gpu(1).kernel("gemm", MS, 50 * MS).kernel("conv", 60 * MS, second * MS)
        series = steps(space)
        name = "gemm on /device:GPU:0" if first > second else "conv on /device:GPU:1"
        assert series.doubts[1] == (
            f"{name} runs for 360.00 ms (the longest of 2 such ops), longer than 7 typical steps "
            "of 50.00 ms."
        )
        assert series.long_op is not None
        assert (series.long_op.time, series.long_op.steps) == (360 * MS * US, 7)


def test_markers_of_one_time_have_no_length_that_an_op_could_outlast():
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for number in range(3):
        host.marker(number, 10 * MS, 0, line=f"python/{number}")
        host.call("launch", 10 * MS, 0, line=f"python/{number}", correlation_id=number)
        gpu.kernel("k", 20 * MS, 0, stream=f"Stream #{number}", correlation=number)
    series = steps(space)
    assert series.count == 3
    assert series.long_op is None


def test_an_op_as_long_as_a_step_is_not_named():
    assert len(steps(collapse(56)).doubts) == 1


def test_a_step_without_work_between_others_makes_no_long_period():
    space = Space()
    host = space.host()
    for number in range(6):
        at = 100 * number
        step(host, number, (at, at + 10), *([] if number == 3 else [(at + 5, at + 60)]))
    series = steps(space)
    assert list(series.numbers) == [0, 1, 2, 4, 5]
    assert "1 of 6 steps have no device work in the capture and are left out: 3." in series.doubts
    known = series.period()[0]
    assert known[[0, 1, 3]].tolist() == [100 * MS * US] * 3
    assert np.isnan(known[[2, 4]]).all()
    # From step 1's boundary to step 5's: four periods, the missing one counted.
    assert series.periods(1) == ([(100 * MS * US, 500 * MS * US)], 4)


def test_numbers_two_apart_are_the_stride_not_a_gap():
    """Every second step is annotated: 0, 2, 4, then 8."""
    space = Space()
    host = space.host()
    for number in (0, 2, 4, 8):
        at = 50 * number
        step(host, number, (at, at + 10), (at + 5, at + 60))
    series = steps(space)
    assert series.has_successor.tolist() == [True, True, False, False]
    assert series.periods(0) == ([(0, 400 * MS * US)], 4)


@pytest.mark.parametrize("like", [1, 2, 3])
@pytest.mark.parametrize("edge", ["first", "last"])
def test_an_edge_that_begins_or_ends_like_only_one_step_between_is_not_cut(edge, like):
    """Steps begin in two ways; the first lacks an op that those between have. And the other way
    round: the last step ends like only one of them."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        names = ["x", "z"] if index == 0 else ["x", "a", "z"] if index == like else ["a", "z"]
        at = 100 * MS * (index if edge == "first" else 4 - index)
        tpu.module("jit_step(1)", at, 90 * MS)
        for place, name in enumerate(names if edge == "first" else names[::-1]):
            tpu.op(name, at + 10 * MS * place, 10 * MS)
    assert steps(space).cut.tolist() == [False] * 5


def test_the_first_and_the_last_op_of_each_step():
    """Of three steps, and one without ops before the last; op 0 is an op like any other, and op 3
    runs twice in the second step."""
    step = np.array([0, 0, 1, 1, 1, 3, 3, 3])
    op = np.array([0, 2, 0, 3, 3, 1, 1, 0])
    first, last, between, in_first, in_last = _ops_of_steps(np.arange(8), step, op, 4, 4)
    assert (first.tolist(), last.tolist()) == ([0, 0, 4, 1], [2, 3, 4, 0])
    assert between.tolist() == [1, 0, 0, 1]
    assert in_first.tolist() == [True, False, True, False]
    assert in_last.tolist() == [True, True, False, False]


def test_an_op_of_no_execution_takes_none_from_its_step():
    """Five steps of one execution; what runs last is in none, and of no step."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        at = 100 * MS * index
        tpu.step(index, at, 90 * MS).module("jit_f(1)", at, 30 * MS)
        tpu.op("fusion.1", at, 30 * MS)
    tpu.op("copy.1", 495 * MS, MS)
    assert not steps(space).cut.any()


def test_an_execution_without_ops_counts_for_no_step():
    """Two executions a step; the first step lacks one, and one that shows no op is not it."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        at = 100 * MS * index
        tpu.step(index, at, 90 * MS)
        for place in range(2):
            tpu.module("jit_f(1)", at + 40 * MS * place, 30 * MS)
            if index or place:
                tpu.op("fusion.1", at + 40 * MS * place, 30 * MS)
    assert steps(space).cut.tolist() == [True, False, False, False, False]
