"""Which steps stand out, and why; every capture's truth is in its builder's docstring."""

from __future__ import annotations

import pytest

from builders_xspace import US, Host, Space, Tpu, read_bytes, summary_of
from marin_profile.analysis.host import analyse_host
from marin_profile.analysis.steps.outliers import Cause, outliers
from marin_profile.schema import StepOutlier

STEPS = 20
PERIOD = 1_000


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        ([], []),
        ([None, None], []),
        ([10.0], []),
        ([10.0, 30.0], []),
        # MAD 0: more than 10 %, not 10 % itself.
        ([10.0, 10.0, 11.0], []),
        ([10.0, 10.0, 11.1], [2]),
        ([None, 10.0, 10.0, None, 10.0, 20.0], [5]),
        # Median 10, MAD 1: 5 x 1.4826 = 7.413.
        ([9.0, 11.0, 9.0, 11.0, 10.0, 10.0, 17.4], []),
        ([9.0, 11.0, 9.0, 11.0, 10.0, 10.0, 17.5], [6]),
        # Short steps do not stand out.
        ([10.0, 10.0, 10.0, 1.0], []),
    ],
)
def test_the_rule_by_hand(periods, expected):
    assert outliers(periods) == expected


def regular(space: Space, *, extra: dict[int, int]) -> tuple[Tpu, list[int]]:
    """Steps of 1,000 us, the `extra` ones longer by so many us, each one execution of 600 us that
    starts with the step; their starts."""
    starts = [PERIOD * at + sum(v for k, v in extra.items() if k < at) for at in range(STEPS)]
    tpu = space.tpu(0)
    for at, start in enumerate(starts):
        tpu.module("jit_train(7)", start, 600, run_id=at)
        tpu.op("fusion.1", start, 600, category="loop fusion", program_id=7)
    return tpu, starts


def causes(space: Space) -> dict[int, Cause]:
    return dict(space.analyse().slow_steps)


def stalled(
    extra: dict[int, int], *, shift: int | None = None, thread: str = "python"
) -> tuple[Space, Host, list[int]]:
    """Steps with markers and launches (on `thread`), and the starts of their work: 600 us each,
    then idle until the next step, 400 us or, for the `extra` ones, so many us longer. `shift`: of
    the device clock, if there is one."""
    space = Space()
    starts = [PERIOD * at + sum(v for k, v in extra.items() if k < at) for at in range(1, STEPS)]
    tpu, host = space.tpu(0, device_clock_shift=shift), space.host()
    for at, start in enumerate(starts, 1):
        tpu.module("jit_train(7)", start, 600, run_id=at)
        tpu.op("fusion.1", start, 200, category="loop fusion", program_id=7)
        tpu.op("dot.4", start + 350, 250, category="convolution", program_id=7)
        host.marker(at, start - 30, 100)
        host.call("Execute", start - 20, 5, run_id=at, line=thread)
    return space, host, [0, *starts]


def test_steps_alike_have_no_outliers():
    space = Space()
    regular(space, extra={})
    assert causes(space) == {}


def test_a_gap_with_nothing_known_of_the_host():
    """Step 9 takes 500 us more, idle before the next step's fusion.1."""
    space = Space()
    regular(space, extra={9: 500})
    assert causes(space) == {9: Cause("gap", "", "fusion.1", 500 * US, 0)}


@pytest.mark.parametrize("shift", [None, 0, 70_000, -900])
def test_a_host_event_that_covers_half_of_the_gap(shift):
    """The gap of step 9 is 600 to 1,470 us after the start of its work: then the next marker
    starts, with its step. Each of the two edges counts."""
    for begin, length, kind in (
        (600, 435, "host_event"),
        (600, 434, "gap"),
        (0, 1_035, "host_event"),
        (0, 1_034, "gap"),
        (1_035, 435, "host_event"),
        (1_036, 464, "gap"),
    ):
        space, host, starts = stalled({9: 500}, shift=shift)
        host.call("save", starts[9] + begin, length)
        assert causes(space)[8].kind == kind, (begin, length)


def test_the_outermost_of_nested_host_events_is_named():
    space, host, starts = stalled({9: 500})
    host.call("save_checkpoint", starts[9] + 700, 435)
    host.call("write", starts[9] + 710, 400)
    assert causes(space)[8] == Cause("host_event", "save_checkpoint", "fusion.1", 500 * US, 0)


