"""By hand: 1.96 times the standard error of the mean, of as many steps as are not alike."""

from math import sqrt

import pytest

from marin_profile.analysis.steps.chance import error_of_mean


def test_steps_that_are_not_alike():
    """Their neighbours' products sum to less than 0."""
    assert error_of_mean([9.0, 11.0, 9.0, 11.0]) == pytest.approx(1.96 * sqrt(4 / 3 / 4))


def test_neighbours_that_are_alike_count_less():
    """r = (1 + 1 - 1 + 1 + 1) / 6 = 1/2, so that six count as two."""
    periods = [9.0, 9.0, 9.0, 11.0, 11.0, 11.0]
    assert error_of_mean(periods) == pytest.approx(1.96 * sqrt(6 / 5 / 2))


def test_alike_to_the_last_they_count_as_a_few():
    """r is taken as 0.9 at most."""
    periods = [float(at) for at in range(1000)]
    variance = (1000**2 - 1) / 12 * 1000 / 999
    assert error_of_mean(periods) == pytest.approx(1.96 * sqrt(variance / (1000 * 0.1 / 1.9)))


def test_equal_periods_and_too_few():
    assert error_of_mean([5.0] * 4) == 0.0
    assert error_of_mean([5.0, 6.0, 7.0]) is None
