"""The estimator against plain loops over the formulas, and against cases worked out by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from builders_verdict import noisy
from marin_profile.verdict.estimate import ChangeEstimate, change_of_location, change_of_quantile
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.series import Series, autocorrelation, mean_variance_factor, trimmed


def series(values: Sequence[float], classes: Sequence[str] | None = None) -> Series:
    return Series(np.array([values], np.float64), tuple(classes or ("",) * len(values)))


def factor_by_hand(phi: float, count: float) -> float:
    """1 + 2 sum over lags of (1 - lag / n) phi^lag."""
    return 1 + 2 * sum((1 - lag / count) * phi**lag for lag in range(1, int(count)))


def winsorised_by_hand(values: Sequence[float], low: int, high: int) -> list[float]:
    ordered = sorted(values)
    return [min(max(value, ordered[low]), ordered[-1 - high]) for value in values]


def located_by_hand(
    values: Sequence[float], low: int, high: int, phi: float
) -> tuple[float, float, float]:
    """Trimmed mean, its variance, degrees of freedom; of one class."""
    n, h = len(values), len(values) - low - high
    cut = winsorised_by_hand(values, low, high)
    raw = sum((value - statistics.fmean(cut)) ** 2 for value in cut)
    factor = factor_by_hand(phi, n)
    yuen = raw / (h * (h - 1))
    freedom = (h - 1) / (1 + 0.15 * (1 + phi) / (1 - phi))
    mean = statistics.fmean(sorted(values)[low : n - high])
    return mean, yuen * factor * (n - 1) / (n - factor), freedom


def phi_by_hand(sides: Sequence[Sequence[float]]) -> float:
    """Of winsorised values."""
    product = square = 0.0
    for values in sides:
        residuals = [value - statistics.fmean(values) for value in values]
        product += sum(a * b for a, b in pairwise(residuals))
        square += sum(value**2 for value in residuals)
    n = sum(map(len, sides))
    corrected = (n * product / square + len(sides)) / (n - 3 * len(sides))
    return min(max((n * corrected + 6.0) / (n + 12.0), 0.0), 0.9)


def test_the_formulas_in_plain_loops() -> None:
    before = np.log(noisy(1, 20, phi=0.5)).tolist()
    after = np.log(noisy(2, 14, typical=1040.0, phi=0.5)).tolist()
    phi = phi_by_hand([winsorised_by_hand(before, 2, 4), winsorised_by_hand(after, 2, 3)])
    assert 0 < phi < 0.9
    first, second = located_by_hand(before, 2, 4, phi), located_by_hand(after, 2, 3, phi)
    variance = first[1] + second[1]
    change = change_of_location([series(before)], [series(after)])
    assert change.phi[0] == pytest.approx(phi)
    assert change.estimate[0] == pytest.approx(second[0] - first[0])
    assert change.standard_error[0] == pytest.approx(math.sqrt(variance))
    assert change.degrees_of_freedom[0] == pytest.approx(
        variance**2 / (first[1] ** 2 / first[2] + second[1] ** 2 / second[2])
    )
    assert not change.between[0]


def test_runs_beside_each_other_are_runs_alone() -> None:
    sides = [np.log([noisy(10 * run + side, 12) for run in range(5)]) for side in (1, 2)]
    sides[0][2, 3] += 0.5  # one step far out
    together = change_of_location(*([Series(side, ("",) * 12)] for side in sides))
    for run in range(5):
        alone = change_of_location([series(sides[0][run])], [series(sides[1][run])])
        for name in ("estimate", "standard_error", "degrees_of_freedom", "phi"):
            assert getattr(together, name)[run] == pytest.approx(getattr(alone, name)[0])


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.9])
def test_the_variance_of_a_mean(phi: float) -> None:
    for count in (2, 7, 40):
        by_hand = factor_by_hand(phi, count)
        assert mean_variance_factor(np.array(phi), count) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(1, (0, 0)), (3, (0, 0)), (4, (1, 1)), (8, (2, 2)), (9, (2, 2)), (10, (2, 3)), (25, (2, 4)),
     (50, (3, 7)), (400, (12, 42))],
)  # fmt: skip
def test_how_many_are_trimmed(steps: int, expected: tuple[int, int]) -> None:
    assert trimmed(steps) == expected


def test_a_trimmed_mean() -> None:
    one = series([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    # Two off either end, 3 to 6 are left; winsorised: 6 3 3 3 4 5 6 6, of mean 4.5.
    assert one.location({"": 1.0})[0] == pytest.approx(4.5)
    assert one.residuals[0].tolist() == pytest.approx([1.5, -1.5, -1.5, -1.5, -0.5, 0.5, 1.5, 1.5])


def test_equal_steps_have_no_error() -> None:
    change = change_of_location([series([5.0] * 8)], [series([5.25] * 8)])
    assert (change.estimate[0], change.standard_error[0]) == (0.25, 0.0)


def test_autocorrelation_is_found() -> None:
    runs = [np.log([noisy(seed + 1000 * side, 50, phi=0.5) for seed in range(400)]) for side in
            (1, 2)]  # fmt: skip
    phi = autocorrelation([Series(side, ("",) * 50) for side in runs])
    assert float(phi.mean()) == pytest.approx(0.5, abs=0.02)


def test_like_classes_against_like() -> None:
    # light 1 -> 1, heavy 3 -> 3; the mix goes from 6 + 2 to 4 + 4.
    before = series([0.9, 1.1, 1.0, 1.0, 0.9, 1.1, 2.9, 3.1], ["l"] * 6 + ["h"] * 2)
    after = series([0.9, 1.1, 0.9, 1.1, 2.9, 3.1, 2.9, 3.1], ["l"] * 4 + ["h"] * 4)
    change = change_of_location([before], [after])
    # Weights 10/16 and 6/16 on both sides.
    assert change.before[0] == pytest.approx(10 / 16 + 3 * 6 / 16)
    assert change.estimate[0] == pytest.approx(0.0)
    # Without classes on one side all are compared with all, two off either end.
    without = change_of_location([series(before.values[0])], [after])
    assert without.before[0] == pytest.approx((1.0 + 1.0 + 1.1 + 1.1) / 4)
    assert without.after[0] == pytest.approx((1.1 + 1.1 + 2.9 + 2.9) / 4)


def test_the_variance_with_classes() -> None:
    one = series([0.9, 1.1, 1.0, 1.0, 0.9, 1.1, 2.9, 3.1], ["l"] * 6 + ["h"] * 2)
    phi = np.array([0.0])
    # light: one off either end leaves 4 of 6; winsorised squares 4 x 0.01, times 6 x 5 / (4 x 3).
    # heavy: squares 2 x 0.01. Of 8 - 2 free.
    spread = (0.04 * 30 / 12 + 0.02) / 6
    weights = {"l": 0.5, "h": 0.5}
    assert one.location_variance(weights, phi)[0] == pytest.approx(spread * (0.25 / 6 + 0.25 / 2))


def test_captures_against_captures_are_a_two_sample_t_test() -> None:
    # Side means 2 and 7, squares 2 and 8, pooled 10 / 4, error sqrt(2.5 (1/3 + 1/3)).
    change = change_of_location(
        [series([value]) for value in (1.0, 2.0, 3.0)],
        [series([value]) for value in (5.0, 7.0, 9.0)],
    )
    assert change.between[0]
    assert change.estimate[0] == 5.0
    assert change.degrees_of_freedom[0] == 4
    assert change.half_width(0.975)[0] == pytest.approx(2.776445105 * math.sqrt(2.5 * 2 / 3))


def test_the_wider_of_the_two_errors_counts() -> None:
    def spread(typical: float, width: float) -> Series:
        return series([typical - width, typical + width] * 6)

    quiet = [spread(typical, 0.001) for typical in (1.0, 1.1, 1.2)]
    assert change_of_location(quiet, quiet).between[0]
    loud = [spread(typical, 0.5) for typical in (1.0, 1.001, 1.002)]
    assert not change_of_location(loud, loud).between[0]


def test_a_noise_floor_widens_by_the_quantile_of_its_repeats() -> None:
    before, after = series([1.0, 1.001] * 6), series([1.02, 1.021] * 6)
    narrow = change_of_location([before], [after])
    wide = change_of_location([before], [after], NoiseFloor(5, 0.01))
    assert narrow.half_width(0.975)[0] < 0.002
    assert wide.half_width(0.975)[0] == pytest.approx(2.776445105 * 0.01 * math.sqrt(2))
    assert wide.between[0]
    same = change_of_location([before], [after], NoiseFloor(5, 1e-9))
    assert same.half_width(0.975)[0] == narrow.half_width(0.975)[0]


def test_a_noise_floor_and_captures_pool() -> None:
    sides = [[series([value]) for value in pair] for pair in ((1.0, 3.0), (2.0, 6.0))]
    change = change_of_location(sides[0], sides[1], NoiseFloor(4, 2.0))
    # Squares 2 + 8 + 3 x 4, degrees 1 + 1 + 3.
    assert change.degrees_of_freedom[0] == 5
    assert change.standard_error[0] == pytest.approx(math.sqrt(22 / 5))


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_too_few_steps_have_no_interval(steps: int) -> None:
    values = np.linspace(1.0, 1.1, steps).tolist()
    change = change_of_location([series(values)], [series([1.0, 1.1] * 6)])
    assert np.isinf(change.half_width(0.975)[0])


def maritz_jarrett_by_hand(values: Sequence[float], probability: float) -> float:
    """The beta density of rank (n + 1) p, integrated over each order statistic's n-th part."""
    n = len(values)
    m = (n + 1) * probability
    grid = (np.arange(2_000_000) + 0.5) / 2_000_000
    density = grid ** (m - 1) * (1 - grid) ** (n - m)
    chance = density.reshape(n, -1).sum(axis=1) / density.sum()
    ordered = np.sort(values)
    mean = float(chance @ ordered)
    return float(chance @ (ordered - mean) ** 2)


def test_the_variance_of_a_quantile() -> None:
    values = np.log(noisy(3, 16)).tolist()
    phi = np.array([0.0])
    assert series(values).quantile_variance(0.9, phi)[0] == pytest.approx(
        maritz_jarrett_by_hand(values, 0.9), rel=1e-4
    )


def test_the_change_of_a_quantile() -> None:
    before, after = noisy(4, 30), noisy(5, 30, typical=1200.0)
    change = change_of_quantile(
        [series(np.log(before).tolist())], [series(np.log(after).tolist())], 0.9, np.array([0.0])
    )
    expected = math.log(np.quantile(after, 0.9) / np.quantile(before, 0.9))
    assert change.estimate[0] == pytest.approx(expected)
    assert 0 < change.half_width(0.975)[0] < 0.1


def test_a_change_of_nothing() -> None:
    zero = np.zeros(1)
    change = ChangeEstimate(zero, zero, zero, np.ones(1), np.zeros(1, np.bool_), zero)
    assert (change.estimate[0], change.half_width(0.995)[0]) == (0.0, 0.0)