def test_events_of_one_name_add_up():
    space, host, starts = stalled({9: 500})
    for part in range(5):
        host.call("read", starts[9] + 650 + 100 * part, 95)
    assert causes(space)[8] == Cause("host_event", "read", "fusion.1", 500 * US, 0)


@pytest.mark.parametrize("shift", [None, 0, 70_000, -900])
def test_an_event_that_holds_the_whole_step_says_nothing(shift):
    """A Python tracer writes `main` around everything; host events are on the event clock."""
    space, host, starts = stalled({9: 500}, shift=shift)
    host.call("$train.py:1 main", 0, 40_000)
    assert causes(space)[8].kind == "gap"
    host.call("$train.py:9 save", starts[9] + 620, 800)
    assert causes(space) == {8: Cause("host_event", "$train.py:9 save", "fusion.1", 500 * US, 0)}


@pytest.mark.parametrize(
    ("late", "early", "kind"), [(0, 0, "gap"), (1, 0, "host_event"), (0, 1, "host_event")]
)
def test_an_event_as_long_as_the_period_holds_the_whole_step(late, early, kind):
    """The period of step 9 is that of its marker, from 30 us before its work to 1,470 after; the
    event begins `late` or ends `early`."""
    space, host, starts = stalled({9: 500})
    host.call("epoch", starts[9] - 30 + late, 1_500 - late - early)
    assert causes(space)[8].kind == kind


def test_threads_that_launch_nothing_are_not_looked_at():
    space, host, starts = stalled({9: 500})
    host.call("prefetch", starts[9] + 600, 900, line="pool/7")
    assert causes(space)[8].kind == "gap"


def test_the_thread_of_the_step_markers_is_looked_at_and_no_other():
    """As the account of the host's idle time does it: one that launches is another one."""
    space, host, starts = stalled({9: 500}, thread="main/1")
    host.call("save", starts[9] + 650, 500, line="python")
    host.call("await", starts[9] + 650, 600, line="main/1")
    host.call("backend_compile", starts[9] + 660, 450, line="main/1")
    assert causes(space)[8] == Cause("host_event", "save", "fusion.1", 500 * US, 0)


def test_a_python_frame_is_named_only_where_no_event_is():
    space, host, starts = stalled({9: 500})
    host.call("$loop.py:7 body", starts[9] + 610, 850)
    assert causes(space)[8] == Cause("host_event", "$loop.py:7 body", "fusion.1", 500 * US, 0)
    host.call("save", starts[9] + 650, 500)
    assert causes(space)[8] == Cause("host_event", "save", "fusion.1", 500 * US, 0)


def test_compiling_counts_with_tracing_and_lowering():
    """From the start of the call: 440 of 870 us, of which XLA compiles for 50."""
    space, host, starts = stalled({9: 500})
    host.call("PjitFunction(train_step)", starts[9] + 700, 600)
    host.call("backend_compile", starts[9] + 1_090, 50)
    found = causes(space)[8]
    assert (found.kind, found.name) == ("compile", "PjitFunction(train_step)")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("backend_compile_and_load", "compile"),
        ("XlaCompile", "compile"),
        ("PjRtClient::CompileAndLoad", "compile"),
        ("load_precompiled_batch", "host_event"),
    ],
)
def test_compiling_is_named_by_the_call_that_compiles(name, kind):
    space, host, starts = stalled({9: 500})
    host.call("PjitFunction(train_step)", starts[9] + 610, 880)
    host.call(name, starts[9] + 700, 500)
    assert causes(space)[8] == Cause(kind, "PjitFunction(train_step)", "fusion.1", 500 * US, 0)


@pytest.mark.parametrize(("length", "kind"), [(435, "compile"), (434, "host_event")])
def test_compiling_that_covers_half_of_the_gap_is_the_cause(length, kind):
    """Of 870 us; in two parts, of which one lies inside another compile."""
    space, host, starts = stalled({9: 500})
    host.call("evaluate", starts[9] + 610, 800)
    host.call("backend_compile", starts[9] + 700, 100)
    host.call("backend_compile", starts[9] + 900, length - 100)
    host.call("XlaCompile", starts[9] + 910, 100)
    assert causes(space)[8] == Cause(kind, "evaluate", "fusion.1", 500 * US, 0)


