"""Quantiles and means with their variances, against a brute-force integral and plain sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict.memory import mean_variance_factor
from marin_profile.verdict.quantities import log_quantile, log_quantile_variance, mean_variance


def maritz_jarrett_by_hand(values: Sequence[float], probability: float) -> float:
    """The beta density of rank (n + 1) p, integrated over each order statistic's n-th part."""
    n = len(values)
    m = (n + 1) * probability
    grid = (np.arange(320_000) + 0.5) / 320_000
    density = grid ** (m - 1) * (1 - grid) ** (n - m)
    chance = density.reshape(n, -1).sum(axis=1) / density.sum()
    ordered = np.sort(values)
    mean = float(chance @ ordered)
    return float(chance @ (ordered - mean) ** 2)


def test_a_quantile_is_interpolated() -> None:
    assert math.exp(log_quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.5)) == pytest.approx(2.5)
    assert math.exp(log_quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.9)) == pytest.approx(3.7)


@pytest.mark.parametrize("steps", [16, 25])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_the_variance_of_a_quantile(probability: float, phi: float, steps: int) -> None:
    values = noisy(3, steps)
    found = log_quantile_variance(np.array(values), probability, phi)
    expected = maritz_jarrett_by_hand(np.log(values).tolist(), probability)
    assert found.value == pytest.approx(expected * mean_variance_factor(phi, steps), rel=1e-4)
    assert found.degrees_of_freedom == pytest.approx((steps - 1) * (1 - phi) / (1 + phi))


def test_the_variance_of_a_mean() -> None:
    """Squares 7 x 1.5^2 - the products; phi as of one capture, by hand."""
    values = np.array([1.0, 1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0])
    # Residuals -1.5 four times, then 1.5: raw (6 - 1) / 8; corrected (5 + 1) / 5; drawn.
    phi = min((8 * 1.2 + 12 * 0.5) / 20, 0.95)
    factor = 1 + 2 * sum((1 - lag / 8) * phi**lag for lag in range(1, 8))
    found = mean_variance(values)
    assert found.value == pytest.approx(8 * 2.25 / (8 - factor) * factor / 8)
    assert found.degrees_of_freedom == pytest.approx(max(1.0, 7 * (1 - phi) / (1 + phi)))
    # Alternating values are taken for independent: s^2 / n.
    alternating = mean_variance(np.array([1.0, 4.0] * 4))
    assert alternating.value == pytest.approx(8 * 2.25 / 7 / 8)
    assert alternating.degrees_of_freedom == pytest.approx(7.0)


@pytest.mark.parametrize("steps", [1, 5])
def test_too_few_steps_have_no_variance(steps: int) -> None:
    values = np.linspace(1.0, 2.0, steps)
    assert math.isnan(mean_variance(values).value)
    assert math.isnan(log_quantile_variance(values, 0.5, 0.0).value)
    more = np.linspace(1.0, 2.0, 6)
    assert mean_variance(more).value > 0
    assert log_quantile_variance(more, 0.5, 0.0).value > 0


def test_no_fewer_than_one_degree_of_freedom() -> None:
    ramp = mean_variance(np.arange(7.0))
    assert ramp.degrees_of_freedom == 1.0
    assert log_quantile_variance(np.arange(1.0, 8.0), 0.5, 0.95).degrees_of_freedom == 1.0
