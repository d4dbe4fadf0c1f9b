"""Step sources and how markers are tied to device work."""

import numpy as np
import pytest

from builders_xspace import US, Space
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.find import find_steps
from marin_profile.analysis.steps.series import StepSeries

STEPS = (0, 100_000, 200_000)


def steps(space: Space, shuffle: int | None = None) -> StepSeries:
    return find_steps(find_devices(space.timeline(shuffle), ""))


def us(values: np.ndarray) -> list[list[int]]:
    return (values // US).tolist()


def numbers(series: StepSeries) -> list[int | None]:
    return list(series.numbers)


def remarks(series: StepSeries) -> list[str]:
    return [*series.doubts, *series.notes]


# --- the device's Steps line -------------------------------------------------------------------


def test_the_steps_line_comes_first():
    space = Space()
    tpu = space.tpu(0)
    host = space.host()
    for index, start in enumerate(STEPS):
        tpu.step(index + 7, start, 90_000)
        tpu.module("jit_f(1)", start + 5_000, 70_000, run_id=index)
        tpu.op("fusion.1", start + 10_000, 30_000)
        tpu.op("fusion.2", start + 50_000, 20_000)
        host.marker(index, start, 5)
    series = steps(space)
    assert (series.source, series.linked) == ("device_steps", True)
    assert numbers(series) == [7, 8, 9]
    assert us(series.start) == [[10_000, 110_000, 210_000]]
    assert us(series.end - series.start) == [[60_000] * 3]


def test_a_steps_line_with_other_names_is_no_series():
    space = Space()
    tpu = space.tpu(0)
    tpu.event("Steps", "warm-up", 0, 50).event("Steps", "²", 60, 5).event("Steps", "--5", 70, 5)
    tpu.module("jit_f(1)", 0, 10).op("a", 0, 10)
    assert steps(space).source == "module"


def test_a_number_with_a_separator_behind_it_is_the_number():
    space = Space()
    tpu = space.tpu(0)
    for name, start in (("1", 0), (" 2\x1f", 100), ("3\u2003", 200)):
        tpu.event("Steps", name, start, 90).op("a", start + 10, 5)
    assert numbers(steps(space)) == [1, 2, 3]


@pytest.mark.parametrize("later_first", [False, True])
def test_of_a_step_number_that_stands_twice_the_first_in_time_counts(later_first):
    space = Space()
    tpu = space.tpu(0)
    for start in (100, 0) if later_first else (0, 100):
        tpu.step(7, start, 90)
    tpu.op("a", 10, 5).op("b", 110, 5)
    assert us(steps(space).start) == [[10]]


# --- annotations -------------------------------------------------------------------------------


def cpu_space(count: int = 3, devices: int = 2, *, launches: bool = True) -> Space:
    """Markers cover the dispatch only; the work of a step starts later and ends 80 ms on."""
    space = Space()
    host = space.host()
    for step in range(count):
        at = step * 100_000
        host.marker(step + 40, at, 500)
        if launches:
            host.call("Execute", at + 100, 50, run_id=-5000 - step)
        for ordinal in range(devices):
            # Work begins after the marker has ended.
            start = at + 1_000 + ordinal * 2_000
            host.cpu_op("fusion.1", start, 30_000, ordinal=ordinal, run_id=-5000 - step)
            host.cpu_op(
                "psum.7", start + 40_000, 40_000, ordinal=ordinal, run_id=-5000 - step, thread=1
            )
    return space


def test_markers_tied_by_run_id_on_cpu():
    series = steps(cpu_space())
    assert (series.source, series.annotation, series.linked) == ("annotation", "train", True)
    assert numbers(series) == [40, 41, 42]
    assert us(series.start) == [[1_000, 101_000, 201_000], [3_000, 103_000, 203_000]]
    assert us(series.end - series.start) == [[80_000] * 3] * 2


def test_a_marker_that_covers_the_dispatch_of_the_next_step_too():
    """Launches that stand outside every marker belong to no step."""
    space = cpu_space()
    host = space.planes[0]
    host.call("Execute", 50_000, 50, run_id=77)
    host.cpu_op("fusion.9", 90_000, 5_000, ordinal=0, run_id=77, module="jit_g")
    series = steps(space)
    assert us(series.end - series.start) == [[80_000] * 3] * 2


def test_run_ids_that_differ_between_tpus():
    space = Space()
    host = space.host()
    tpus = [space.tpu(0), space.tpu(1)]
    for step, at in enumerate(STEPS):
        host.marker(step, at, 400, name="step_fn")
        for ordinal, base in ((0, 850), (1, 247)):
            host.call("Enqueue", at + 10, 5, run_id=base + step, device_ordinal=ordinal)
            tpus[ordinal].module("jit_f(1)", at + 1_000, 80_000, run_id=base + step)
            tpus[ordinal].op("fusion.1", at + 1_000, 80_000 - ordinal)
    series = steps(space)
    assert (series.annotation, series.linked) == ("step_fn", True)
    assert us(series.end - series.start) == [[80_000] * 3, [79_999] * 3]


def test_a_device_without_launches_has_no_part_in_the_steps():
    """All launches are for TPU 0; TPU 1 ran the program as often."""
    space = Space()
    host = space.host()
    tpus = [space.tpu(0), space.tpu(1)]
    for step, at in enumerate(STEPS):
        host.marker(step, at, 400)
        host.call("Enqueue", at + 10, 5, run_id=850 + step, device_ordinal=0)
        for tpu in tpus:
            tpu.module("jit_f(1)", at + 1_000, 80_000, run_id=850 + step)
            tpu.op("fusion.1", at + 1_000, 80_000)
    series = steps(space)
    assert (series.source, series.linked) == ("annotation", True)
    assert series.present.tolist() == [[True] * 3, [False] * 3]
    assert us(series.start[:1]) == [[1_000, 101_000, 201_000]]


def test_two_devices_with_crossed_run_ids():
    """The ordinal tells which device a run id is of."""
    space = Space()
    host = space.host()
    tpus = [space.tpu(0), space.tpu(1)]
    for step in range(2):
        at = step * 100_000
        host.marker(step, at, 400)
        for ordinal in (0, 1):
            run_id = (step + ordinal) % 2
            host.call("Enqueue", at + 10, 5, run_id=run_id, device_ordinal=ordinal)
            tpus[ordinal].module("jit_f(1)", at + 1_000, 80_000, run_id=run_id)
            tpus[ordinal].op("fusion.1", at + 1_000, 80_000)
    series = steps(space)
    assert us(series.start) == [[1_000, 101_000]] * 2


def gpu_space(**launch_stats: str) -> Space:
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 20_000)
        for index in range(3):
            correlation = 10 * step + index
            host.call(
                "cuLaunchKernel", at + 100 + index, 1, correlation_id=correlation, **launch_stats
            )
            gpu.kernel("k", at + 30_000 + 20_000 * index, 20_000, correlation=correlation)
    return space


