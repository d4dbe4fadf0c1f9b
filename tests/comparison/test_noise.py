"""Is a row's change more than noise? Intervals by hand; quantiles of t from printed tables."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from marin_profile.comparison.noise import (
    NOT_JUDGED,
    RowTimes,
    Spread,
    half_width,
    judge,
    judge_captures,
    of_captures,
    of_steps,
)


def row(before: list[float] | None, after: list[float] | None) -> RowTimes:
    """Of microseconds."""
    sides = [
        None if side is None else tuple(Fraction(round(value * 1e6)) for value in side)
        for side in (before, after)
    ]
    return RowTimes(*sides)


def test_welch_by_hand():
    """Variances 1 and 4 of 3 each: the error is sqrt(1/3 + 4/3), with (5/3)^2 / ((1/3)^2 / 2 +
    (4/3)^2 / 2) = 50/17 degrees of freedom."""
    (found,) = judge_captures([row([9, 10, 11], [18, 20, 22])], (3, 3))
    # t at 0.975 is 3.1824 for 3 degrees of freedom, 4.3027 for 2; at 50/17 = 2.941 it is 3.2190.
    assert found.interval == pytest.approx((10 - 3.2190 * 1.290994, 10 + 3.2190 * 1.290994), 1e-3)
    assert found.noise is False


def test_degrees_of_freedom():
    """Equal variances of 3 each: 4; one side without any: those of the other."""
    assert half_width(Spread(1.0, 2), Spread(1.0, 2), 0.05) == pytest.approx(
        2.776445 * math.sqrt(2), rel=1e-6
    )
    assert half_width(Spread(0.0, 2), Spread(4.0, 2), 0.05) == pytest.approx(4.302653 * 2, rel=1e-6)
    assert half_width(Spread(0.0, 2), Spread(0.0, 2), 0.05) == 0.0


def test_one_capture_a_side_has_no_interval():
    assert judge_captures([row([10], [20])], (1, 1)) == [NOT_JUDGED]
    assert judge_captures([row([10], [20, 21])], (1, 2)) == [NOT_JUDGED]
    assert judge_captures([row([10, 11], [20, 21])], (2, 2)) != [NOT_JUDGED]


def test_an_interval_that_contains_0_is_noise():
    found = judge_captures([row([10, 12], [11, 13]), row([10, 10], [10, 10])], (2, 2))
    assert [one.noise for one in found] == [True, True]
    assert found[1].interval == (0.0, 0.0)


def test_what_one_side_lacks_is_judged_by_its_interval_alone():
    """19, 20, 21 us of a new op: 20 us with an error of 1 / sqrt(3), 2 degrees of freedom."""
    rows = [row(None, [19, 20, 21]), row([1000] * 3, [1000] * 3)]
    new = judge_captures(rows, (3, 3))[0]
    assert new.noise is False
    assert new.interval == pytest.approx((20 - 4.302653 / 3**0.5, 20 + 4.302653 / 3**0.5), 1e-6)
    assert judge_captures([row(None, [0, 0, 60])], (3, 3))[0].noise is True


def test_the_error_is_shared_out_by_time():
    """The same change of 3 us with variance 1 of each mean and 4 degrees of freedom. t is 2.12;
    for 5 % it takes 2.78. With a change of 4.5 us t is 3.18: enough for a row that has all of the
    time, not for one of two (3.50 at 2.5 %), nor for a row of a hundredth (10.31 at 0.05 %)."""
    spread = (Spread(1e12, 2), Spread(1e12, 2))

    def noise(delta: float, others: list[float]) -> bool | None:
        rows = [row([100], [100 + delta]), *(row([size], [size]) for size in others)]
        return judge(rows, [spread] * len(rows))[0].noise

    assert noise(3, []) is True
    assert noise(4.5, []) is False
    assert noise(4.5, [102.25]) is True
    assert noise(5.0, [102.25]) is False  # 3.54
    assert noise(5.0, [10_000]) is True
    assert noise(14.7, [10_500]) is False  # 10.39
    # What only one side has takes no part.
    rows = [row([100], [104.5]), row(None, [10_000])]
    assert judge(rows, [spread] * 2)[0].noise is False


def test_a_very_small_row_needs_no_more_than_the_least_error():
    """At 1e-6 and 4 degrees of freedom t is 49.4587, for a change of 69.945."""
    spread = (Spread(1e12, 2), Spread(1e12, 2))
    rows = [[row([0.001], [delta]), row([1e9], [1e9])] for delta in (69.93, 69.96)]
    assert [judge(one, [spread] * 2)[0].noise for one in rows] == [True, False]


def test_steps_that_swing_slowly_count_less():
    """1 1 3 3: deviations -1 -1 1 1, variance 4/3; neighbours 1 - 1 + 1 = 1, a quarter of the sum
    of squares: 4 (1 - 1/4) / (1 + 1/4) = 2.4 looks."""
    found = of_steps([1.0, 1.0, 3.0, 3.0])
    assert found is not None
    assert found.variance == pytest.approx(4 / 3 / 2.4)
    assert found.freedom == pytest.approx(1.4)
    # 0 2 2 4: deviations -2 0 0 2, variance 8/3; no neighbours are alike.
    assert of_steps([0.0, 2.0, 2.0, 4.0]) == Spread(pytest.approx(2 / 3), 3.0)
    values = [0.0, 0.0, 0.0, 4.0, 4.0, 5.0]
    off = [value - 13 / 6 for value in values]
    alike = (2 * off[0] ** 2 + off[2] * off[3] + off[3] ** 2 + off[3] * off[5]) / sum(
        one**2 for one in off
    )
    found = of_steps(values)
    assert found is not None
    assert found.freedom == pytest.approx(6 * (1 - alike) / (1 + alike) - 1)
    # 1 3 1 3 would be a negative correlation: they count as they are.
    assert of_steps([1.0, 3.0, 1.0, 3.0]) == Spread(pytest.approx(1 / 3), 3.0)
    assert of_steps([2.0, 2.0, 2.0]) == Spread(0.0, 2)
    assert of_steps([1.0, 2.0]) is None
    # Never fewer than two looks.
    assert of_steps([float(at // 50) for at in range(100)]).freedom == pytest.approx(100 / 19 - 1)
    assert of_steps([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]).freedom == 1.0


def test_spread_of_captures():
    assert of_captures((Fraction(1), Fraction(3)), 2) == Spread(1.0, 1)
    assert of_captures(None, 3) == Spread(0.0, 2)
    assert of_captures((Fraction(1),), 1) is None


def test_rows_add_up():
    assert row([1, 2], None) + row([3, 4], [5, 6]) == row([4, 6], [5, 6])
    assert row([1, 2], [3, 6]).delta == 3_000_000
    assert row(None, [4, 2]).delta == row(None, [4, 2]).size == 3_000_000
