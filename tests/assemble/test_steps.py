"""The step_time section: statistics by hand, typical and mean, outliers by cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_xspace import Space, summarize_spaces
from marin_profile.analysis.steps.merge import MergedStep
from marin_profile.assemble.steps import _places, duration_stats
from marin_profile.schema import OutlierCause, ProfileSummary, StepTime

US = 1_000_000


def test_statistics_by_hand():
    """1 to 10 and 100: the quantiles lie between the values, linearly."""
    found = duration_stats([value * US for value in (100.0, *range(1, 11))])
    assert (found.count, found.median, found.min, found.max) == (11, 6.0, 1.0, 100.0)
    assert found.mean == pytest.approx(155 / 11)
    # At 0.9 x 10 = 9 from the least stands 10, at 0.95 it would be 55.
    assert found.p90 == pytest.approx(10.0)
    found = duration_stats([value * US for value in range(1, 5)])
    assert (found.median, found.p90) == (2.5, pytest.approx(3.7))


def test_unknown_values_are_counted_only():
    found = duration_stats([3.0 * US, None, 1.0 * US])
    assert (found.count, found.mean, found.median) == (3, 2.0, 2.0)
    nothing = duration_stats([None, None])
    assert (nothing.count, nothing.mean, nothing.p90) == (2, None, None)


def summary_of_steps(
    tmp_path: Path, lengths: list[int], *, events: dict[int, str]
) -> ProfileSummary:
    """Steps of these lengths in us, numbered from 100 on, each busy for 3 ms; in the idle time of
    the steps in `events` (by place) stands a host event of this name."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    at = 1_000
    for place, length in enumerate(lengths):
        tpu.module("jit_train(7)", at, 3_000, run_id=place)
        tpu.op("fusion.1", at, 3_000, category="loop fusion", program_id=7)
        host.marker(100 + place, at - 200, 100)
        host.call("Execute", at - 150, 20, run_id=place)
        if place in events:
            host.call(events[place], at + 3_050, length - 3_100)
        at += length
    return summarize_spaces(tmp_path, space)


def steps_of(tmp_path: Path, lengths: list[int], *, events: dict[int, str]) -> StepTime:
    return summary_of_steps(tmp_path, lengths, events=events).step_time


def test_a_stall_in_every_twelfth_step(tmp_path):
    """60 whole periods of 4 ms, of which every 12th takes 8 ms more: the mean is 4 + 8 / 12."""
    places = range(62)
    stalls = {place: "save_checkpoint" for place in places if place % 12 == 6}
    lengths = [12_000 if place in stalls else 4_000 for place in places]
    found = steps_of(tmp_path, lengths, events=stalls)
    assert (found.source, found.annotation, found.linked) == ("annotation", "train", True)
    assert found.typical_period == found.period.median == 4_000.0
    assert found.mean_period == pytest.approx(4_000 + 8_000 / 12)
    assert found.whole_periods == 60
    assert [one.step_num for one in found.outliers] == [106, 118, 130, 142, 154]
    assert {(one.period, one.excess, one.cause_duration) for one in found.outliers} == {
        (12_000.0, 8_000.0, 8_000.0)
    }
    assert {(one.cause, one.cause_name, one.before_op) for one in found.outliers} == {
        ("host_event", "save_checkpoint", "fusion.1")
    }
    [cause] = found.outlier_causes
    assert cause.excess_per_period == pytest.approx(8_000 / 12)
    assert cause == OutlierCause(
        cause="host_event",
        cause_name="save_checkpoint",
        before_op="fusion.1",
        count=5,
        total_excess=40_000.0,
        excess_per_period=cause.excess_per_period,
        periodicity=12,
        steps=[106, 118, 130, 142, 154],
    )
    # Five of 60 are too few for a class of their own.
    assert found.classes == []


def test_causes_are_sorted_by_what_they_cost(tmp_path):
    events = {5: "evaluate", 9: "save", 13: "save", 16: "backend_compile"}
    lengths = [4_000] * 25
    for place, longer in {5: 5_000, 9: 2_000, 13: 2_000, 16: 1_000, 20: 3_000}.items():
        lengths[place] += longer
    found = steps_of(tmp_path, lengths, events=events)
    assert [
        (one.cause, one.cause_name, one.count, one.total_excess, one.steps, one.periodicity)
        for one in found.outlier_causes
    ] == [
        ("host_event", "evaluate", 1, 5_000.0, [105], None),
        ("host_event", "save", 2, 4_000.0, [109, 113], None),
        ("gap", None, 1, 3_000.0, [120], None),
        ("compile", "backend_compile", 1, 1_000.0, [116], None),
    ]
    # All of the difference is theirs.
    excess = sum(one.excess_per_period for one in found.outlier_causes)
    assert found.mean_period - found.typical_period == pytest.approx(excess)


