"""By hand: n (1 - r) / (1 + r) of n values whose neighbours have the correlation r."""

import pytest

from marin_profile.base.alike import independent


def test_neighbours_that_differ_count_each():
    assert independent([9.0, 11.0, 9.0, 11.0]) == 4.0


def test_neighbours_that_are_alike_count_less():
    """r = (1 + 1 - 1 + 1 + 1) / 6 = 1/2."""
    assert independent([9.0, 9.0, 9.0, 11.0, 11.0, 11.0]) == pytest.approx(2.0)


def test_a_long_trend_counts_as_a_nineteenth():
    """r is taken as 0.9."""
    assert independent([float(at) for at in range(1000)]) == pytest.approx(1000 / 19)


def test_equal_values_count_each():
    assert independent([5.0, 5.0, 5.0]) == 3.0
