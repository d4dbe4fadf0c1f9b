"""Steps of several hosts."""

import pytest

from builders_xspace import US, Space, summarize_spaces, summary_of
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.steps.merge import MergedSteps, merge_steps, shared_steps
from marin_profile.analysis.steps.series import LongOp, SharedSteps


def host_space(
    numbers: range | None, durations: tuple[int, ...], *, period: int = 100, origin: int = 0
) -> Space:
    """One TPU per duration; steps by the Steps line, or by module where numbers is None."""
    space = Space()
    for ordinal, duration in enumerate(durations):
        tpu = space.tpu(ordinal)
        for index, number in enumerate(numbers or range(3)):
            at = origin + index * period
            if numbers is not None:
                tpu.step(number, at, period - 1)
            tpu.module("jit_f(1)", at, duration).op("fusion.1", at, duration)
    return space


def test_one_host_by_hand():
    """Steps at 0, 100 and 200 ms, each 80 ms long: duration 80, period 100."""
    merged = merge_steps([host_space(range(3), (80,)).analyse()])
    assert [step.duration for step in merged.steps] == [80 * US] * 3
    assert [step.period for step in merged.steps] == [100 * US, 100 * US, None]
    assert [step.critical_path for step in merged.steps] == [80 * US] * 3
    assert [step.start for step in merged.steps] == [0, 100 * US, 200 * US]
    assert [step.kept for step in merged.steps] == [False, True, True]
    assert (merged.source, merged.warmup_ignored, merged.linked) == ("device_steps", 1, True)
    assert (merged.annotation, merged.notes) == (None, ())
    assert (merged.without_work, merged.long_op) == (0, None)


def test_times_count_from_the_first_op():
    """The host begins 30 us before the device; steps 1 and 2 begin 5 us before their first op,
    where their markers do."""
    space = Space()
    host, tpu = space.host(), space.tpu(0)
    for step in range(3):
        at = 30 + 100 * step
        host.marker(step, at - 5, 20)
        host.call("Execute", at - 4, 1, run_id=step)
        tpu.module("jit_f(1)", at, 70, run_id=step).op("fusion.1", at, 70)
    host.call("start", 0, 5)
    merged = merge_steps([space.analyse()])
    assert [step.start for step in merged.steps] == [0, 100 * US, 200 * US]
    assert [step.boundary for step in merged.steps] == [-5 * US, 95 * US, 195 * US]


@pytest.mark.parametrize("at_once", [1, 10, 10_000])
def test_the_median_over_all_devices_and_the_longest_path(at_once, monkeypatch):
    monkeypatch.setattr("marin_profile.analysis.steps.merge._AT_ONCE", at_once)
    parts = [
        host_space(range(3), (60, 70)).analyse(),
        host_space(range(3), (80, 90, 95), origin=5_000).analyse(),
    ]
    merged = merge_steps(parts)
    assert [step.duration for step in merged.steps] == [80 * US] * 3
    assert [step.critical_path for step in merged.steps] == [95 * US] * 3
    assert [step.terms["compute"] for step in merged.steps] == [(60 + 70 + 80 + 90 + 95) * US] * 3


def test_an_even_number_of_devices_may_give_half_a_picosecond():
    merged = merge_steps([host_space(range(2), (60, 61)).analyse()])
    assert merged.steps[0].duration == 60.5 * US


def test_hosts_meet_by_step_number():
    parts = [host_space(range(5, 9), (80,)).analyse(), host_space(range(6, 10), (90,)).analyse()]
    merged = merge_steps(parts)
    assert [step.number for step in merged.steps] == [6, 7, 8]
    assert [step.duration for step in merged.steps] == [85 * US] * 3
    assert any("Hosts have different steps" in note for note in merged.notes)


def test_hosts_without_numbers_meet_by_position():
    parts = [host_space(None, (80,)).analyse(), host_space(None, (90,)).analyse()]
    merged = merge_steps(parts)
    assert merged.source == "module"
    assert [step.number for step in merged.steps] == [None] * 3
    assert [step.duration for step in merged.steps] == [85 * US] * 3


def test_the_order_of_hosts_does_not_change_the_numbers():
    a, b = host_space(range(5, 9), (80,)).analyse(), host_space(range(6, 10), (90,)).analyse()
    one, other = merge_steps([a, b]), merge_steps([b, a])
    assert [s.duration for s in one.steps] == [s.duration for s in other.steps]
    assert [s.number for s in one.steps] == [s.number for s in other.steps]
    assert [s.period for s in one.steps] == [s.period for s in other.steps]


