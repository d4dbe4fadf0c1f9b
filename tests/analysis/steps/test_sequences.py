"""Steps without markers: programs by id, and sequences of programs."""

from __future__ import annotations

import numpy as np
import pytest

from builders_json import event, process, read, thread, trace
from builders_xspace import US, Space, Tpu
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.find import find_steps
from marin_profile.analysis.steps.series import StepSeries

MS = 1000
Run = tuple[str, float, float]  # program, start and length in ms


def steps(space: Space, shuffle: int | None = None) -> StepSeries:
    return find_steps(find_devices(space.timeline(shuffle), ""))


def run(tpu: Tpu, *runs: Run, op: str = "fusion") -> None:
    for program, at, length in runs:
        tpu.module(program, at * MS, length * MS)
        tpu.op(f"{op}.{program[4]}", at * MS, length * MS)


def sequence(
    letters: str, *, gap_after: str = "", lengths: dict[str, float] | None = None
) -> Space:
    """Programs jit_<letter> of 10 ms each (or `lengths`), one right after the other, with 5 ms
    after those of `gap_after`."""
    space = Space()
    tpu = space.tpu(0)
    at = 0.0
    for letter in letters:
        length = (lengths or {}).get(letter, 10)
        run(tpu, (f"jit_{letter}({ord(letter)})", at, length))
        at += length + (5 if letter in gap_after else 0)
    return space


def ms(values: np.ndarray) -> list[list[float]]:
    return (values / (US * MS)).tolist()


def lasting(series: StepSeries) -> tuple[list[float], list[float]]:
    """Starts and durations on the first device."""
    return ms(series.start)[0], ms(series.end - series.start)[0]


# --- programs are ids --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tt_jit_custom_kernel", "jit__lambda"])
@pytest.mark.parametrize("same_op", [False, True])
def test_two_programs_of_one_name_are_two(name, same_op):
    """Add 10 ms and multiply 30 ms alternate, then 10 ms idle: the period is 50 ms."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(6):
        at = 50 * MS * step
        tpu.module(f"{name}(48)", at, 10 * MS).op("add.1", at, 10 * MS)
        tpu.module(f"{name}(10)", at + 10 * MS, 30 * MS)
        tpu.op("add.1" if same_op else "multiply.1", at + 10 * MS, 30 * MS)
    series = steps(space)
    assert (series.source, series.annotation, series.count) == ("module", name, 6)
    starts, durations = lasting(series)
    assert starts == [10, 60, 110, 160, 210, 260]
    # Multiply 30, idle 10, the next add 10; no add is left for the last.
    assert durations == [50, 50, 50, 50, 50, 30]
    assert series.cut.tolist() == [False] * 5 + [True]
    assert series.window(1) == (60 * MS * US, 260 * MS * US)
    assert series.periods(1) == ([(60 * MS * US, 260 * MS * US)], 4)
    assert any(f"Other programs are called {name} too" in doubt for doubt in series.doubts)


def json_executions(*ops: str) -> StepSeries:
    """CPU executions as JAX's JSON has them, without program ids: one op each, 100 us apart."""
    events = [
        event(op, str(100 * index), "80", pid="701", tid="9", hlo_op=op, hlo_module="jit__lambda",
              device_ordinal="0", run_id=str(index))
        for index, op in enumerate(ops)
    ]  # fmt: skip
    names = [process(701, "/host:CPU"), thread(701, 9, "tf_XLAPjRtCpuClient/1")]
    return find_steps(find_devices(read(trace(*names, *events, named=False)), ""))


def test_without_ids_programs_go_by_name_and_a_warning_says_where_their_ops_differ():
    series = json_executions("add.1", "multiply.1", "add.1", "multiply.1", "add.1")
    assert (series.source, series.count) == ("module", 5)
    (doubt,) = [text for text in series.doubts if "no program ids" in text]
    assert "jit__lambda differ in their ops" in doubt


def test_without_ids_two_executions_between_the_edges_are_held_to_each_other():
    (doubt,) = json_executions("x", "add.1", "multiply.1", "y").doubts
    assert "jit__lambda differ in their ops" in doubt


def test_without_ids_like_executions_give_no_warning():
    # The first and the last may be cut.
    assert json_executions("x", "add.1", "y").doubts == ()
    assert json_executions("x", "add.1", "add.1", "add.1", "y").doubts == ()