@pytest.mark.parametrize("stats", [{}, {"hlo_op": "fusion.1", "hlo_module": "jit_f"}])
def test_markers_tied_by_correlation_id_on_gpu(stats):
    """Launches may say which HLO op they launch; they are launches all the same."""
    series = steps(gpu_space(**stats))
    assert (series.source, series.linked) == ("annotation", True)
    assert us(series.start) == [[30_000, 130_000, 230_000]]
    assert us(series.end - series.start) == [[60_000] * 3]


def test_launches_from_other_threads_on_gpu():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 100)
        for index in range(2):
            correlation = 10 * step + index
            host.call(
                "cuLaunchKernel", at + 500 + index, 1, line="worker", correlation_id=correlation
            )
            gpu.kernel("k", at + 30_000 + 20_000 * index, 20_000, correlation=correlation)
    series = steps(space)
    assert series.linked
    assert us(series.end - series.start) == [[40_000] * 3]


def test_kernels_of_a_graph_share_one_correlation_id():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 100)
        host.call("cuGraphLaunch", at + 10, 1, correlation_id=step)
        for index in range(5):
            gpu.kernel(
                f"k{index}",
                at + 1_000 + index * 10_000,
                10_000,
                correlation=step,
                hlo_op="command_buffer_3",
            )
    series = steps(space)
    assert us(series.end - series.start) == [[50_000] * 3]


