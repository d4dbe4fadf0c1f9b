"""What a file shows to be missing from it; what programs and profilers do by themselves is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders_json import event, process, thread, trace
from builders_json import read as read_json
from builders_xspace import Space, computation, hlo_proto, instruction, message, number
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.missing import Missing, find_missing
from marin_profile.analysis.steps.find import find_steps
from marin_profile.events.timeline import Timeline

GROUPS = "%all-reduce.2 = f32[8] all-reduce(%dot.1), replica_groups={{0,1,2,3}}"
Lost = Callable[[int, int, str], bool]


def nothing(device: int, step: int, name: str) -> bool:
    return False


def tpus(count: int = 4, steps: int = 12, lost: Lost = nothing) -> Space:
    """Each runs three ops a step, one of them with all others; `lost` says which events are not
    written, by device, step and the op's name ("" for the execution itself)."""
    space = Space()
    for ordinal in range(count):
        tpu = space.tpu(ordinal)
        for step in range(steps):
            at = 100 * step
            if not lost(ordinal, step, ""):
                tpu.module("jit_step(7)", at, 90, run_id=step)
            for place, name in enumerate(("dot.1", "all-reduce.2", "add.3")):
                if not lost(ordinal, step, name):
                    text = GROUPS if name == "all-reduce.2" else ""
                    tpu.op(name, at + 30 * place, 25, long_name=text)
    return space


def missing(timeline: Timeline) -> Missing:
    found = find_devices(timeline, "")
    return find_missing(found, find_steps(found))


def of(space: Space) -> Missing:
    return missing(space.timeline())


def test_nothing_is_missing_from_a_sound_file():
    assert of(tpus()) == Missing(devices_told=4)


# --- devices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["/devicf:TPU:1", "/device:TPV:1", "", "/device:TPU:"])
def test_a_plane_with_a_devices_ops_and_not_its_name(name):
    space = tpus()
    space.planes[3].name = name
    found = of(space)
    assert found.doubts == (
        f"Plane {name!r} has the line 'XLA Ops' of a device, but not the name of one: its 36 "
        "events are left out, the file may be damaged.",
    )
    assert found.is_cut


def test_the_same_of_a_gpu():
    space = Space()
    for ordinal in range(2):
        space.gpu(ordinal).kernel("gemm", 0, 5)
    space.planes[1].name = "/device:GPV:1"
    assert of(space).doubts[0].startswith("Plane '/device:GPV:1' has the line 'Stream #16(Kernel)'")


def test_a_custom_plane_is_no_device():
    space = tpus()
    space.plane("/device:CUSTOM:Megascale Trace").event("steps", "x", 0, 5)
    space.host().event("Stream #3 of the loader", "read", 0, 5)
    assert of(space).doubts == ()


@pytest.mark.parametrize(
    ("renamed", "ends", "lacks"), [("2", (0, 5), "2, 4"), ("2", (0, 9), "2, 4 to 8")]
)
def test_a_gap_in_the_numbers_of_devices(renamed, ends, lacks):
    space = tpus()
    space.planes[int(renamed)].name = f"/device:TPU:{ends[1]}"
    assert of(space).doubts == (
        f"Of the devices /device:TPU:{ends[0]} to {ends[1]} the file lacks {lacks}: unless they "
        "took no part, it may be damaged.",
    )


@pytest.mark.parametrize("odd", ["2\x1f", "\u00b2", "9" * 5000])
def test_a_number_that_is_none_tells_of_no_gap(odd):
    space = tpus()
    space.planes[2].name = f"/device:TPU:{odd}"
    assert not any("lacks 3" in doubt for doubt in of(space).doubts)


def test_empty_planes_are_no_gap():
    space = tpus()
    for line in space.planes[2].lines.values():
        line.events.clear()
    assert of(space).doubts == ()