def marked(lengths: dict[int, int]) -> Space:
    """Steps of these numbers in this order, 100 us apart, busy for so many us."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    for place, (number, length) in enumerate(lengths.items()):
        at = 100 + 100 * place
        tpu.module("jit_f(1)", at, length, run_id=place).op("fusion.1", at, length)
        host.marker(number, at - 20, 15)
        host.call("Execute", at - 15, 5, run_id=place)
    return space


@pytest.mark.parametrize("turned", [False, True])
def test_hosts_whose_steps_have_numbers_of_different_sources_meet_by_position(turned):
    """Steps 5, 6, 7 of the Steps line, and 6, 7, 8 of markers."""
    one = host_space(range(5, 8), (80,)).analyse()
    other = marked({6: 20, 7: 20, 8: 20}).analyse()
    merged = merge_steps([other, one] if turned else [one, other])
    assert [step.number for step in merged.steps] == ([6, 7, 8] if turned else [5, 6, 7])
    assert [step.duration for step in merged.steps] == [50 * US] * 3
    assert merged.notes[0] == (
        "Hosts name their steps in different ways: steps are matched by position."
    )


def test_hosts_whose_numbers_start_again_meet_by_position():
    """0, 1, 0 on one host, where markers of another thread stand in between, and 0, 1, 2."""
    again = Space()
    tpu, host = again.tpu(0), again.host()
    for place, number in enumerate((0, 1, 0)):
        at = 100 + 100 * place
        host.marker(number, at - 20, 15)
        host.call("Execute", at - 15, 5, run_id=place)
        tpu.module("jit_f(1)", at, 10, run_id=place).op("fusion.1", at, 10)
    merged = merge_steps([again.analyse(), marked({0: 20, 1: 20, 2: 20}).analyse()])
    assert [step.number for step in merged.steps] == [0, 1, 0]
    assert [step.duration for step in merged.steps] == [15 * US] * 3


def test_the_most_steps_without_work_and_the_longest_op_of_any_host():
    parts = []
    for idle, length in ((1, 500), (2, 700), (0, 300)):
        space = marked(dict.fromkeys(range(6), 60))
        host, tpu = space.planes[1], space.planes[0]
        for number in range(6, 6 + idle):
            host.event("python", "train", 80 + 100 * number, 15, step_num=number, _r=1)
        tpu.op(f"sort.{length}", 10_000, length)
        parts.append(space.analyse())
    merged = merge_steps(parts)
    assert merged.without_work == 2
    assert merged.long_op == LongOp("sort.700", "/device:TPU:0", 700 * US, 7)


@pytest.mark.parametrize("turned", [False, True])
def test_hosts_that_ran_the_steps_in_another_order_meet_by_number(turned):
    parts = [
        marked({1: 10, 2: 20, 3: 30, 4: 40}).analyse(host="a"),
        marked({1: 12, 3: 36, 2: 24, 4: 48}).analyse(host="b"),
    ]
    merged = merge_steps(parts[::-1] if turned else parts)
    assert [step.number for step in merged.steps] == ([1, 3, 2, 4] if turned else [1, 2, 3, 4])
    found = {step.number: step.duration for step in merged.steps}
    assert found == {1: 11 * US, 2: 22 * US, 3: 33 * US, 4: 44 * US}
    assert merged.notes == ()


def test_a_host_without_steps_has_no_say():
    other = Space()
    other.gpu(0).kernel("k", 0, 5)
    merged = merge_steps([other.analyse(), host_space(range(3), (80,)).analyse()])
    assert [step.duration for step in merged.steps] == [80 * US] * 3
    none = MergedSteps(
        source="none", annotation=None, linked=False, warmup_ignored=0, steps=(), notes=(),
        mean_period=None, whole_periods=0, without_work=0, long_op=None,
    )  # fmt: skip
    assert merge_steps([other.analyse()]) == none
    assert merge_steps([]) == none


def uneven(lengths: list[int], *, numbers: list[int] | None = None, devices: int = 1) -> Space:
    """Steps of these lengths one after the other, each busy for 10 us."""
    space = Space()
    for ordinal in range(devices):
        tpu = space.tpu(ordinal)
        at = 0
        for index, length in enumerate(lengths):
            number = numbers[index] if numbers else index
            tpu.step(number, at, length - 1).op("fusion.1", at, 10)
            at += length
    return space


def test_the_mean_is_over_whole_periods():
    """Kept are the steps from 1 on: 100, 100, 100, 180 us to the start of the last one."""
    merged = merge_steps([uneven([500, 100, 100, 100, 180, 900]).analyse()])
    assert (merged.mean_period, merged.whole_periods) == (120 * US, 4)


def test_a_mean_of_whole_picoseconds_may_be_none_itself():
    """Three periods of 100, 100 and 101 us."""
    merged = merge_steps([uneven([500, 100, 100, 101, 900]).analyse()])
    assert merged.mean_period == pytest.approx(301 * US / 3, abs=1e-3)


def test_steps_that_the_capture_lacks_count():
    """From 11 to 20 are nine periods, 100, 700 and 100 us."""
    space = uneven([100, 100, 700, 100, 100], numbers=[10, 11, 12, 19, 20])
    merged = merge_steps([space.analyse()])
    assert (merged.mean_period, merged.whole_periods) == (100 * US, 9)
    assert [step.period for step in merged.steps] == [100 * US, 100 * US, None, 100 * US, None]


def test_the_mean_is_the_median_of_the_devices_means():
    """Of the devices the last step begins 5 us later each: 100, 105 and 110 us."""
    space = Space()
    for ordinal in range(3):
        tpu = space.tpu(ordinal)
        for step in range(3):
            tpu.step(step, 100 * step, 99)
            tpu.op("fusion.1", 100 * step + (5 * ordinal if step == 2 else 0), 10)
    merged = merge_steps([space.analyse()])
    assert (merged.mean_period, merged.whole_periods) == (105 * US, 1)


def test_a_lone_step_has_no_mean_period():
    one = merge_steps([uneven([100]).analyse()])
    assert (one.mean_period, one.whole_periods) == (None, 0)
    last = merge_steps([uneven([100, 100]).analyse()])
    assert [step.kept for step in last.steps] == [False, True]
    assert (last.mean_period, last.whole_periods) == (None, 0)


def test_hosts_of_unlike_steps_share_a_mean():
    parts = [
        uneven([100, 100, 150, 100], numbers=[5, 6, 7, 8]).analyse(),
        uneven([100, 160, 100, 100], numbers=[6, 7, 8, 9]).analyse(),
    ]
    merged = merge_steps(parts)
    # Shared are 6 to 8; 7 and 8 are kept, one period of 150 and of 160 us.
    assert (merged.mean_period, merged.whole_periods) == (155 * US, 1)


# --- hosts that are not alike ------------------------------------------------------------------


def cut_at_the_end(host: str, is_cut: bool) -> Space:
    """Four steps of two ops, 100 ms apart; the last may lack its second op."""
    space = Space(host)
    tpu = space.tpu(0)
    for index in range(4):
        at = 100 * index
        tpu.module("jit_f(1)", at, 80).op("fusion.1", at, 30)
        if index < 3 or not is_cut:
            tpu.op("fusion.2", at + 40, 40)
    return space


@pytest.mark.parametrize("cut", [(True, False), (False, True), (True, True)])
def test_a_step_that_is_cut_on_one_host_is_cut_on_all(cut, tmp_path):
    """So that windows and per-step figures cover the same steps everywhere."""
    summary = summarize_spaces(tmp_path, *map(cut_at_the_end, ("host-0", "host-1"), cut))
    steps = summary.step_time.steps
    assert [step.cut for step in steps] == [False, False, False, True]
    assert [step.kept for step in steps] == [False, True, True, False]
    assert summary.step_time.all_steps.count == 3
    steady = [row for row in summary.device_ledger if row.window == "steady"]
    # From step 1 to the end of step 2 on both hosts.
    assert [(row.window_start, row.window_duration) for row in steady] == [(100, 180)] * 2
    # The last step's boundary ends the last whole period.
    assert [step.period for step in steps] == [100, 100, 100, None]


def process(
    began: int, begin: int, *, host: str = "vm-0", numbered: bool = False, steps: int = 3
) -> HostPart:
    """A process that begins to profile at `began`, and whose device works from `begin` on for 40 us
    of each 100."""
    space = Space(host).environment(10**18 + began * 1000, 10**18 + 10**6)
    space.host().call("start", 0, 5)
    tpu = space.tpu(0)
    for step in range(steps):
        at = begin - began + 100 * step
        if numbered:
            tpu.step(step, at, 90)
        tpu.module("jit_f(1)", at, 40).op("fusion.1", at, 40)
    return space.analyse(host=f"{host} {began} {begin}")


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize(
    ("early", "later", "path"), [(30, 50, 90), (180, -50, 90), (30, 99, 139), (30, 100, 40)]
)
def test_processes_of_one_clock_meet_less_than_a_period_apart(early, later, path, steps):
    """Steps without numbers. The second process begins to profile `early` us before the first one,
    and works `later` us after it."""
    merged = merge_steps([process(0, 0, steps=steps), process(-early, later, steps=steps)])
    assert [step.critical_path for step in merged.steps] == [path * US] * steps
    lacks = [note for note in merged.notes if "no clock that is known to be common" in note]
    assert len(lacks) == (path == 40)


def test_numbered_steps_of_processes_meet_however_far_apart_they_are():
    merged = merge_steps([process(0, 0, numbered=True), process(-30, 250, numbered=True)])
    assert [step.critical_path for step in merged.steps] == [290 * US] * 3


def test_of_three_processes_each_meets_the_first_that_it_can():
    """The second is on another machine, whatever the order."""
    parts = [process(0, 0), process(-30, 10, host="vm-1"), process(-30, 50)]
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        merged = merge_steps([parts[at] for at in order])
        assert [step.critical_path for step in merged.steps] == [90 * US] * 3
        assert not any("no clock" in note for note in merged.notes)


def test_the_path_of_one_process_is_on_the_device_clock():
    """Both begin at once on the event clock, the second one 2 us later by the devices' own."""
    space = Space()
    for ordinal in range(2):
        tpu = space.tpu(ordinal, device_clock_shift=1_000 + 2 * ordinal)
        for step in range(3):
            at = 100 * step
            tpu.module("jit_f(1)", at, 40).op("fusion.1", at, 40)
    merged = merge_steps([space.analyse()])
    assert [step.critical_path for step in merged.steps] == [42 * US] * 3


