"""What neighbouring steps have in common, against plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict.memory import (
    autocorrelation,
    independent_steps,
    mean_variance_factor,
    slow_variance,
)


def factor_by_hand(phi: float, count: int) -> float:
    """1 + 2 sum over lags of (1 - lag / n) phi^lag."""
    return 1 + 2 * sum((1 - lag / count) * phi**lag for lag in range(1, count))


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("count", [2, 7, 40])
def test_the_variance_of_a_mean(phi: float, count: int) -> None:
    assert mean_variance_factor(phi, count) == pytest.approx(factor_by_hand(phi, count))


def test_the_coefficient_of_three_captures_by_hand() -> None:
    """Products -3, 8 and 0, squares 4, 9 and 0, 20 steps."""
    captures = [np.array([1.0, -1.0, 1.0, -1.0]), np.ones(9), np.zeros(7)]
    corrected = (20 * 5 / 13 + 3) / (20 - 9)
    assert autocorrelation(captures) == pytest.approx((20 * corrected + 12 * 0.5) / 32)
    assert autocorrelation(captures, prior_steps=0.0) == 0.95
    captures = [np.array([1.0, -1.0, 1.0, -1.0]), np.array([2.0, 2.0, -1.0, -3.0] * 2)]
    # Products -3 and 2 (4 - 2 + 3) - 6, squares 4 and 36.
    corrected = (12 * 1 / 40 + 2) / (12 - 6)
    assert autocorrelation(captures, prior_steps=0.0) == pytest.approx(corrected)
    assert autocorrelation(captures) == pytest.approx((12 * corrected + 12 * 0.5) / 24)


def test_alternating_steps_are_taken_for_independent() -> None:
    assert autocorrelation([np.array([1.0, -1.0] * 20)]) == 0.0


def test_nothing_that_varies_has_no_memory() -> None:
    assert autocorrelation([]) == 0.0
    assert autocorrelation([np.zeros(8)]) == 0.0


def test_the_coefficient_is_found() -> None:
    logs = [np.log(noisy(seed, 50, phi=0.6)) for seed in range(400)]
    residuals = [one - one.mean() for one in logs]
    assert autocorrelation(residuals, prior_steps=0.0) == pytest.approx(0.6, abs=0.02)


def test_independent_steps() -> None:
    assert independent_steps(0.5, 30) == pytest.approx(10.0)
    assert independent_steps(0.0, 30) == 30.0


@pytest.mark.parametrize("wave", [1, 2, 3, 4])
def test_a_wave_alone(wave: int) -> None:
    """The squares of n cosines sum to n / 2, and different waves' products to nothing."""
    steps = np.arange(40)
    residuals = 0.3 * np.cos(math.pi * wave * (steps + 0.5) / 40)
    expected = 2 / 40 * (0.3 * 20) ** 2 / 3 if wave <= 3 else 0.0
    assert slow_variance(residuals) == pytest.approx(expected, abs=1e-12)


def test_of_independent_steps_the_waves_show_the_variance_of_one() -> None:
    noise = np.random.default_rng(1).standard_normal((2000, 30))
    found = [slow_variance(one - one.mean()) for one in noise]
    assert float(np.mean(found)) == pytest.approx(1.0, abs=0.05)


def test_independent_steps_are_not_whole() -> None:
    assert independent_steps(0.5, 10) == pytest.approx(10 / 3)
    assert independent_steps(0.0, 10) == 10.0