def cpu_with(lacking: int, stat: str, ops: int = 100) -> Space:
    """Two devices; the first ops do not tell the stat."""
    space = Space()
    host = space.host()
    for at in range(ops):
        numbers = {"ordinal": at % 2, "run_id": at // 10}
        if at < lacking:
            numbers[stat] = None
        host.cpu_op("dot.1", 20 * at, 10, thread=at % 2, **numbers)
    return space


@pytest.mark.parametrize(
    ("stat", "what"),
    [("ordinal", "which device they ran on"), ("run_id", "which execution they are part of")],
)
def test_few_ops_without_a_number_that_the_others_have(stat, what):
    found = "1 op of a CPU does not say " + what + ", the others do: the file may be damaged there."
    assert found in of(cpu_with(1, stat)).doubts
    two = found.replace("1 op of a CPU does", "2 ops of a CPU do")
    assert two in of(cpu_with(2, stat)).doubts
    for many in (3, 99, 100, 0):
        assert not any(what in doubt for doubt in of(cpu_with(many, stat)).doubts)


def test_json_with_two_processes_of_one_name():
    events = []
    for pid in (3, 11):
        events += [process(pid, "/device:TPU:0"), thread(pid), event(pid=str(pid))]
    found = missing(read_json(trace(*events, named=False)))
    assert found.doubts == ("2 devices are called /device:TPU:0: the file may be damaged.",)


@pytest.mark.parametrize(("steps", "ops"), [(1, "1 op"), (5, "5 ops")])
def test_a_device_with_far_fewer_ops_than_its_siblings(steps, ops):
    """They meet in 12 collectives."""
    found = of(tpus(lost=lambda device, step, _: device == 2 and step >= steps))
    (few,) = (doubt for doubt in found.doubts if "beside it" in doubt)
    assert few == (
        f"/device:TPU:2 shows {ops} that devices run together, where devices beside it show 12: "
        "its events are lost, or those of others are booked on it; the file may be damaged."
    )
    assert found.is_cut


def test_a_device_with_a_single_op():
    found = of(tpus(lost=lambda device, step, name: device == 2 and (step, name) != (3, "dot.1")))
    assert found.doubts[0].startswith("/device:TPU:2 shows 1 op, where devices beside it show 36: ")
    assert found.is_cut


def test_an_op_booked_on_a_device_that_is_none():
    space = Space()
    host = space.host()
    for step in range(8):
        for ordinal in range(2):
            for op in range(3):
                stray = 77 if (step, ordinal, op) == (4, 1, 1) else ordinal
                host.cpu_op(f"dot.{op}", 100 * step + 10 * op, 9, ordinal=stray, run_id=step)
    found = of(space)
    assert any(
        doubt.startswith("/device:CPU:77 shows 1 op, where devices beside it show 23: ")
        for doubt in found.doubts
    )


def test_programs_that_each_device_runs_alone_may_run_any_number_of_times():
    space = Space()
    for ordinal, steps in enumerate((40, 3)):
        tpu = space.tpu(ordinal)
        for step in range(steps):
            tpu.module("jit_eval(3)", 100 * step, 90).op("dot.1", 100 * step, 80)
    assert of(space) == Missing()


def test_beside_the_program_of_all_a_device_may_run_others():
    space = tpus(2)
    for step in range(50):
        space.planes[0].op("add.9", 100 * step + 91, 2)
    assert not any("beside it" in doubt for doubt in of(space).doubts)


@pytest.mark.parametrize(
    ("scope", "few"),
    [("jit(f)/cond/branch_1_fun/psum:", 0), ("jit(f)/while/body/psum:", 0), ("jit(f)/psum:", 1)],
)
def test_in_branches_and_loops_devices_may_run_any_number_of_ops(scope, few):
    """Device 2 one op, the others twelve, beside four that all run."""
    space = tpus(steps=4)
    for ordinal, tpu in enumerate(space.planes):
        for at in range(1 if ordinal == 2 else 12):
            begin = 100 * (at // 3) + 86 + at % 3
            tpu.op("all-reduce.9", begin, 1, scope=scope, long_name=GROUPS)
    found = of(space)
    assert sum("beside it" in doubt for doubt in found.doubts) == few
    assert found.is_cut == bool(few)


def test_executions_may_differ_in_branches():
    space = tpus()
    for step in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11):
        for ordinal in range(4):
            scope = "jit(f)/cond/branch_0_fun/add:"
            space.planes[ordinal].op("add.9", 100 * step + 86, 1, scope=scope)
    assert of(space).doubts == ()


def test_the_devices_that_a_program_is_compiled_for():
    assignment = message(15, number(1, 2) + number(2, 4))
    space = Space().hlo(7, message(1, message(1, "jit_f") + assignment))
    space.gpu(0).kernel("gemm", 0, 5, hlo_op="gemm", module="jit_f", program_id=7)
    assert of(space).devices_told == 8
    space.hlo(8, hlo_proto())
    assert space.timeline().hlo_devices == {7: 8, 8: 0}


def test_cpu_ops_that_do_not_say_where_they_ran():
    groups = instruction("psum.1", "all-reduce", id=1, groups=[range(8)])
    space = Space().hlo(7, hlo_proto(computation(1, 1, groups)))
    host = space.host()
    for ordinal in range(8):
        host.cpu_op("psum.1", 10 * ordinal, 9, ordinal=ordinal, program_id=7)
    assert of(space).doubts == ()
    host._stat_ids["devicf_ordinal"] = host._stat_ids.pop("device_ordinal")
    assert of(space).doubts == (
        "No op says which of the 8 devices it ran on: all are booked on /device:CPU:0, the file "
        "may be damaged.",
    )


# --- ops of executions -------------------------------------------------------------------------


def test_executions_that_lack_ops():
    lost = {(1, 5, "add.3"), (1, 6, "dot.1"), (1, 6, "all-reduce.2")}
    found = of(tpus(lost=lambda *event: event in lost))
    assert found.doubts == (
        "2 of 48 executions of jit_step have fewer ops than the others on their device (3 ops in "
        "all, the first on /device:TPU:1 at 0.000500 s): events may be lost.",
    )
    assert not found.is_cut


@pytest.mark.parametrize("step", [0, 11])
def test_the_edges_of_a_capture_cut_executions(step):
    lost = {(device, step, "dot.1" if step == 0 else "add.3") for device in range(4)}
    assert of(tpus(lost=lambda *event: event in lost)).doubts == ()


@pytest.mark.parametrize("every", [2, 3, 4, 5])
def test_a_branch_that_some_executions_take_is_no_loss(every):
    branch = of(tpus(steps=40, lost=lambda _, step, name: name == "add.3" and step % every == 0))
    assert branch.doubts == ()
    skipped = of(tpus(steps=40, lost=lambda _, step, name: name == "add.3" and step % every != 0))
    assert skipped.doubts == ()


@pytest.mark.parametrize(("overlaps", "said"), [(1, True), (2, True), (3, False)])
def test_one_op_that_reaches_into_the_next(overlaps, said):
    """200 ops of 25 us every 30 us."""
    space = Space()
    tpu = space.tpu(0)
    for op in range(200):
        tpu.op("dot.1", 30 * op, 40 if op in range(50, 50 + 10 * overlaps, 10) else 25)
    plain = "op of 200 partly overlaps" if overlaps == 1 else "ops of 200 partly overlap"
    assert [f"{overlaps} {plain} the next one" in doubt for doubt in of(space).doubts] == [
        True
    ] * said


def test_a_device_without_work_in_a_step():
    space = tpus(steps=12, lost=lambda device, step, _: (device, step) == (3, 7))
    for tpu in space.planes:
        for step in range(12):
            tpu.step(step, 100 * step, 95)
    assert of(space).doubts == (
        "/device:TPU:3 shows no work in 1 step (7), other devices do: events may be lost.",
    )


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([*range(5), *range(6, 12)], "The step numbers jump from 4 to 6: "),
        ([*range(0, 120, 10)], ""),
        ([*range(12)], ""),
    ],
)
def test_a_jump_in_the_step_numbers(numbers, said):
    space = Space()
    tpu = space.tpu(0)
    for place, step in enumerate(numbers):
        tpu.step(step, 100 * place, 95).op("dot.1", 100 * place, 90)
    assert "".join(of(space).doubts).startswith(said)
    assert bool(of(space).doubts) == bool(said)