def test_of_two_host_events_the_one_that_covers_more_is_named():
    """Of `copy` what lies in the gap counts, and of `save` what is behind `copy`."""
    space, host, starts = stalled({9: 500})
    host.call("copy", starts[9] + 400, 636)
    host.call("save", starts[9] + 900, 570)
    assert causes(space)[8].name == "copy"
    space, host, starts = stalled({9: 500})
    host.call("copy", starts[9] + 400, 634)
    host.call("save", starts[9] + 900, 700)
    assert causes(space)[8].name == "save"


def test_a_short_compile_is_not_the_cause():
    space, host, starts = stalled({9: 500})
    host.call("evaluate", starts[9] + 610, 880)
    host.call("backend_compile", starts[9] + 700, 100)
    assert causes(space)[8] == Cause("host_event", "evaluate", "fusion.1", 500 * US, 0)


def test_where_clocks_conflict_no_host_event_is_named():
    """An execution of another program starts 1 us before its launch."""
    space, host, starts = stalled({9: 500})
    host.call("save_checkpoint", starts[9] + 700, 700)
    assert causes(space)[8].kind == "host_event"
    space.planes[0].event("XLA Modules", "jit_other(9)", 100, 10, run_id=77)
    host.call("Execute", 101, 5, run_id=77)
    assert causes(space)[8] == Cause("gap", "", "fusion.1", 500 * US, 0)


def test_where_no_gap_grew_against_the_mean_none_is_named():
    """Kept are steps that idle 100, 100, 100, 800 and 800 us of 1,000 (the median is 100, the mean
    380), and one that idles 350 us of 1,250."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for step, (busy, idle) in enumerate(
        [(900, 100)] * 4 + [(200, 800)] * 2 + [(900, 350), (900, 100)]
    ):
        tpu.step(step, at, busy + idle - 1)
        tpu.op("fusion.1", at, busy // 2).op("dot.4", at + busy // 2, busy - busy // 2)
        at += busy + idle
    assert causes(space) == {6: Cause("gap", "", "", 250 * US, 0)}


def test_the_gap_that_every_step_has_is_not_the_cause():
    """Every step idles 400 us at its end; step 9 also 300 us before dot.4."""
    space = Space()
    tpu = space.tpu(0)
    for at in range(STEPS):
        start = PERIOD * at + (300 if at > 9 else 0)
        late = 300 if at == 9 else 0
        tpu.module("jit_train(7)", start, 600 + late, run_id=at)
        tpu.op("fusion.1", start, 200, category="loop fusion", program_id=7)
        tpu.op("dot.4", start + 200 + late, 400, category="convolution", program_id=7)
    assert causes(space) == {9: Cause("gap", "", "dot.4", 300 * US, 0)}


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("fusion.1", "compute"),
        ("all-reduce.2", "communication"),
        ("copy-done.3", "transfer"),
        ("dot.4", "recompute"),
    ],
)
def test_the_op_that_grew(op, kind):
    """One op of step 9 takes 400 us more."""
    space = Space()
    tpu = space.tpu(0)
    lengths = {"fusion.1": 200, "all-reduce.2": 100, "copy-done.3": 50, "dot.4": 250}
    categories = {"fusion.1": "loop fusion", "all-reduce.2": "all-reduce",
                  "copy-done.3": "copy-done", "dot.4": "convolution"}  # fmt: skip
    for step in range(STEPS):
        start = PERIOD * step + (400 if step > 9 else 0)
        tpu.module("jit_train(7)", start, 1_000, run_id=step)
        at = start
        for name, length in lengths.items():
            length += 400 if (name, step) == (op, 9) else 0
            again = "jit(train)/transpose(jvp(mlp))/rematted_computation/dot:"
            tpu.op(name, at, length, category=categories[name], program_id=7,
                   scope=again if name == "dot.4" else "")  # fmt: skip
            at += length
    waited = 400 * US if kind == "communication" else 0
    assert causes(space) == {9: Cause(kind, op, "", 400 * US, waited)}


def test_time_that_nothing_is_known_of_may_be_the_cause():
    """Graphs, each one event: that of step 9 takes 300 us more."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(STEPS):
        start = PERIOD * step + (300 if step > 9 else 0)
        host.marker(step, start, 50)
        host.call("cuGraphLaunch", start + 10, 5, correlation_id=step)
        length = 700 if step == 9 else 400
        gpu.kernel("CudaGraphExec", start + 100, length, correlation=step)
    assert causes(space) == {9: Cause("unattributed", "CudaGraphExec", "", 300 * US, 0)}