def test_a_lone_whole_step_before_a_cut_one_has_a_mean_period():
    """The first is warm-up, the last one lacks its second op."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(3):
        at = 100 * step
        tpu.module("jit_f(1)", at, 80).op("fusion.1", at, 30)
        if step < 2:
            tpu.op("fusion.2", at + 40, 40)
    merged = merge_steps([space.analyse()])
    assert [step.kept for step in merged.steps] == [False, True, False]
    assert (merged.mean_period, merged.whole_periods) == (100 * US, 1)


def test_the_steps_that_hosts_share():
    """None where a host has no others, with the same ones cut."""
    a = host_space(range(5, 9), (80,)).analyse(host="a")
    b = host_space(range(6, 10), (90,)).analyse(host="b")
    some = SharedSteps((1, 2, 3), (False,) * 3), SharedSteps((0, 1, 2), (False,) * 3)
    assert shared_steps([a, b]) == list(some)
    other = Space()
    other.gpu(0).kernel("k", 0, 5)
    assert shared_steps([a, other.analyse()]) == [None] * 2
    assert shared_steps([other.analyse()]) == [None]
    whole = cut_at_the_end("a", False).analyse(host="a")
    cut = cut_at_the_end("b", True).analyse(host="b")
    shared = SharedSteps((0, 1, 2, 3), (False, False, False, True))
    assert shared_steps([whole, cut]) == [shared, None]
    assert shared_steps([cut, whole]) == [None, shared]


def test_per_step_figures_take_the_fewest_periods_of_the_hosts():
    """Host A has steps 4, 5, 6, 8, 9: four periods from step 5 on, of which three are captured.
    Host B has five executions: three periods. Both ran the op three times in them."""
    a = Space()
    tpu = a.tpu(0)
    for number in (4, 5, 6, 8, 9):
        at = 100 * (number - 4)
        tpu.step(number, at, 90).module("jit_f(1)", at, 30).op("fusion.1", at, 30)
    b = Space()
    tpu = b.tpu(0)
    for index in range(5):
        tpu.module("jit_f(1)", 100 * index, 30).op("fusion.1", 100 * index, 30)
    parts = [a.analyse(), b.analyse()]
    assert [part.periods for part in parts] == [4, 3]
    for ordered in (parts, parts[::-1]):
        summary = summary_of(*ordered)
        (group,) = summary.op_groups
        assert group.per_step_duration == 30
        assert (summary.step_time.mean_period, summary.step_time.whole_periods) == (100, 3)