def test_markers_tied_by_order():
    """No ids at all, but as many executions as markers, each after its marker."""
    space = Space()
    host = space.host()
    tpu = space.tpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 400)
        tpu.module("jit_step(1)", at + 1_000, 80_000)
        tpu.op("fusion.1", at + 1_000, 80_000)
        tpu.module("jit_log(2)", at + 90_000, 100)
        tpu.op("fusion.2", at + 90_000, 100)
    series = steps(space)
    assert (series.source, series.linked) == ("annotation", True)
    assert us(series.end - series.start) == [[89_100] * 3]


def test_a_small_program_inside_the_markers_is_not_the_step():
    """One CPU device: the step number is converted on the marker's own thread, the step itself is
    launched from a thread of the runtime, after the marker."""
    space = Space()
    host = space.host()
    for step in range(3):
        at = 100_000 * step
        host.marker(step, at, 500)
        host.cpu_op(
            "copy", at + 20, 5, ordinal=0, run_id=100 + step, module="jit_convert", program_id=2
        )
        host.call("Execute", at + 10, 50, run_id=100 + step)
        host.call("Execute", at + 600, 50, line="runtime", run_id=step)
        cpu_step(host, step, at + 700, 61_000)
    series = steps(space)
    assert (series.source, series.linked) == ("annotation", True)
    assert us(series.start) == [[20, 100_020, 200_020]]
    assert us(series.end - series.start) == [[61_680] * 3]


def test_a_small_kernel_inside_the_markers_is_not_the_step_on_gpu():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 100)
        host.call("cuLaunchKernel", at + 10, 1, correlation_id=100 + step)
        gpu.kernel("convert", at + 30, 5, correlation=100 + step)
        host.call("cuLaunchKernel", at + 500, 1, line="worker", correlation_id=step)
        gpu.kernel("k", at + 1_000, 70_000, correlation=step)
    series = steps(space)
    assert us(series.start) == [[30, 100_030, 200_030]]
    assert us(series.end - series.start) == [[70_970] * 3]


@pytest.mark.parametrize("before", [0, 3])
def test_launches_inside_the_markers_count_unless_they_tie_much_less(before):
    """They tie 45 ms of a step, the order of execution would tie 54. Work before the first marker
    is tied by neither."""
    space = Space()
    host = space.host()
    for number in range(before):
        host.cpu_op("init", 100_000 * number, 90_000, run_id=200 + number,
                    module=f"jit_init{number}", program_id=3 + number)  # fmt: skip
    for step in range(3):
        at = 100_000 * (before + step)
        host.marker(step, at, 500)
        host.call("Execute", at + 10, 5, run_id=100 + step)
        host.cpu_op(
            "fusion.2", at + 600, 45_000, ordinal=0, run_id=100 + step, module="jit_g", program_id=2
        )
        cpu_step(host, step, at + 45_600, 55_000 - 1_000)
    series = steps(space)
    assert us(series.end - series.start) == [[45_000] * 3]


def test_markers_that_cannot_be_tied_give_the_period_only():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    for step, at in enumerate(STEPS):
        host.marker(step, at, 400)
        gpu.kernel("k", at + 1_000, 80_000)
    series = steps(space)
    assert (series.source, series.linked) == ("annotation", False)
    assert us(np.diff(series.start)) == [[100_000, 100_000]]
    assert any("only the period is known" in note for note in remarks(series))
    part = space.analyse()
    assert part.step_terms == {}


def test_one_marker_beside_many_executions_is_no_series():
    """An annotation inside jit occurs once, while tracing."""
    space = Space()
    space.host().marker(0, 0, 500)
    tpu = space.tpu(0)
    for index in range(10):
        tpu.module("jit_f(1)", 1_000 + index * 100, 80, run_id=index)
        tpu.op("fusion.1", 1_000 + index * 100, 80)
    series = steps(space)
    assert series.source == "module"
    assert series.count == 10
    assert any("once" in note for note in remarks(series))