def test_an_op_that_always_takes_long_is_not_the_one_that_grew():
    """In step 9 add.2 takes 300 us more and dot.4, which takes 500 in all, 100 more. The last
    step, of which no period is known, is no measure."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(STEPS):
        start = PERIOD * step + (400 if step > 9 else 0)
        add = {9: 310, STEPS - 1: 6_000}.get(step, 10)
        dot = 600 if step == 9 else 500
        tpu.module("jit_train(7)", start, add + dot, run_id=step)
        tpu.op("add.2", start, add, category="loop fusion")
        tpu.op("dot.4", start + add, dot, category="convolution")
    assert causes(space) == {9: Cause("compute", "add.2", "", 400 * US, 0)}


def test_without_warm_up_the_first_step_is_a_measure_too():
    """Of steps 0 to 4 and 6, which take 1,000 us, dot.4 always has 880 and add.2 10; in step 5
    add.2 has 110 more."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(7):
        at = PERIOD * step + (110 if step > 5 else 0)
        tpu.module("jit_train(7)", at, 1_000, run_id=step)
        tpu.op("dot.4", at, 880, category="convolution")
        tpu.op("add.2", at + 880, 120 if step == 5 else 10, category="loop fusion")
    found = space.analyse(warmup_steps=0).slow_steps
    assert found == {5: Cause("compute", "add.2", "", 110 * US, 0)}