@pytest.mark.parametrize("shapes", [(1, 1, 2, 1, 3, 1, 1, 2), (3, 1, 2, 1, 1, 2, 1, 1)])
def test_a_function_compiled_for_several_shapes_is_one_series(shapes):
    """In no repeating order, with four ops of five in common: each execution is a step."""
    space = Space()
    tpu = space.tpu(0)
    for step, shape in enumerate(shapes):
        at = 100 * MS * step
        tpu.module(f"jit_train({shape})", at, 50 * MS)
        for index in range(4):
            tpu.op(f"fusion.{index}", at + 10 * MS * index, 10 * MS)
        tpu.op(f"shape.{shape}", at + 40 * MS, 10 * MS)
    series = steps(space)
    assert lasting(series) == ([100.0 * step for step in range(8)], [50.0] * 8)
    assert any("3 programs are called jit_train" in doubt for doubt in series.doubts)


def test_two_programs_of_one_name_and_like_ops_that_alternate_are_two():
    """Of 50 and of 30 ms: a step is an execution of both."""
    space = Space()
    tpu = space.tpu(0)
    for place, (shape, length) in enumerate([(1, 10), (2, 6)] * 4):
        at = 100 * MS * place
        tpu.module(f"jit_train({shape})", at, 5 * length * MS)
        for index in range(5):
            tpu.op(f"fusion.{index}", at + length * MS * index, length * MS)
    assert lasting(steps(space))[0] == [0, 200, 400, 600]