def test_one_marker_beside_many_launches_on_gpu_is_no_series():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    host.marker(0, 0, 500)
    for index in range(10):
        at = 1_000 + index * 100
        host.call("cuLaunchKernel", at, 1, correlation_id=index)
        gpu.kernel("k", at + 10, 80, correlation=index, hlo_op="fusion.1", module="jit_f")
    assert steps(space).source == "none"


def test_one_marker_with_its_own_kernels_on_gpu_is_one_step():
    space = Space()
    host = space.host()
    gpu = space.gpu(0)
    host.marker(7, 0, 500)
    for index in range(3):
        host.call("cuLaunchKernel", 10 + index, 1, correlation_id=index)
        gpu.kernel("k", 1_000 + index * 100, 80, correlation=index, hlo_op="fusion.1")
    series = steps(space)
    assert (series.source, numbers(series), series.linked) == ("annotation", [7], True)


def test_one_marker_with_its_own_execution_is_one_step():
    series = steps(cpu_space(count=1, devices=1))
    assert (series.source, series.count, series.linked) == ("annotation", 1, True)


def test_the_annotation_with_most_steps_wins():
    space = cpu_space()
    host = space.planes[0]
    host.marker(0, 0, 400, name="eval", line="other thread")
    series = steps(space)
    assert series.annotation == "train"
    assert any("'eval'" in note for note in remarks(series))


def test_markers_of_two_threads_with_one_number_are_one_step():
    space = cpu_space()
    host = space.planes[0]
    for step in range(3):
        host.marker(step + 40, step * 100_000 + 20, 50, line="data loader")
    series = steps(space)
    assert numbers(series) == [40, 41, 42]
    assert us(series.end - series.start) == [[80_000] * 3] * 2


def test_steps_without_device_work_are_left_out_and_told():
    space = cpu_space()
    space.planes[0].marker(43, 300_000, 500)
    series = steps(space)
    assert numbers(series) == [40, 41, 42]
    assert any(
        "1 of 4 steps have no device work in the capture and are left out: 43." in note
        for note in remarks(series)
    )


# --- the dominant module -----------------------------------------------------------------------


def test_executions_of_the_dominant_module():
    space = Space()
    tpu = space.tpu(0)
    for at in STEPS:
        tpu.module("jit_step(1)", at, 80_000)
        tpu.op("fusion.1", at, 80_000)
        for tiny in range(5):
            tpu.module("jit_convert(9)", at + 81_000 + tiny * 100, 50)
            tpu.op("fusion.2", at + 81_000 + tiny * 100, 50)
    series = steps(space)
    assert (series.source, series.annotation) == ("module", "jit_step")
    assert numbers(series) == [None] * 3
    # All work up to the next execution is the step's: 81,000 + 4 x 100 + 50.
    assert us(series.end - series.start) == [[81_450] * 3]
    assert us(np.diff(series.start)) == [[100_000, 100_000]]


def test_devices_that_ran_it_unequally_often():
    space = Space()
    for ordinal, count in ((0, 3), (1, 2)):
        tpu = space.tpu(ordinal)
        for index in range(count):
            tpu.module("jit_step(1)", index * 100, 80)
            tpu.op("fusion.1", index * 100, 80)
    series = steps(space)
    assert series.count == 3
    assert series.present.tolist() == [[True, True, True], [True, True, False]]
    assert any("between 2 and 3 times" in note for note in remarks(series))


def test_of_several_devices_the_fewest_and_the_most_times_are_named():
    space = Space()
    for ordinal, count in enumerate((3, 2, 5)):
        tpu = space.tpu(ordinal)
        for index in range(count):
            tpu.module("jit_step(1)", index * 100, 80).op("fusion.1", index * 100, 80)
    series = steps(space)
    assert series.count == 5
    assert any("between 2 and 5 times" in note for note in remarks(series))


def test_no_steps_at_all():
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    series = steps(space)
    assert (series.source, series.count, series.linked) == ("none", 0, False)


