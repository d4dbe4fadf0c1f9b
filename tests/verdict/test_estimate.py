"""The change and its error, against cases worked out by hand and plain numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict import estimate
from marin_profile.verdict.estimate import (
    ChangeEstimate,
    Design,
    Floors,
    change_of_steps,
    combine,
    half_width,
)
from marin_profile.verdict.memory import autocorrelation
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.series import StepSeries, Variance, sort_steps, stray_rate
from marin_profile.verdict.student import f_tail


def captures(
    before: Sequence[float],
    after: Sequence[float],
    noise: NoiseFloor | None = None,
    *,
    within: float = 0.0,
    design: Design = "captures",
) -> ChangeEstimate:
    """One value a capture, its variance from the steps `within` for each, with 50 degrees."""
    variances = tuple([Variance(within, 50.0)] * len(side) for side in (before, after))
    return combine((before, after), (variances[0], variances[1]), noise, design=design)


def test_two_sides_of_three_captures() -> None:
    """Sides 2 and 7, variances 1 and 4: 5 / 3; (1 + 4)^2 / (1 / 2 + 16 / 2) = 25 / 8.5 of 4."""
    change = captures([1.0, 2.0, 3.0], [5.0, 7.0, 9.0])
    assert (change.before, change.after, change.estimate) == (2.0, 7.0, 5.0)
    assert change.error_from == "captures"
    assert change.standard_error == pytest.approx(math.sqrt(5 / 3))
    assert change.degrees_of_freedom == pytest.approx(25 / 8.5)


def test_welch_for_six_against_two_of_unlike_spreads() -> None:
    """Variance 0.2 of 6, and 18 of 2: the sum stands on the two, and has their one degree."""
    change = captures([1.0, 1.2, 0.6, 0.8, 1.6, 0.8], [2.0, 8.0])
    assert np.var([1.0, 1.2, 0.6, 0.8, 1.6, 0.8], ddof=1) == pytest.approx(0.128)
    assert change.standard_error == pytest.approx(math.sqrt(0.128 / 6 + 18 / 2))
    assert change.degrees_of_freedom == 1.0
    # The other way round as well.
    other = captures([2.0, 8.0], [1.0, 1.2, 0.6, 0.8, 1.6, 0.8])
    assert other.degrees_of_freedom == 1.0


def test_welch_has_no_more_degrees_than_twice_the_smaller_sides() -> None:
    """Variances 4 and 1 of 3 and 6: 4 / 3 + 1 / 6 gives (1.5)^2 / ((4/3)^2 / 2 + (1/6)^2 / 5), 2.5;
    of 1 and 4, 1 / 3 + 4 / 6 gives 6.9, cut to 1.5 times 2, against five captures to 4."""
    three, six = np.array([-1.0, 0.0, 1.0]), np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    six = six / math.sqrt(1.2)
    wide = captures((2 * three).tolist(), six.tolist())
    assert wide.standard_error == pytest.approx(math.sqrt(1.5))
    assert wide.degrees_of_freedom == pytest.approx(2.25 / (16 / 18 + 1 / 180))
    narrow = captures(three.tolist(), (2 * six).tolist())
    assert narrow.standard_error == pytest.approx(1.0)
    assert narrow.degrees_of_freedom == 3.0
    five = captures([-2.0, -1.0, 0.0, 1.0, 2.0], (1.5 * three).tolist())
    assert five.degrees_of_freedom == 4.0  # 6.0 by itself
    # Two against two or three may have two degrees, against more one.
    assert captures([0.0, 1.0], [0.0, 1.0]).degrees_of_freedom == 2.0
    assert captures([0.0, 0.1], (6 * three).tolist()).degrees_of_freedom == pytest.approx(2.0, 1e-3)
    assert captures([0.0, 1.0], [0.0, 1.0, 2.0, 3.0]).degrees_of_freedom == 1.0


def test_pairs_cancel_a_common_drift() -> None:
    """Differences 1, 2, 3: variance 1 / 3, 2 degrees."""
    before, after = [0.0, 10.0, 20.0], [1.0, 12.0, 23.0]
    change = captures(before, after, design="pairs")
    assert change.error_from == "pairs"
    assert change.estimate == pytest.approx(2.0)
    assert change.standard_error == pytest.approx(math.sqrt(1 / 3))
    assert change.degrees_of_freedom == 2.0
    assert captures(before, after).standard_error > 8


def test_one_pair_tells_nothing_of_runs() -> None:
    change = captures([1.0], [2.0], within=0.01, design="pairs")
    assert (change.error_from, change.standard_error) == ("steps", pytest.approx(0.02**0.5))


def test_the_wider_interval_counts() -> None:
    assert captures([1.0, 2.0, 3.0], [5.0, 7.0, 9.0], within=0.01).error_from == "captures"
    # 9 / 3 + 9 / 3 from the steps.
    loud = captures([1.0, 2.0, 3.0], [5.0, 7.0, 9.0], within=9.0)
    assert (loud.error_from, loud.standard_error) == ("steps", pytest.approx(6**0.5))
    assert loud.degrees_of_freedom == pytest.approx(300)
    # By width, not by variance: 3 from the steps, but 5 / 3 with 2.9 degrees of freedom.
    close = captures([1.0, 2.0, 3.0], [5.0, 7.0, 9.0], within=4.5)
    assert close.error_from == "captures"
    assert close.standard_error < math.sqrt(3)


def test_too_few_steps_do_not_hide_what_captures_show() -> None:
    sides = ([1.0, 2.0, 3.0], [5.0, 7.0, 9.0])
    wide = ([Variance(9.0, 2.0)] * 3, [Variance(9.0, 2.0)] * 3)
    assert combine(sides, wide).error_from == "steps"
    change = combine(sides, wide, few_steps=True)
    assert (change.error_from, change.standard_error) == (
        "captures",
        pytest.approx(math.sqrt(5 / 3)),
    )
    assert combine(sides, wide, design="pairs", few_steps=True).error_from == "pairs"
    # A noise floor tells what runs do, not what these windows of few steps do.
    one = ([Variance(9.0, 2.0)], [Variance(9.0, 2.0)])
    assert combine(([1.0], [5.0]), one, NoiseFloor(9, 0.1), few_steps=True).error_from == "steps"


def test_a_clear_change_shows_in_windows_of_six_steps_that_drift() -> None:
    """What 18 CPU steps a side took: each capture slows down or speeds up as it goes."""
    before = [[74, 77, 92, 104, 108, 116], [72, 74, 79, 92, 106, 116], [73, 76, 92, 94, 104, 110]]
    after = [[560, 570, 580, 588, 600, 613], [613, 602, 590, 580, 571, 568], [571, 580, 590] * 2]
    sides = [[StepSeries.of(np.array(one) * 1000.0) for one in side] for side in (before, after)]
    change = change_of_steps(sides[0], sides[1])
    for each in (change.mean, change.typical):
        assert each.error_from == "captures"
        assert each.estimate - each.certain_half_width > math.log(5)


def test_where_neither_is_known_the_interval_is_infinite() -> None:
    change = captures([1.0], [2.0], within=math.nan)
    assert math.isinf(change.standard_error)
    assert math.isinf(change.interval_half_width)
    # Captures against captures tell it where the steps do not.
    assert captures([1.0, 3.0], [2.0, 4.0], within=math.nan).error_from == "captures"


# --- noise floors ---


def test_a_noise_floor_widens_by_the_quantile_of_its_repeats() -> None:
    wide = captures([1.0], [1.02], NoiseFloor(5, 0.01), within=1e-8)
    assert wide.error_from == "captures"
    assert wide.interval_half_width == pytest.approx(2.776445105 * 0.01 * math.sqrt(2))
    narrow = captures([1.0], [1.02], NoiseFloor(5, 1e-9), within=1e-8)
    assert (narrow.error_from, narrow.standard_error) == ("steps", pytest.approx(2e-8**0.5))


def test_a_noise_floor_is_pooled_with_captures() -> None:
    """Squares 2 + 8 + 3 x 4, degrees 1 + 1 + 3."""
    change = captures([1.0, 3.0], [2.0, 6.0], NoiseFloor(4, 2.0))
    assert change.degrees_of_freedom == 5
    assert change.standard_error == pytest.approx(math.sqrt(22 / 5))
    # One side alone: squares 2 + 3 x 4, degrees 1 + 3; 1 / 2 + 1.
    one = captures([1.0, 3.0], [2.0], NoiseFloor(4, 2.0))
    assert one.degrees_of_freedom == 4
    assert one.standard_error == pytest.approx(math.sqrt(14 / 4 * 1.5))
    # Without a floor, the side's alone.
    bare = captures([1.0, 3.0], [2.0])
    assert (bare.degrees_of_freedom, bare.standard_error) == (1, pytest.approx(3**0.5))


def test_captures_that_spread_more_than_the_floor_refuse_it() -> None:
    """F(2, 4): P(F > x) = (1 + x / 2)^-2, 5 % at x = 6.94."""
    three = np.array([-1.0, 0.0, 1.0])
    for ratio, refused in ((6.9, False), (7.0, True)):
        side = (three * math.sqrt(ratio)).tolist()
        change = captures(side, three.tolist(), NoiseFloor(5, 1.0))
        expected = 4.0 if refused else 2 + 2 + 4
        if refused:
            spreads = (ratio / 3) ** 2 / 2 + (1 / 3) ** 2 / 2
            expected = min(4.0, ((ratio + 1) / 3) ** 2 / spreads)
        assert change.degrees_of_freedom == pytest.approx(expected)
        alone = captures(side, [0.0], NoiseFloor(5, 1.0))
        assert alone.degrees_of_freedom == (2 if refused else 6)


def test_a_floor_of_nothing_holds_for_captures_without_spread() -> None:
    assert captures([1.0, 1.0], [2.0, 2.0], NoiseFloor(5, 0.0)).degrees_of_freedom == 6
    assert captures([1.0, 1.1], [2.0, 2.0], NoiseFloor(5, 0.0)).degrees_of_freedom == 1.0


@pytest.mark.parametrize("x", [0.5, 1.0, 6.944])
def test_the_tail_of_f(x: float) -> None:
    """With 2 degrees above, (1 + 2 x / n)^(-n / 2)."""
    assert f_tail(x, 2.0, 4.0) == pytest.approx((1 + x / 2) ** -2)
    assert f_tail(x, 2.0, 10.0) == pytest.approx((1 + x / 5) ** -5)


def test_half_a_width() -> None:
    assert half_width(0.1, 4.0, 0.975) == pytest.approx(0.2776445105)
    assert half_width(math.inf, 4.0, 0.975) == math.inf
    assert half_width(math.nan, 4.0, 0.975) == math.inf
    assert ChangeEstimate(0.0, 0.0, 0.0, 1.0, "steps").certain_half_width == 0.0


# --- step times ---


def of(*values: Sequence[float]) -> list[StepSeries]:
    return [StepSeries.of(one) for one in values]


def test_both_estimands_of_one_capture_a_side() -> None:
    sides = of(noisy(1, 25)), of(noisy(2, 30, typical=1100.0, phi=0.5))
    change = change_of_steps(*sides)
    sorted_steps = sort_steps([*sides[0], *sides[1]])
    rate = stray_rate(sorted_steps)
    typical_phi = autocorrelation([one.residuals for one in sorted_steps])
    phi = max(typical_phi, autocorrelation([one.core for one in sorted_steps]))
    assert 0 < change.phi == phi
    for found, values, variances in (
        (
            change.typical,
            [one.typical for one in sorted_steps],
            [one.typical_variance(typical_phi, False) for one in sorted_steps],
        ),
        (
            change.mean,
            [one.mean for one in sorted_steps],
            [one.mean_variance(phi, False, rate) for one in sorted_steps],
        ),
        (
            change.slow_cost,
            [one.slow_cost for one in sorted_steps],
            [one.slow_cost_variance(rate) for one in sorted_steps],
        ),
    ):
        assert (found.before, found.after) == pytest.approx(values)
        total = variances[0].value + variances[1].value
        assert found.standard_error == pytest.approx(math.sqrt(total))
        assert found.error_from == "steps"
    expected = math.log(np.mean(sides[1][0].lengths) / np.mean(sides[0][0].lengths))
    assert change.mean.estimate == pytest.approx(expected)
    assert (change.drifts, len(change.sides[0]), len(change.sides[1])) == (False, 1, 1)


def test_equal_steps_have_no_error() -> None:
    change = change_of_steps(of([5.0] * 8), of([5.25] * 8))
    for one in (change.typical, change.mean):
        assert one.estimate == pytest.approx(math.log(1.05))
        assert one.standard_error == 0.0
    assert (change.slow_cost.estimate, change.phi, change.drifts) == (0.0, 0.0, False)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_too_few_steps_have_no_interval(steps: int) -> None:
    values = np.linspace(1.0, 1.02, steps).tolist()
    change = change_of_steps(of(values), of([1.0, 1.01] * 6))
    assert math.isinf(change.typical.interval_half_width)
    assert math.isinf(change.mean.interval_half_width)


def test_a_comb_that_leaves_few_steps_leaves_the_mean_unknown() -> None:
    """Of 12 steps 6 are the comb, 5 the core and one is a stray."""
    values = [1000.0, 2000.0, 1010.0, 2010.0, 1005.0, 2005.0, 500.0, 2020.0, 1001.0, 2001.0]
    values += [1003.0, 2004.0]
    change = change_of_steps(of(values), of([one + 1 for one in values]))
    assert math.isinf(change.mean.standard_error)
    assert change.mean.estimate == pytest.approx(0.0, abs=0.002)


def test_each_floor_is_of_its_own_estimand() -> None:
    sides = of(noisy(1, 25)), of(noisy(2, 25))
    floors = Floors(typical=NoiseFloor(5, 0.05), mean=NoiseFloor(5, 0.07))
    change = change_of_steps(*sides, floors)
    assert change.typical.standard_error == pytest.approx(0.05 * math.sqrt(2))
    assert change.mean.standard_error == pytest.approx(0.07 * math.sqrt(2))
    assert change.slow_cost.error_from == "steps"
    only = change_of_steps(*sides, Floors(mean=NoiseFloor(5, 0.07)))
    assert (only.typical.error_from, only.mean.error_from) == ("steps", "captures")


def test_pairs_of_captures() -> None:
    sides = [of(*(noisy(10 * side + at, 25, typical=1000.0 + 300 * at) for at in range(3)))
             for side in (1, 2)]  # fmt: skip
    change = change_of_steps(sides[0], sides[1], design="pairs")
    means = [[math.log(np.mean(one.lengths)) for one in side] for side in sides]
    differences = np.subtract(means[1], means[0])
    assert change.mean.error_from == "pairs"
    assert change.mean.estimate == pytest.approx(differences.mean())
    assert change.mean.standard_error == pytest.approx(differences.std(ddof=1) / math.sqrt(3))
    assert change_of_steps(sides[0], sides[1]).mean.standard_error > 0.1


# --- drift ---


def drifting(seed: int, steps: int, by: float = 0.1) -> list[float]:
    return [one * (1 + by * at / steps) for at, one in enumerate(noisy(seed, steps))]


def test_few_independent_steps_cannot_be_relied_on() -> None:
    """25 steps of phi 0.8 are worth 2.8, of phi 0.75 3.6; the limit is 3.3."""
    steps = np.array([1.0, -1.0] * 12 + [0.0])
    assert estimate._drifts([steps], 0.8)
    assert not estimate._drifts([steps], 0.75)
    assert not estimate._drifts([steps[:23]], 0.8)  # too short to tell


def test_steps_that_drift() -> None:
    assert change_of_steps(of(drifting(1, 60)), of(noisy(2, 60))).drifts
    assert change_of_steps(of(noisy(1, 60)), of(drifting(2, 60))).drifts
    assert not change_of_steps(of(noisy(1, 60)), of(noisy(2, 60))).drifts
    # Several captures a side show by themselves how far drift moves them.
    several = of(drifting(1, 60), drifting(3, 60))
    assert not change_of_steps(several, several).drifts
    assert change_of_steps(several, of(noisy(2, 60))).drifts


def test_drift_is_not_looked_for_in_short_captures() -> None:
    def two_levels(steps: int) -> list[float]:
        return [1000.0 if at < steps / 2 else 1090.0 for at in range(steps)]

    assert change_of_steps(of(two_levels(24)), of(two_levels(24))).drifts
    assert not change_of_steps(of(two_levels(23)), of(two_levels(23))).drifts


def test_the_error_of_drifting_steps_is_that_of_the_slowest_waves() -> None:
    sides = of(drifting(1, 60)), of(noisy(2, 60))
    change = change_of_steps(*sides)
    sorted_steps = sort_steps([*sides[0], *sides[1]])
    variances = [one.typical_variance(0.0, True).value for one in sorted_steps]
    assert change.typical.standard_error == pytest.approx(math.sqrt(sum(variances)))
    assert change.typical.degrees_of_freedom < 6.001


# --- looks ---


def test_looks_are_pairs_at_the_level_of_one_look() -> None:
    """Differences 1, 2, 3: error sqrt(1 / 3), 2 degrees."""
    change = captures([0.0, 10.0, 20.0], [1.0, 12.0, 23.0], design="looks")
    assert (change.error_from, change.design) == ("pairs", "looks")
    # With 2 degrees of freedom t = (1 - 2 q) / sqrt(2 q (1 - q)).
    for width, q in (
        (change.interval_half_width, 0.00385),
        (change.certain_half_width, 0.000617),
    ):
        t = (1 - 2 * q) / math.sqrt(2 * q * (1 - q))
        assert width == pytest.approx(t * math.sqrt(1 / 3))
    for count in (2, 21):
        none = captures([0.0] * count, [1.0] * count, design="looks")
        assert math.isinf(none.interval_half_width)
    assert captures([0.0] * 20, [1.0] * 20, design="looks").interval_half_width == 0.0