def test_programs_of_one_name_with_other_ops_are_two_in_any_order():
    space = Space()
    tpu = space.tpu(0)
    for step, kind in enumerate("ppdpddpp"):
        at = 100 * MS * step
        length = 60 if kind == "p" else 40
        tpu.module(f"jit__lambda({ord(kind)})", at, length * MS)
        for index in range(5):
            tpu.op(f"{kind}.{index}", at + length * MS * index // 5, length * MS // 5)
    series = steps(space)
    assert lasting(series)[0] == [0, 100, 300, 600, 700]


# --- sequences ---------------------------------------------------------------------------------


def test_micro_batches_are_one_step():
    """2 x grad of 30 ms, 1 x apply of 10 ms, 5 ms idle: five steps of 70 ms every 75 ms."""
    lengths = {"g": 30.0, "a": 10.0}
    series = steps(sequence("gga" * 5, gap_after="a", lengths=lengths))
    assert lasting(series) == ([0, 75, 150, 225, 300], [70] * 5)
    assert series.annotation == "jit_g"
    assert any("2 x jit_g, 1 x jit_a" in doubt for doubt in series.doubts)
    assert not series.cut.any()


@pytest.mark.parametrize("apply", ["a", "z"])
def test_a_capture_that_begins_in_the_middle_of_the_micro_batches(apply):
    """The first step has one grad of two: it is cut, and so is the last, without its apply."""
    letters = ("ga" + "gga" * 4 + "gg").replace("a", apply)
    series = steps(sequence(letters, gap_after=apply, lengths={"g": 30.0, apply: 10.0}))
    starts, durations = lasting(series)
    assert starts == [0, 45, 120, 195, 270, 345]
    assert durations == [40, 70, 70, 70, 70, 60]
    assert series.cut.tolist() == [True, False, False, False, False, True]
    # From 45 to the end of the last whole step; its period ends where the cut one begins.
    assert series.window(1) == (45 * MS * US, 340 * MS * US)
    assert series.periods(1) == ([(45 * MS * US, 345 * MS * US)], 4)


def test_a_capture_that_begins_with_the_last_program_of_a_step():
    """What is before the first start of the dominant program belongs to no step."""
    lengths = {"g": 30.0, "a": 10.0}
    series = steps(sequence("a" + "gga" * 4, gap_after="a", lengths=lengths))
    assert lasting(series) == ([15, 90, 165, 240], [70] * 4)


def test_three_programs_in_turn():
    """The longest of them starts the step, wherever the capture begins."""
    lengths = {"a": 10.0, "b": 20.0, "c": 15.0}
    series = steps(sequence("abc" * 4, lengths=lengths))
    assert lasting(series) == ([10, 55, 100, 145], [45, 45, 45, 35])
    assert series.cut.tolist() == [False, False, False, True]
    assert any("jit_b, whose executions are the steps, has 44 %" in text for text in series.doubts)


def test_the_step_begins_after_the_longest_idle_time_where_the_program_runs_in_two_places():
    """g a g b, with the pause after b."""
    series = steps(sequence("gagb" * 4, gap_after="b", lengths={"g": 30.0}))
    assert lasting(series)[0] == [0, 85, 170, 255]
    series = steps(sequence("gagb" * 4, gap_after="a", lengths={"g": 30.0}))
    # The first two are the rest of a step that began before the capture.
    assert lasting(series)[0] == [0, 45, 130, 215, 300]
    assert series.cut.tolist() == [True, False, False, False, True]


def test_an_evaluation_every_third_step_is_no_micro_batch():
    """Both programs run several times in the sequence: each execution of the larger is a step."""
    space = sequence("tttee" * 3, lengths={"t": 20.0})
    series = steps(space)
    assert series.count == 9
    assert any("Nothing shows which programs make up a step" in text for text in series.doubts)
    assert lasting(series)[1][:4] == [20, 20, 40, 20]


def test_too_few_repeats_are_no_sequence():
    series = steps(sequence("ggagga"))
    assert series.count == 4
    assert any("Nothing shows" in text for text in series.doubts)


def test_small_programs_do_not_count_as_part_of_a_sequence():
    """The conversion now and then is below 1 % of the op time."""
    series = steps(sequence("ggaggcaggagga", lengths={"g": 30.0, "a": 10.0, "c": 0.1}))
    assert series.count == 4


def test_what_follows_the_last_step_is_its_own_only_if_every_step_has_it():
    series = steps(sequence("talta" + "lta" + "ltaleee", lengths={"t": 40.0}))
    # t a l: 60 ms each; the last one has its a and l too, and no e.
    assert lasting(series) == ([0, 60, 120, 180], [60, 60, 60, 60])


@pytest.mark.parametrize(
    ("letters", "durations"),
    [("tltl", [50, 50]), ("ttltl", [40, 50, 50]), ("tlttl", [50, 40, 40]), ("tlle", [40])],
)
def test_the_last_of_few_steps_has_what_those_before_it_have(letters, durations):
    """Of two steps what the first has; of three what the second has, for the first may be cut; a
    lone one its first execution only."""
    assert lasting(steps(sequence(letters, lengths={"t": 40.0})))[1] == durations


def test_the_order_in_the_file_does_not_matter():
    def make() -> Space:
        return sequence("ga" + "gga" * 4 + "gg", gap_after="a", lengths={"g": 30.0})

    expected = lasting(steps(make()))
    for seed in range(3):
        assert lasting(steps(make(), seed)) == expected


def test_devices_that_ran_other_sequences_leave_a_doubt():
    space = Space()
    for ordinal, letters in enumerate(("gga" * 4, "ga" * 5)):
        tpu = space.tpu(ordinal)
        for index, letter in enumerate(letters):
            run(tpu, (f"jit_{letter}({ord(letter)})", 10 * index, 10))
    series = steps(space)
    assert any("Nothing shows" in text for text in series.doubts)


def test_work_of_no_execution_behind_the_last_step_is_of_no_step():
    space = Space()
    tpu = space.tpu(0)
    for index in range(3):
        run(tpu, ("jit_a(1)", 20 * index, 10))
    tpu.op("copy.1", 12 * MS, 2 * MS)
    tpu.op("copy.2", 70 * MS, 2 * MS)
    starts, durations = lasting(steps(space))
    # What lies between two steps is the first one's; what follows the last is nobody's.
    assert starts == [0, 20, 40]
    assert durations == [14, 10, 10]


def test_an_execution_without_ops_is_not_one_of_other_ops():
    """Without program ids; the third of five executions shows no op."""
    space = Space()
    tpu = space.tpu(0)
    for index in range(5):
        tpu.module("jit_a", 20 * MS * index, 10 * MS)
        if index != 2:
            tpu.op("fusion.1", 20 * MS * index, 10 * MS)
    assert not any("no program ids" in text for text in steps(space).doubts)


def test_a_device_that_never_runs_the_dominant_program_says_nothing_about_its_sequence():
    """Two gradients and an update are a step on the first device; the second one only copies."""
    space = sequence("gga" * 5)
    copies = space.tpu(1)
    for index in range(5):
        run(copies, ("jit_x(9)", 30 * index, 1))
    series = steps(space)
    assert series.count == 5
    assert ms(series.start)[0] == [0, 30, 60, 90, 120]
    assert not any("which programs make up a step" in text for text in series.doubts)
