"""The noise floor, against sums by hand."""

from __future__ import annotations

import math

import pytest

from marin_profile.verdict.noise import FARTHEST, NoiseFloor, noise_floor


@pytest.mark.parametrize(
    "commits",
    [[], [[1.0]], [[1.0, 2.0]], [[1.0], [2.0], [3.0]], [[1.0, 2.0], [5.0]]],
)
def test_too_few_repeats_are_no_measurement(commits: list[list[float]]) -> None:
    assert noise_floor(commits) is None


def test_three_repeats_of_one_commit() -> None:
    floor = noise_floor([[1.0, 2.0, 3.0]])
    assert floor == NoiseFloor(num_repeats=3, log_sd=1.0)
    assert floor.degrees_of_freedom == 2


def test_spreads_inside_commits_pool_and_their_levels_do_not_count() -> None:
    # Squares about the means 2, 100.5, 50: 2, 0.5, 8; degrees 2 + 1 + 1.
    floor = noise_floor([[1.0, 2.0, 3.0], [100.0, 101.0], [48.0, 52.0], [7.0]])
    assert floor == NoiseFloor(7, math.sqrt(10.5 / 4), num_commits=3)
    assert floor.degrees_of_freedom == 4


def test_an_outlier_is_left_out() -> None:
    # Differences 0.01 0.02 0.03 and 0.24 0.25 0.27: the lower median 0.03 gives sd 0.03145, and
    # 6 sd are 0.189, less than the 0.245 between -0.26 and the median, -0.005.
    floor = noise_floor([[0.0, 0.01, -0.02, -0.26]])
    # Mean -1/300: squares 1/90,000 + 16/90,000 + 25/90,000 over two.
    assert floor == NoiseFloor(3, pytest.approx(math.sqrt(42 / 90_000 / 2)), 1, 1)


def test_how_far_an_outlier_is() -> None:
    # Four of five within 0.02: differences 0.01 x 3, 0.02 x 2, 0.03; those of the fifth are larger.
    # The fifth of ten in order is 0.02, so 6 sd are 6 x 0.02 / 0.953873 = 0.1258.
    for far, outliers in ((0.12, 0), (0.13, 1)):
        floor = noise_floor([[-0.01, 0.0, 0.01, 0.02, 0.01 + far]])
        assert floor is not None
        assert floor.num_outliers == outliers


def test_below_three_degrees_of_freedom_nothing_is_an_outlier() -> None:
    assert noise_floor([[0.0, 0.001], [0.0, 1.0]]) == NoiseFloor(
        4, pytest.approx(math.sqrt(0.5000005 / 2)), 2
    )


def test_of_a_pair_both_may_go() -> None:
    pairs = [[0.0, 0.01], [1.0, 1.01], [2.0, 2.01], [3.0, 3.5]]
    assert noise_floor(pairs) == NoiseFloor(6, pytest.approx(0.01 / math.sqrt(2)), 3, 2)


def test_equal_repeats_have_no_spread_and_make_no_neighbour_an_outlier() -> None:
    assert noise_floor([[1.0] * 5]) == NoiseFloor(5, 0.0)
    # 6 x 0.0005 at most.
    for last, outliers in ((1.0029, 0), (1.0031, 1)):
        floor = noise_floor([[1.0, 1.0, 1.0, 1.0, last]])
        assert floor is not None
        assert floor.num_outliers == outliers


def test_many_repeats_cost_no_more_than_their_number() -> None:
    floor = noise_floor([[0.01 * (at % 2) for at in range(100 * FARTHEST)]])
    assert floor is not None
    # Half at 0, half at 0.01: squares n x 0.005^2, over n - 1.
    count = 100 * FARTHEST
    assert floor.log_sd == pytest.approx(0.005 * math.sqrt(count / (count - 1)))