def test_only_ops_of_the_term_that_grew_are_its_cause():
    """In step 9 two kernels take 200 us more each, and a collective hidden by both 400."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(STEPS):
        start = PERIOD * step + (400 if step > 9 else 0)
        more = 200 if step == 9 else 0
        host.marker(step, start, 50)
        names = ("gemm", "ncclDevKernel_AllReduce_Sum", "softmax")
        begins = (100, 150, 300 + more)
        lengths = (200 + more, 200 + 2 * more, 200 + more)
        for at, (name, begin, length) in enumerate(zip(names, begins, lengths, strict=True)):
            ids = {"correlation_id": 3 * step + at}
            host.call("cuLaunchKernel", start + at, 1, **ids)
            stream = "Stream #20(Kernel)" if at == 1 else "Stream #16(Kernel)"
            gpu.kernel(name, start + begin, length, stream=stream, **ids)
    assert causes(space) == {9: Cause("compute", "gemm", "", 400 * US, 0)}


def test_the_measure_is_the_median_of_all_other_kept_steps():
    """Kept are the steps 1 to 4 of 1,000 us, the last of 1,500: busy for 100, 100, 200 and 700."""
    space = Space()
    tpu = space.tpu(0)
    for step, busy in enumerate((500, 100, 100, 200, 700, 100)):
        tpu.step(step, PERIOD * step + (500 if step == 5 else 0), 990)
        tpu.op("dot.4", PERIOD * step + (500 if step == 5 else 0), busy, category="convolution")
    assert causes(space) == {4: Cause("compute", "dot.4", "", 600 * US, 0)}


def test_a_program_that_other_steps_do_not_run():
    """After step 9 two evals of 200 us, 50 us apart: a row of 450 us."""
    space = Space()
    tpu, starts = regular(space, extra={9: 500})
    for at in (starts[9] + 700, starts[9] + 950):
        tpu.module("jit_eval(8)", at, 200).op("fusion.1", at, 200, program_id=8)
    assert causes(space) == {9: Cause("program", "jit_eval", "", 450 * US, 0)}


def test_rows_of_programs_that_other_steps_do_not_run_add_up():
    """Every step logs; step 9 also evaluates for 100 us before it, and then evaluates and saves for
    160 us together."""
    space = Space()
    tpu, starts = regular(space, extra={9: 500})
    own = [("jit_eval", 8, 650, 100), ("jit_eval", 8, 800, 100), ("jit_save", 9, 920, 40)]
    for step, start in enumerate(starts):
        for name, program, at, length in [("jit_log", 10, 760, 20), *(own if step == 9 else [])]:
            tpu.module(f"{name}({program})", start + at, length)
            tpu.op("fusion.1", start + at, length, program_id=program)
    assert causes(space) == {9: Cause("program", "jit_eval", "", 260 * US, 0)}


def late_device(space: Space, *, is_late: bool) -> None:
    """A device that idles 500 us before dot.4 of step 9, or waits for another one that does."""
    tpu = space.tpu(len(space.planes))
    for step in range(STEPS):
        start = PERIOD * step + (500 if step > 9 else 0)
        late = 500 if step == 9 else 0
        idle, wait = (late, 0) if is_late else (0, late)
        tpu.step(step, start, PERIOD + late - 1)
        tpu.op("fusion.1", start, 100, category="loop fusion")
        tpu.op("dot.4", start + 100 + idle, 200, category="convolution")
        tpu.op("all-reduce.2", start + idle + 300, 200 + wait, category="all-reduce")


@pytest.mark.parametrize("late", range(4))
def test_the_witness_is_the_device_that_the_others_waited_for(late):
    space = Space()
    for ordinal in range(4):
        late_device(space, is_late=ordinal == late)
    assert causes(space) == {9: Cause("gap", "", "dot.4", 500 * US, 0)}


def test_two_hosts_name_the_one_that_waited_least():
    """Host b idles 500 us in step 9, host a waits for it in its all-reduce."""
    spaces = Space(), Space()
    for is_late, space in enumerate(spaces):
        late_device(space, is_late=bool(is_late))
    parts = [space.analyse() for space in spaces]
    assert [part.slow_steps[9].kind for part in parts] == ["communication", "gap"]
    summary = summary_of(*parts)
    assert summary.step_time.outliers == [
        StepOutlier(
            index=9, step_num=9, period=1500.0, excess=500.0, cause="gap", before_op="dot.4",
            cause_duration=500.0,
        )
    ]  # fmt: skip


def test_a_program_that_half_of_the_other_steps_run_is_theirs_too():
    """18 other steps, of which `runs` run jit_log for 100 us; in step 10 it takes 300 more.
    Without warm-up the first step is another one."""
    for warmup, runs, kind in (
        (1, 8, "program"),
        (1, 9, "compute"),
        (0, 9, "program"),
        (0, 10, "compute"),
    ):
        space = Space()
        tpu = space.tpu(0)
        others = [step for step in range(warmup, STEPS) if step != 10]
        for step in range(STEPS + 1):
            start = PERIOD * step + (300 if step > 10 else 0)
            tpu.module("jit_train(7)", start, 500, run_id=step).op("dot.4", start, 500)
            length = 400 if step == 10 else 100
            if step in others[:runs] or step == 10:
                tpu.module("jit_log(8)", start + 500, length, run_id=100 + step)
                tpu.op("add.1", start + 500, length)
        assert space.analyse(warmup_steps=warmup).slow_steps[10].kind == kind, (warmup, runs)


def test_slow_steps_are_no_measure_for_the_programs_of_others():
    """Seven of 18 steps run jit_eval for 300 us more."""
    slow = (2, 3, 6, 9, 12, 15, 17)
    space = Space()
    tpu, starts = regular(space, extra=dict.fromkeys(slow, 300))
    for step in slow:
        tpu.module("jit_eval(8)", starts[step] + 600, 300).op("add.1", starts[step] + 600, 300)
    wanted = Cause("program", "jit_eval", "", 300 * US, 0)
    assert causes(space) == dict.fromkeys(slow, wanted)


def test_the_gap_that_grew_is_looked_into_not_the_longest():
    """Every step idles 500 us before dot.4; step 9 at its end 300 more than the 100 of all."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    for step in range(STEPS):
        start = PERIOD * step + 100 + (300 if step > 9 else 0)
        tpu.module("jit_train(7)", start, 900, run_id=step)
        tpu.op("fusion.1", start, 200, category="loop fusion")
        tpu.op("dot.4", start + 700, 200, category="convolution")
        host.call("Execute", start - 20, 5, run_id=step)
        if step == 9:
            host.call("save_checkpoint", start + 905, 350)
    assert causes(space) == {9: Cause("host_event", "save_checkpoint", "fusion.1", 300 * US, 0)}


def test_of_too_many_outliers_the_longest_are_looked_into(monkeypatch):
    monkeypatch.setattr("marin_profile.analysis.steps.outliers.MOST_EXPLAINED", 2)
    space = Space()
    regular(space, extra={5: 600, 8: 500, 12: 300, 15: 400})
    assert sorted(causes(space)) == [5, 8]
    summary = summary_of(space.analyse())
    assert [(one.index, one.cause) for one in summary.step_time.outliers] == [
        (5, "gap"), (8, "gap"), (12, None), (15, None),
    ]  # fmt: skip
    rest = summary.step_time.outlier_causes[1]
    assert (rest.cause, rest.count, rest.total_excess) == (None, 2, 700.0)


