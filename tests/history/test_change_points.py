"""Shifts are found where they are; noise, drift below notice and lone outliers are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marin_profile.history.change_points import change_points

RUNS = 1000


def places(values: list[float]) -> list[int]:
    return [point.index for point in change_points(values)]


@pytest.mark.parametrize("count", range(6))
def test_below_six_values_nothing_is_reported(count: int) -> None:
    assert change_points([0.0, 0.0, 0.0, 1.0, 1.0][:count]) == []


def test_a_clean_step_of_six_values() -> None:
    [point] = change_points([2.0, 2.0, 2.0, 2.1, 2.1, 2.1])
    assert (point.index, point.level_before, point.level_after) == (3, 2.0, pytest.approx(2.1))
    assert point.ratio == pytest.approx(math.exp(0.1))
    # t = 0.1 / (0.0005 sqrt(2/3)) = 244.9 with four degrees of freedom: p = 1.7e-9
    assert 1e-9 < point.p < 1e-8


def test_t_and_p_by_hand() -> None:
    # Means 0 and 0.1, each side's squares 2 * 0.01^2: sd 0.01, se 0.01 sqrt(2/3), t = 12.25.
    values = [-0.01, 0.0, 0.01, 0.09, 0.1, 0.11]
    [point] = change_points(values)
    # Of six values no autocorrelation is known, and it is taken for 0.5: the mean of three varies
    # as 1 + 2 (2/3 x 0.5 + 1/3 x 0.25) = 11/6 of what independent ones would.
    t = 12.247449 / math.sqrt(11 / 6)
    # Four degrees: p = 1 - 1.5 s + 0.5 s^3 with s = t / sqrt(4 + t^2).
    s = t / math.sqrt(4 + t * t)
    assert point.p == pytest.approx(1 - 1.5 * s + 0.5 * s**3, rel=1e-3)


def test_constant_and_small_shifts_are_none() -> None:
    assert places([1.0] * 50) == []
    assert places([0.0] * 20 + [0.0099] * 20) == []
    assert places([0.0] * 20 + [0.0101] * 20) == [20]


def test_a_bump_and_what_follows() -> None:
    assert places([0.0] * 20 + [0.05] * 5 + [0.0] * 20) == [20, 25]
    assert places([0.0] * 9 + [0.05] * 9 + [0.1] * 9) == [9, 18]


@pytest.mark.parametrize("outlier", [6, 7, 9, 10])
def test_an_outlier_beside_a_change_does_not_move_it(outlier: int) -> None:
    noise = np.random.default_rng(9).normal(0, 0.003, 18)
    noise[9:] += 0.07
    noise[outlier] += 0.4
    assert places(noise.tolist()) == [9]


def test_outliers_are_no_level() -> None:
    noise = np.random.default_rng(7).normal(0, 0.01, 40).tolist()
    for at in (0, 10, 12, 39):
        noise[at] += 0.4
    assert places(noise) == []


def test_a_shift_is_a_shift_in_any_unit_and_both_ways() -> None:
    noise = np.random.default_rng(5).normal(0, 0.01, 40)
    noise[25:] += 0.05
    assert (
        places(noise.tolist()) == places((noise + 10).tolist()) == places((-noise).tolist()) == [25]
    )
    assert [40 - at for at in places(noise[::-1].tolist())] == [25]


@pytest.mark.parametrize("count", [6, 30])
def test_false_alarms_on_noise_are_at_most_one_in_a_hundred(count: int) -> None:
    rng = np.random.default_rng(11)
    found = sum(bool(change_points(rng.normal(0, 0.03, count).tolist())) for _ in range(RUNS))
    # 1 % and two standard errors of the simulation
    assert found <= 0.01 * RUNS + 2 * math.sqrt(0.01 * RUNS)


@pytest.mark.parametrize(
    ("cv", "after", "least"), [(0.01, 5, 0.97), (0.02, 10, 0.9), (0.03, 20, 0.7)]
)
def test_five_per_cent_are_found(cv: float, after: int, least: float) -> None:
    rng = np.random.default_rng(13)
    hits = 0
    for _ in range(200):
        values = rng.normal(0, cv, 30 + after)
        values[30:] += math.log(1.05)
        found = places(values.tolist())
        hits += len(found) == 1 and abs(found[0] - 30) <= 3
    assert hits >= 200 * least