def test_sparse_cores_have_no_say():
    space = Space()
    tpu = space.tpu(0)
    sparse = space.tpu(0, core="SparseCore 0")
    for at in STEPS:
        tpu.module("jit_f(1)", at, 80_000).op("fusion.1", at, 80_000)
        sparse.op("sc.1", at, 95_000)
    series = steps(space)
    assert us(series.end - series.start) == [[80_000] * 3]


@pytest.mark.parametrize("make", [cpu_space, gpu_space])
def test_the_order_in_the_file_does_not_matter(make):
    expected = steps(make())
    for seed in range(4):
        found = steps(make(), seed)
        assert numbers(found) == numbers(expected)
        assert sorted(us(found.start)) == sorted(us(expected.start))
        assert sorted(us(found.end)) == sorted(us(expected.end))


def test_a_run_id_that_occurs_in_a_later_marker_again():
    """The launch is what counts, not an event that waits for the same execution one step later,
    in whatever order the file has them."""
    space = cpu_space()
    host = space.planes[0]
    for step in range(2):
        host.call("Await", (step + 1) * 100_000 + 200, 50, run_id=-5000 - step)
    for seed in (None, 0, 1, 2, 3):
        series = steps(space, seed)
        assert numbers(series) == [40, 41, 42]
        assert us(series.end - series.start) == [[80_000] * 3] * 2