def test_gpu_programs_are_known_by_the_kernels_own_module():
    """Step markers and launches by correlation id; step 9 runs jit_eval for 300 us too."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(STEPS):
        start = PERIOD * step + (300 if step > 9 else 0)
        host.marker(step, start, 50)
        host.call("cuLaunchKernel", start + 10, 5, correlation_id=step)
        gpu.kernel("gemm", start + 100, 400, correlation=step, module="jit_train", hlo_op="dot.1")
    late = PERIOD * 9 + 600
    host.call("cuLaunchKernel", late - 10, 5, correlation_id=100)
    gpu.kernel("gemm", late, 300, correlation=100, module="jit_eval", hlo_op="dot.1")
    assert causes(space) == {9: Cause("program", "jit_eval", "", 300 * US, 0)}


def test_ops_of_no_execution_are_no_other_program():
    """In step 9 runs an op of 300 us outside the executions; jit_other runs in step 4 alone."""
    space = Space()
    tpu, starts = regular(space, extra={9: 300})
    tpu.module("jit_z(8)", starts[4] + 700, 10).op("add.1", starts[4] + 700, 10)
    tpu.op("copy.1", starts[9] + 650, 300)
    assert causes(space) == {9: Cause("compute", "copy.1", "", 300 * US, 0)}


def kernels(*extra: tuple[str, int]) -> Space:
    """Steps of one kernel that names no program; step 9 runs those of `extra` too, in turn, 150 us
    each, with their programs and ids."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    more = 150 * len(extra)
    for step in range(STEPS):
        start = PERIOD * step + (more if step > 9 else 0)
        host.marker(step, start, 50)
        host.call("cuLaunchKernel", start + 10, 5, correlation_id=step)
        gpu.kernel("gemm", start + 100, 400, correlation=step)
    for place, (module, program_id) in enumerate(extra):
        gpu.kernel("softmax", PERIOD * 9 + 600 + 150 * place, 150, module=module,
                   program_id=program_id, hlo_op="add.1")  # fmt: skip
    return space


def test_of_two_other_programs_that_take_as_long_the_first_by_name_is_named():
    for order in ((0, 1), (1, 0)):
        extra = [("jit_a", 9), ("jit_b", 2)]
        found = causes(kernels(*(extra[at] for at in order)))
        assert found == {9: Cause("program", "jit_a", "", 300 * US, 0)}


def test_the_only_program_that_is_named_is_no_other_one():
    """What the other kernels belong to is not known."""
    assert causes(kernels(("jit_a", 1)))[9].kind == "compute"


@pytest.mark.parametrize("with_b", [range(STEPS), [4]])
def test_kernels_of_no_known_program_are_no_other_program(with_b):
    """In step 9 runs a kernel of 300 us that names no module; jit_a runs in every step, and jit_b,
    or jit_b in step 4 alone."""
    space = Space()
    host, gpu = space.host(), space.gpu(0)
    for step in range(STEPS):
        start = PERIOD * step + (300 if step > 9 else 0)
        host.marker(step, start, 50)
        for at, module in ((100, "jit_a"), (300, "jit_b"))[: 2 if step in with_b else 1]:
            ids = {"correlation_id": 2 * step + at // 300}
            host.call("cuLaunchKernel", start + at // 10, 5, **ids)
            gpu.kernel("gemm", start + at, 200, module=module, hlo_op="dot.1", **ids)
    gpu.kernel("magma", PERIOD * 9 + 600, 300)
    assert causes(space) == {9: Cause("compute", "magma", "", 300 * US, 0)}


def test_events_in_any_order_give_the_same_causes():
    space, host, starts = stalled({5: 400, 9: 500})
    host.call("save_checkpoint", starts[9] + 700, 700)
    host.call("backend_compile", starts[5] + 700, 600)
    wanted = summary_of(space.analyse())
    assert [one.cause for one in wanted.step_time.outliers] == ["compile", "host_event"]
    for seed in (1, 2):
        part = analyse_host(read_bytes(space.encode(seed)), "", warmup_steps=1)
        assert summary_of(part).step_time == wanted.step_time
