"""Which steps are which, and what a capture's steps take, against cases worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict.patterns import Comb
from marin_profile.verdict.series import (
    SortedSteps,
    StepSeries,
    StrayRate,
    Variance,
    is_stray,
    left_out,
    sort_steps,
    stray_rate,
    summed,
    trimmed_steps,
)


def factor_by_hand(phi: float, count: int) -> float:
    """1 + 2 sum over lags of (1 - lag / n) phi^lag."""
    return 1 + 2 * sum((1 - lag / count) * phi**lag for lag in range(1, count))


NO_STRAYS = StrayRate(0.0, 0, 0.0)


def alone(values: Sequence[float], numbers: Sequence[int] | None = None) -> SortedSteps:
    """A capture of these lengths, compared with nothing."""
    return sort_steps([StepSeries.of(values, numbers)])[0]


def as_they_are(logs: Sequence[float]) -> SortedSteps:
    """All steps of one kind, told apart by nobody."""
    series = StepSeries.of(np.exp(logs))
    steps = len(logs)
    return SortedSteps(series, (), np.ones(steps, np.bool_), np.zeros(steps, np.int64))


def slow_at(steps: Sequence[int], every: int, phase: int, factor: float = 2.0) -> list[float]:
    """About 1, in an order without pattern, and what is slow."""
    wobble = (0.0, 0.004, -0.003, 0.002, 0.0, -0.004, 0.003, -0.002, 0.001, -0.001, 0.0)
    return [(factor if at % every == phase else 1.0) * (1 + wobble[at * at % 11]) for at in steps]


# --- strays and trimming ---


def strays(values: Sequence[float]) -> list[float]:
    return [value for value in values if is_stray(np.array(values))[values.index(value)]]


def test_a_stray_is_at_least_ten_percent_away() -> None:
    # Median 0.005, median distance 0.015, 4 x 1.4826 x 0.015 = 0.0890 < log(1.1) = 0.0953.
    near = [0.0, 0.01, -0.01, 0.02, -0.02]
    assert strays([*near, 0.1]) == []
    assert strays([*near, 0.101]) == [0.101]
    assert strays([*near, -0.101]) == [-0.101]


def test_a_stray_is_four_standard_deviations_away() -> None:
    # Median 0.025, median distance 0.075, 4 x 1.4826 x 0.075 = 0.44478.
    near = [-0.1, -0.05, 0.0, 0.05, 0.1]
    assert strays([*near, 0.469]) == []
    assert strays([*near, 0.470]) == [0.470]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(1, (0, 0)), (3, (0, 0)), (4, (1, 1)), (8, (2, 2)), (9, (2, 2)), (10, (2, 3)), (25, (2, 4)),
     (40, (3, 6)), (50, (3, 7)), (400, (12, 42))],
)  # fmt: skip
def test_how_many_are_left_out(steps: int, expected: tuple[int, int]) -> None:
    assert left_out(steps) == expected


def test_a_trimmed_mean() -> None:
    # Two off either end, 3 to 6 are left; winsorised: 6 3 3 3 4 5 6 6, of mean 4.5.
    found = trimmed_steps(np.array([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
    assert (found.counted, found.mean) == (4, pytest.approx(4.5))
    assert found.residuals == pytest.approx([1.5, -1.5, -1.5, -1.5, -0.5, 0.5, 1.5, 1.5])
    assert found.inflation == pytest.approx(8 * 7 / (4 * 3))
    assert trimmed_steps(np.array([1.0, 2.0])).inflation == 1.0
    assert trimmed_steps(np.array([3.0])).inflation == 1.0


def test_more_is_left_out_above() -> None:
    # Of 10, two below and three above: 3 4 5 6 7.
    assert trimmed_steps(np.arange(1.0, 11.0)).mean == pytest.approx(5.0)


def test_equal_values_are_exact() -> None:
    found = trimmed_steps(np.full(7, 0.1))
    assert (found.mean, found.residuals.tolist()) == (0.1, [0.0] * 7)


# --- the typical step ---

LOGS = [3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]  # winsorised squares 14 x 0.01


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_the_typical_step_and_yuens_variance(phi: float) -> None:
    one = as_they_are(LOGS)
    assert one.typical == pytest.approx(0.45)
    factor, memory = factor_by_hand(phi, 8), (1 + phi) / (1 - phi)
    found = one.typical_variance(phi, drifts=False)
    yuen = 0.14 / (4 * 3)
    assert found.value == pytest.approx(yuen * factor * 7 / (8 - factor))
    assert found.degrees_of_freedom == pytest.approx(3 / (1 + 0.15 * memory + 0.01 * memory**2))


def test_of_drifting_steps_the_slowest_waves_tell_the_variance() -> None:
    one = as_they_are(LOGS)
    residuals = np.array([1.5, -1.5, -1.5, -1.5, -0.5, 0.5, 1.5, 1.5]) / 10
    waves = [
        sum(r * math.cos(math.pi * wave * (t + 0.5) / 8) for t, r in enumerate(residuals))
        for wave in (1, 2, 3)
    ]
    expected = sum(2 / 8 * wave**2 for wave in waves) / 3 / 8 * 56 / 12
    found = one.typical_variance(0.0, drifts=True)
    assert (found.value, found.degrees_of_freedom) == (pytest.approx(expected), 3.0)


@pytest.mark.parametrize(("steps", "known"), [(1, False), (5, False), (6, True)])
def test_too_few_steps_have_no_variance(steps: int, known: bool) -> None:
    one = as_they_are(np.linspace(0.0, 0.05, steps).tolist())
    assert math.isnan(one.typical_variance(0.0, drifts=False).value) is not known
    assert math.isnan(one.mean_variance(0.0, False, NO_STRAYS).value) is not known
    assert math.isnan(one.slow_cost_variance(NO_STRAYS).value) is not known


# --- the mean ---


@pytest.mark.parametrize("first", range(5))
def test_the_mean_is_of_whole_cycles_whatever_part_the_window_holds(first: int) -> None:
    steps = range(first, first + 27)
    one = alone([2.0 if at % 5 == 3 else 1.0 for at in steps], steps)
    assert [comb.every for comb in one.own] == [5]
    assert math.exp(one.mean) == pytest.approx(6 / 5)
    assert math.exp(one.typical) == pytest.approx(1.0)
    assert one.slow_cost == pytest.approx(1 / 5)


def test_the_mean_of_two_combs_that_meet() -> None:
    """+1 in every fifth step, +0.5 in every fourth: over 20 steps 4 + 2.5 more."""
    steps = range(80)
    one = alone([1.0 + (at % 5 == 3) + 0.5 * (at % 4 == 1) for at in steps])
    assert sorted(comb.every for comb in one.own) == [4, 5]
    assert math.exp(one.mean) == pytest.approx(1 + 6.5 / 20)
    assert one.slow_cost == pytest.approx(6.5 / 20)


def test_without_a_comb_the_mean_is_the_mean() -> None:
    values = noisy(1, 25)
    one = alone(values)
    assert one.own == ()
    assert math.exp(one.mean) == pytest.approx(np.mean(values))


def test_the_variance_of_the_mean() -> None:
    """No combs, no strays: the variance of the mean over its square."""
    values = noisy(1, 25)
    one = alone(values)
    for phi in (0.0, 0.5):
        factor, memory = factor_by_hand(phi, 25), (1 + phi) / (1 - phi)
        squares = np.var(values) * 25 / (25 - factor)
        found = one.mean_variance(phi, False, NO_STRAYS)
        assert found.value == pytest.approx(squares * factor / 25 / np.mean(values) ** 2)
        freedom = 24 / (1 + 0.15 * memory + 0.01 * memory**2)
        assert found.degrees_of_freedom == pytest.approx(freedom)


def test_the_variance_of_the_mean_of_drifting_steps() -> None:
    values = noisy(1, 25)
    steps = np.arange(25)
    waves = [
        float(np.cos(np.pi * wave * (steps + 0.5) / 25) @ (np.array(values) - np.mean(values)))
        for wave in (1, 2, 3)
    ]
    expected = sum(2 / 25 * wave**2 for wave in waves) / 3 / 25 / np.mean(values) ** 2
    found = alone(values).mean_variance(0.5, True, NO_STRAYS)
    assert (found.value, found.degrees_of_freedom) == (pytest.approx(expected), 3.0)


def test_the_variance_with_a_comb_weighs_both_kinds() -> None:
    """Every fifth step of 25, known to the variance of 5; the others to that of 20."""
    values = np.array(slow_at(range(25), 5, 3))
    one = alone(values)
    assert [(comb.every, comb.phase) for comb in one.own] == [(5, 3)]
    slow, rest = values[3::5], np.delete(values, np.s_[3::5])
    mean = 0.2 * slow.mean() + 0.8 * rest.mean()
    assert math.exp(one.mean) == pytest.approx(mean)
    parts = [0.04 * slow.var(ddof=1) / 5, 0.64 * rest.var(ddof=1) / 20]
    found = one.mean_variance(0.0, False, NO_STRAYS)
    assert found.value == pytest.approx(sum(parts) / mean**2)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / (19 / 1.16))
    assert found.degrees_of_freedom == pytest.approx(freedom)

    typical = math.exp(one.typical)
    assert one.slow_cost == pytest.approx(0.2 * (slow.mean() - rest.mean()) / typical)
    parts = [0.04 * slow.var(ddof=1) / 5, 0.04 * rest.var(ddof=1) / 20]
    found = one.slow_cost_variance(NO_STRAYS)
    assert found.value == pytest.approx(sum(parts) / typical**2)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 19)
    assert found.degrees_of_freedom == pytest.approx(freedom)


# --- strays ---

WITH_STRAY = [*slow_at(range(12), 99, 98), 3.0, *slow_at(range(12), 99, 98)]
WITHOUT = slow_at(range(25), 99, 98)


def test_strays_count_in_the_mean_and_not_in_the_typical_step() -> None:
    one = alone(WITH_STRAY)
    core = np.array(WITH_STRAY[:12] + WITH_STRAY[13:])
    assert math.exp(one.mean) == pytest.approx(np.mean(WITH_STRAY))
    assert math.exp(one.typical) == pytest.approx(1.0, abs=0.002)
    typical = math.exp(one.typical)
    assert one.core == pytest.approx((core - core.mean()) / typical)
    assert one.strays == pytest.approx([(3.0 - core.mean()) / typical])
    assert one.slow_cost == pytest.approx((3.0 - core.mean()) / 25 / typical)
    assert one.stray_excess.sum() == pytest.approx(0.0)
    assert one.stray_excess[12] == pytest.approx(one.strays[0] * 24 / 25)


def test_how_often_strays_come_is_as_uncertain_where_there_are_none() -> None:
    captures = sort_steps([StepSeries.of(WITH_STRAY), StepSeries.of(WITHOUT)])
    rate = stray_rate(captures)
    assert rate.count == 1
    assert rate.square == pytest.approx(captures[0].strays[0] ** 2 / 50)
    # One stray among others has no neighbour like it: products -2/25, squares 24/25 of it.
    assert rate.phi == 0.0
    for one in captures:
        bare = one.mean_variance(0.0, False, NO_STRAYS)
        whole = one.mean_variance(0.0, False, rate)
        scale = math.exp(2 * (one.mean - one.typical))
        assert whole.value - bare.value == pytest.approx(rate.square / 25 / scale)
        assert whole.degrees_of_freedom == pytest.approx(2.0, rel=0.01)  # the strays' own
        cost = one.slow_cost_variance(rate)
        bare = one.slow_cost_variance(NO_STRAYS)
        assert cost.value - bare.value == pytest.approx(rate.square / 25)


def test_strays_that_come_together_tell_less() -> None:
    values = [*WITHOUT[:20], 3.0, 3.0, 3.0, 3.0, *WITHOUT[:20]]
    one = alone(values)
    rate = stray_rate([one])
    excess = [one.strays[0] if value == 3.0 else 0.0 for value in values]
    mean = sum(excess) / 44
    product = sum((a - mean) * (b - mean) for a, b in pairwise(excess))
    square = sum((a - mean) ** 2 for a in excess)
    phi = (44 * product / square + 1) / 41
    assert rate.phi == pytest.approx(phi)
    assert rate.count == 4
    factor = factor_by_hand(phi, 44)
    bare = one.mean_variance(0.0, False, NO_STRAYS)
    whole = one.mean_variance(0.0, False, rate)
    scale = math.exp(2 * (one.mean - one.typical))
    added = rate.square * factor / 44 / scale
    assert whole.value - bare.value == pytest.approx(added)
    parts = [(bare.value, bare.degrees_of_freedom), (added, 2 * 4 / factor)]
    freedom = whole.value**2 / sum(value**2 / freedom for value, freedom in parts)
    assert whole.degrees_of_freedom == pytest.approx(max(1.0, freedom))


@pytest.mark.parametrize(("steps", "phi"), [(5, 0.0), (6, 0.95)])
def test_how_much_strays_come_together_takes_six_steps(steps: int, phi: float) -> None:
    """The last two of 6: products 5 / 9, squares 12 / 9; (6 x 5 / 12 + 1) / 3, kept at 0.95."""
    rate = stray_rate([alone([1.0, 1.01, 1.02, 1.0, 3.0, 3.0][6 - steps :])])
    assert (rate.count, rate.phi) == (2, phi)


def test_a_comb_takes_its_share_from_what_strays_cost() -> None:
    values = slow_at(range(50), 5, 3)
    values[20] = 3.0
    one = alone(values)
    assert [comb.every for comb in one.own] == [5]
    rate = stray_rate([one])
    assert rate.square == pytest.approx(one.strays[0] ** 2 / 40)
    bare = one.mean_variance(0.0, False, NO_STRAYS)
    scale = math.exp(2 * (one.mean - one.typical))
    added = one.mean_variance(0.0, False, rate).value - bare.value
    assert added == pytest.approx(0.64 * rate.square / 40 / scale)
    bare = one.slow_cost_variance(NO_STRAYS)
    added = one.slow_cost_variance(rate).value - bare.value
    assert added == pytest.approx(0.64 * rate.square / 40)
    slow = np.mean(values[3::5])
    rest = np.delete(values, np.s_[3::5])
    core = rest[rest < 2].mean()
    cost = (0.2 * (slow - core) + 0.8 * (3.0 - core) / 40) / math.exp(one.typical)
    assert one.slow_cost == pytest.approx(cost)


# --- like steps with like ---


def test_a_comb_of_one_side_leaves_the_steps_of_the_other() -> None:
    """So that both typical steps are of four steps out of five."""
    flat, slow = slow_at(range(25), 99, 98), slow_at(range(25), 5, 3)
    found = sort_steps([StepSeries.of(flat), StepSeries.of(slow)])
    assert [len(one.own) for one in found] == [0, 1]
    assert [int(one.compared.sum()) for one in found] == [20, 20]
    assert [at for at in range(25) if not found[1].compared[at]] == [3, 8, 13, 18, 23]
    left = {at % 5 for at in range(25) if not found[0].compared[at]}
    assert len(left) == 1
    # The mean of the side without a comb is that of all its steps.
    assert math.exp(found[0].mean) == pytest.approx(np.mean(flat))


def test_the_kinds_of_steps_of_a_comb_and_of_the_rest() -> None:
    one = alone(slow_at(range(25), 5, 3))
    assert one.kinds.tolist() == [2 if at % 5 == 3 else 0 for at in range(25)]
    # About their own kind's mean, so that the pattern is no correlation.
    assert max(map(abs, one.residuals)) < 0.01
    assert sum(one.residuals[3::5]) == pytest.approx(0.0)


def test_where_combs_leave_too_few_all_are_compared() -> None:
    """Every second and every third step of the other side leave 4 of 12, which are too few."""
    plain = slow_at(range(12), 99, 98)
    other = slow_at(range(48), 3, 1, 3.0)
    other = [one * (2 if at % 2 else 1) for at, one in enumerate(other)]
    found = sort_steps([StepSeries.of(plain), StepSeries.of(other)])
    assert {comb.every for comb in found[1].own} == {2, 3}
    assert [int(one.compared.sum()) for one in found] == [12, 16]


def classed(light: float, heavy: float, heavies: int, first: int = 0) -> StepSeries:
    """20 steps; the heavy ones come without a pattern."""
    order = [0, 1, 4, 9, 14, 16, 17, 2, 11, 6][first : first + heavies]
    is_heavy = [at in order for at in range(20)]
    values = [
        (heavy if one else light) * (1 + 0.001 * (at**3 % 11)) for at, one in enumerate(is_heavy)
    ]
    return StepSeries.of(values, None, is_heavy)


def test_classes_of_one_level_are_compared_each_with_each() -> None:
    found = sort_steps([classed(1.0, 2.0, 4), classed(1.0, 2.2, 7)])
    assert [int(one.compared.sum()) for one in found] == [16, 13]
    for one in found:
        assert not (one.compared & one.series.heavy).any()
        assert set(one.kinds[one.series.heavy]) == {1}
    # The commoner kind is compared, by both sides' steps together.
    heavy = sort_steps([classed(1.0, 1.05, 10), classed(1.0, 1.05, 10), classed(1.0, 1.05, 9)])
    assert [int(one.compared.sum()) for one in heavy] == [10, 10, 11]
    inverse = [
        StepSeries.of(one.lengths, one.numbers, ~one.heavy)
        for one in (classed(2.0, 1.0, 4), classed(2.0, 1.0, 7))
    ]
    found = sort_steps(inverse)
    assert [int(one.compared.sum()) for one in found] == [16, 13]
    for one in found:
        assert not (one.compared & ~one.series.heavy).any()


@pytest.mark.parametrize(("heavy", "alike"), [(1.4, True), (1.5, True), (1.7, False), (4.0, False)])
def test_classes_of_other_levels_are_no_classes(heavy: float, alike: bool) -> None:
    """Heavy is log 1.4 = 0.336 above light; half as much again, to 1.656, is the same kind."""
    found = sort_steps([classed(1.0, 1.4, 4), classed(1.0, heavy, 4)])
    assert [int((one.kinds == 1).sum()) for one in found] == ([4, 4] if alike else [0, 0])


def test_classes_of_one_side_are_no_classes() -> None:
    found = sort_steps([classed(1.0, 1.08, 4), classed(1.0, 1.08, 0), classed(1.0, 1.08, 4)])
    assert [int(one.compared.sum()) for one in found] == [20, 20, 20]
    assert [set(one.kinds.tolist()) for one in found] == [{0}] * 3
    single = sort_steps([classed(1.0, 1.08, 4), classed(1.0, 1.08, 1)])
    assert [set(one.kinds.tolist()) for one in single] == [{0}] * 2


def test_satterthwaites_degrees_of_freedom() -> None:
    found = summed([Variance(4.0, 2.0), Variance(1.0, 10.0)])
    assert (found.value, found.degrees_of_freedom) == (5.0, pytest.approx(25 / (16 / 2 + 1 / 10)))
    assert summed([Variance(9.0, 0.5), Variance(1.0, 10.0)]).degrees_of_freedom == 1.0
    assert summed([Variance(0.0, 3.0), Variance(0.0, 4.0)]) == Variance(0.0, 7.0)
    assert math.isnan(summed([Variance(math.nan, 1.0), Variance(1.0, 4.0)]).value)


def test_a_series_is_made_with_numbers_and_kinds() -> None:
    one = StepSeries.of([1.0, 2.0])
    assert (one.numbers.tolist(), one.heavy.tolist(), one.steps) == ([0, 1], [False, False], 2)
    assert StepSeries.of([1.0] * 16, range(1, 17)).combs == ()
    assert StepSeries.of([1.0, 2.0] * 8, range(1, 17)).combs[0].phase == 0
    assert isinstance(StepSeries.of([1.0, 2.0] * 8).combs[0], Comb)