def test_advice_gives_the_mean_and_the_cause(tmp_path):
    """60 whole periods: 5 stalls of 8 ms, 666.7 us each; mean 4,666.7, which is 14.3 % longer."""
    stalls = dict.fromkeys(range(6, 62, 12), "save_checkpoint")
    lengths = [12_000 if place in stalls else 4_000 for place in range(62)]
    summary = summary_of_steps(tmp_path, lengths, events=stalls)
    [found] = [one for one in summary.optimization_candidates if one.candidate_id == "uneven-steps"]
    assert found.evidence == [
        "step period: typical (median) 4000.0 us, mean 4666.7 us, p90 4000.0 us over 60 steps",
        "host event save_checkpoint before fusion.1: 5 steps, every 12 steps, "
        "666.7 us of the mean step",
    ]


def test_gaps_are_told_apart_by_the_op_after_them(tmp_path):
    """Step 5 waits 300 us more before dot.2, 7 and 9 before the next step's fusion.1. An event of
    one name is one cause, whatever op it delays: `save` in the steps 12 and 14."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    at = 1_000
    for place in range(20):
        inside = 300 if place in (5, 12) else 0
        behind = 300 if place in (7, 9, 14) else 0
        tpu.module("jit_f(1)", at, 120 + inside, run_id=place)
        tpu.op("fusion.1", at, 50).op("dot.2", at + 60 + inside, 60)
        host.marker(place, at - 10, 5)
        host.call("Execute", at - 9, 2, run_id=place)
        if place in (12, 14):
            host.call("save", at + (51 if inside else 121), 300)
        at += 200 + inside + behind
    found = summarize_spaces(tmp_path, space).step_time
    assert [(one.cause, one.before_op, one.steps) for one in found.outlier_causes] == [
        ("gap", "fusion.1", [7, 9]),
        ("host_event", None, [12, 14]),
        ("gap", "dot.2", [5]),
    ]


@pytest.mark.parametrize(("steps", "expected"), [(20, 4), (19, None)])
def test_periodicity_is_among_the_kept_steps_whose_period_is_known(tmp_path, steps, expected):
    """Four slow steps, each the fourth: by chance in 30 of 3,060 ways among 18 places, in 26 of
    2,380 among 17."""
    lengths = [4_000 + (3_000 if place in (3, 7, 11, 15) else 0) for place in range(steps)]
    [cause] = steps_of(tmp_path, lengths, events={}).outlier_causes
    assert cause.periodicity == expected


def test_warm_up_is_no_outlier(tmp_path):
    found = steps_of(tmp_path, [90_000, *[4_000] * 12], events={})
    assert found.outliers == found.outlier_causes == []
    assert found.mean_period == found.typical_period == 4_000.0


def test_steps_without_numbers_are_named_by_place(tmp_path):
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for place in range(20):
        tpu.module("jit_f(1)", at, 50).op("fusion.1", at, 50)
        at += 300 if place == 7 else 100
    found = summarize_spaces(tmp_path, space).step_time
    assert [(one.index, one.step_num) for one in found.outliers] == [(7, None)]
    assert found.outlier_causes[0].steps == [7]


@pytest.mark.parametrize("stride", [1, 2])
def test_periodicity_is_counted_in_steps(tmp_path, stride):
    """Numbers 2 apart count every other micro-step: the 6th step stays the 6th."""
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for place in range(60):
        length = 300 if place % 6 == 3 else 100
        tpu.step(stride * place, at, length - 1).op("fusion.1", at, 50)
        at += length
    found = summarize_spaces(tmp_path, space).step_time
    assert found.outlier_causes[0].periodicity == 6
    assert found.outlier_causes[0].steps[:2] == [3 * stride, 9 * stride]
    assert found.classes[1].periodicity == 6


def test_cut_steps_are_in_no_statistic(tmp_path):
    """Executions of three ops, one after the other, the first without its first and the last
    without its last op. Between are 1 (warm-up) to 10; step 10 takes 400 us until the boundary of
    the last one, the others 100."""
    space = Space()
    tpu = space.tpu(0)
    ops = (("fusion.1", 0), ("dot.2", 20), ("add.3", 40))
    at = 0
    for place in range(12):
        kept = {0: ops[1:], 11: ops[:2]}.get(place, ops)
        tpu.module("jit_f(1)", at + kept[0][1], kept[-1][1] + 10 - kept[0][1], run_id=place)
        for name, offset in kept:
            tpu.op(name, at + offset, 10, category="loop fusion", program_id=1)
        at += {0: 5_000, 1: 3_000, 10: 400}.get(place, 100)
    found = summarize_spaces(tmp_path, space).step_time
    assert [step.index for step in found.steps if step.cut] == [0, 11]
    assert (found.all_steps.count, found.steady_state_steps.count) == (10, 9)
    assert found.steady_state_steps.min == found.steady_state_steps.max == 50.0
    assert (found.period.count, found.typical_period, found.period.max) == (9, 100.0, 400.0)
    assert (found.mean_period, found.whole_periods) == (pytest.approx(1_200 / 9), 9)
    assert [(one.index, one.excess) for one in found.outliers] == [(10, 300.0)]


def counted(tmp_path: Path, numbers: list[int]) -> StepTime:
    """Steps of these numbers, those that 6 divides 300 us long, the others 100; busy for 50."""
    space = Space()
    tpu, host = space.tpu(0), space.host()
    at = 1_000
    for place, number in enumerate(numbers):
        tpu.module("jit_f(1)", at, 50, run_id=place).op("fusion.1", at, 50)
        host.marker(number, at - 20, 15)
        host.call("Execute", at - 15, 5, run_id=place)
        at += 300 if number % 6 == 0 else 100
    return summarize_spaces(tmp_path, space).step_time


def test_steps_that_the_capture_lacks_count_for_the_period(tmp_path):
    """Seven of 0 to 59 are missing: by place the outliers are 4, 6, 5, 6, 4, ... steps apart."""
    numbers = [number for number in range(60) if number not in (8, 9, 20, 32, 33, 45, 57)]
    [cause] = counted(tmp_path, numbers).outlier_causes
    assert (cause.periodicity, cause.steps) == (6, [6, 12, 18, 24, 30, 36, 42, 48, 54])


def test_numbers_that_start_again_are_no_places(tmp_path):
    """Twice 0 to 23: the outliers come back every 6th step, also from one round to the next."""
    found = counted(tmp_path, [*range(24), *range(24)])
    assert found.outlier_causes[0].steps == [6, 12, 18, 0, 6, 12, 18]
    assert found.outlier_causes[0].periodicity == 6


@pytest.mark.parametrize("is_numbered", [True, False])
def test_the_middle_step_stands_for_its_class(tmp_path, is_numbered):
    """Six light steps of 100 to 105 us in turn, five heavy ones of 300 to 304: of the first the
    third shortest, of the second the middle one."""
    lengths = [100, 103, 300, 101, 302, 105, 301, 102, 304, 104, 303, 100, 100]
    space = Space()
    tpu = space.tpu(0)
    at = 0
    for place, length in enumerate(lengths):
        if is_numbered:
            tpu.step(40 + place, at, length - 1)
        tpu.module("jit_f(1)", at, length - 50).op("fusion.1", at, length - 50)
        at += length
    light, heavy = summarize_spaces(tmp_path, space).step_time.classes
    first = 40 if is_numbered else 0
    # Kept with a period are the places 1 to 11: light 103, 101, 105, 102, 104, 100.
    assert (light.representative_step, light.representative_duration) == (first + 7, 52.0)
    assert (heavy.representative_step, heavy.representative_duration) == (first + 4, 252.0)


def test_no_steps(tmp_path):
    space = Space()
    space.gpu(0).kernel("k", 0, 5)
    found = summarize_spaces(tmp_path, space).step_time
    assert (found.typical_period, found.mean_period, found.whole_periods) == (None, None, None)
    assert (found.source, found.linked) == ("none", None)


def test_one_kept_step(tmp_path):
    found = steps_of(tmp_path, [4_000, 5_000], events={})
    assert (found.typical_period, found.mean_period, found.whole_periods) == (None, None, 0)
    assert found.steady_state_steps.median == 3_000.0


@pytest.mark.parametrize(
    ("numbers", "places"),
    [
        ([4, 5, 6], [4, 5, 6]),
        ([4, 5, 8], [4, 5, 8]),
        ([4, 6, 8], [0, 1, 2]),
        ([4, 4, 5], [0, 1, 2]),
        ([5, 6, 4], [0, 1, 2]),
        ([None, None, None], [0, 1, 2]),
        ([], []),
    ],
)
def test_steps_stand_where_their_numbers_say_if_these_ascend_one_by_one(numbers, places):
    steps = [
        MergedStep(number, 0, None, None, None, 0, kept=True, cut=False, terms={})
        for number in numbers
    ]
    assert _places(steps) == places