# --- the window --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "ignored", "window"),
    [(0, 0, (0, 283_000)), (1, 1, (100_000, 283_000)), (2, 2, (200_000, 283_000))],
)
def test_the_steady_window_is_one_for_all_devices(warmup, ignored, window):
    part = cpu_space().analyse(warmup_steps=warmup)
    assert part.warmup_ignored == ignored
    for device in part.devices:
        assert device.steady is not None
        assert (device.steady.start // US, device.steady.end // US) == window


@pytest.mark.parametrize("warmup", [3, 10])
def test_more_warmup_than_steps_drops_none_and_warns(warmup):
    part = cpu_space().analyse(warmup_steps=warmup)
    assert part.warmup_ignored == 0
    assert any("none was dropped" in note for note in part.notes)


def test_the_ledger_of_each_step():
    part = cpu_space().analyse()
    # Per device and step: fusion 30 ms, idle 10 ms, psum 40 ms; two devices.
    assert {name: [value // US for value in row] for name, row in part.step_terms.items()} == {
        "compute": [60_000] * 3,
        "exposed_communication": [80_000] * 3,
        "exposed_transfer": [0] * 3,
        "unattributed": [0] * 3,
        "idle": [20_000] * 3,
        "window": [160_000] * 3,
    }


def test_a_missing_number_interrupts_the_periods():
    """Steps 4, 5, 6, 8, 9: from 6 to 8 two steps passed."""
    series = StepSeries(
        source="annotation",
        annotation="train",
        linked=True,
        numbers=(4, 5, 6, 8, 9),
        start=np.zeros((1, 5), np.int64),
        end=np.ones((1, 5), np.int64),
        boundary=np.zeros((1, 5), np.int64),
        present=np.ones((1, 5), np.bool_),
        cut=np.zeros(5, np.bool_),
    )
    assert series.has_successor.tolist() == [True, True, False, True, False]


# --- markers that mislead ----------------------------------------------------------------------


def tpu_steps(space: Space, count: int, first: int = 0) -> None:
    """`count` executions of 80 ms every 100 ms, the first at `first` ms."""
    tpu = space.tpu(0)
    for index in range(count):
        at = first * 1000 + index * 100_000
        tpu.module("jit_f(1)", at, 80_000, run_id=index).op("fusion.1", at, 80_000)


def test_markers_of_a_quick_dispatch_do_not_shorten_the_steps():
    """Five steps are dispatched within 10 us: the k-th execution is the k-th step."""
    space = Space()
    host = space.host()
    for step in range(5):
        host.marker(step, step * 2, 1)
    tpu_steps(space, 5, first=1)
    series = steps(space)
    assert (series.source, series.linked) == ("annotation", True)
    assert us(np.diff(series.start)) == [[100_000] * 4]


def test_more_executions_than_markers_are_the_better_source():
    space = Space()
    host = space.host()
    for step in range(5):
        host.marker(step, step * 2, 1)
    tpu_steps(space, 7, first=1)
    series = steps(space)
    assert (series.source, series.count) == ("module", 7)
    assert us(np.diff(series.start)) == [[100_000] * 6]
    assert any("executions are used as the steps instead" in note for note in remarks(series))


def test_an_execution_from_before_the_capture_is_no_step():
    """The capture starts in the middle of a step whose marker is not in it."""
    space = Space()
    host = space.host()
    for step in range(4):
        host.marker(step, 100_000 * (step + 1) - 5_000, 1_000)
    tpu_steps(space, 5)
    series = steps(space)
    assert (series.source, series.linked, series.count) == ("annotation", True, 4)
    assert us(series.start) == [[100_000, 200_000, 300_000, 400_000]]


def test_gpu_markers_that_are_over_before_the_work_are_no_steps():
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(5):
        host.marker(step, step * 20, 10)
        gpu.kernel("k", 1_000 + step * 100, 80)
    series = steps(space)
    assert series.source == "none"
    assert any("end long before" in note for note in remarks(series))


@pytest.mark.parametrize(("worked", "source"), [(1_200, "annotation"), (1_201, "none")])
def test_untied_markers_that_span_half_of_the_work_are_steps(worked, source):
    """Five markers 120 us apart span 480 us, with the last one's 120: half of 1,200."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(5):
        host.marker(step, step * 120, 10)
    gpu.kernel("k", 100, 10).kernel("k", 100 + worked - 10, 10)
    series = steps(space)
    assert series.source == source
    if source == "annotation":
        assert us(series.start) == us(series.boundary) == [[0, 120, 240, 360, 480]]
        assert us(series.end) == [[120, 240, 360, 480, 480]]
        assert (series.present.all(), series.cut.any()) == (True, False)


def cpu_step(host, run_id: int, at: int, duration: int) -> None:
    host.cpu_op("fusion.1", at, duration, ordinal=0, run_id=run_id, module="jit_f", program_id=1)


def test_markers_of_one_number_are_one_step():
    """Two micro-batches in two annotations of the same step."""
    space = Space()
    host = space.host()
    for step in range(3):
        for half in range(2):
            at = 1_000 * step + 400 * half
            host.marker(step, at, 50)
            host.call("Execute", at + 10, 5, run_id=10 * step + half)
            cpu_step(host, 10 * step + half, at + 60, 300)
    series = steps(space)
    assert numbers(series) == [0, 1, 2]
    assert us(series.end - series.start) == [[700] * 3]


def test_numbers_that_start_again_are_new_steps():
    space = Space()
    host = space.host()
    for index in range(9):
        at = 1_000 * index
        host.marker(index % 3, at, 50)
        host.call("Execute", at + 10, 5, run_id=index)
        cpu_step(host, index, at + 60, 300)
    series = steps(space)
    assert numbers(series) == [0, 1, 2] * 3
    assert us(np.diff(series.start)) == [[1_000] * 8]
    assert any("restart within" in note for note in remarks(series))


def test_the_annotation_with_the_device_work_counts_not_the_one_with_more_markers():
    space = Space()
    host = space.host()
    for step in range(3):
        host.marker(step, 1_000 * step, 50, name="train")
        host.call("Execute", 1_000 * step + 10, 5, run_id=step)
        cpu_step(host, step, 1_000 * step + 60, 600)
    for step in range(8):
        host.marker(step, 5_000 + 100 * step, 20, name="eval")
        host.call("Execute", 5_000 + 100 * step + 5, 5, run_id=100 + step)
        cpu_step(host, 100 + step, 5_000 + 100 * step + 30, 10)
        host.marker(step, 300 * step, 5, name="load")
    series = steps(space)
    assert (series.annotation, series.count) == ("train", 3)
    assert us(series.end - series.start) == [[600] * 3]
    assert any("'eval'" in note and "'load'" in note for note in remarks(series))
