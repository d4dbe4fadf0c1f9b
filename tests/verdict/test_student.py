"""Quantiles of Student's t against published tables and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marin_profile.verdict.student import incomplete_beta, t_quantile, t_tail

TABLE = [  # df, 0.95, 0.975, 0.995
    (1, 6.313751515, 12.706204736, 63.656741162),
    (2, 2.919985580, 4.302652730, 9.924843201),
    (3, 2.353363435, 3.182446305, 5.840909310),
    (4, 2.131846786, 2.776445105, 4.604094871),
    (5, 2.015048373, 2.570581836, 4.032142984),
    (10, 1.812461123, 2.228138852, 3.169272667),
    (30, 1.697260887, 2.042272456, 2.749995654),
    (100, 1.660234326, 1.983971519, 2.625890521),
]


def test_the_table() -> None:
    df = [row[0] for row in TABLE]
    for column, probability in enumerate((0.95, 0.975, 0.995), 1):
        expected = [row[column] for row in TABLE]
        assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.995, 0.9999])
def test_closed_forms(probability: float) -> None:
    cauchy = math.tan(math.pi * (probability - 0.5))
    two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert t_quantile(probability, [1.0, 2.0]) == pytest.approx([cauchy, two], rel=1e-8)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    # Fisher's expansion: t = z + (z^3 + z) / (4 df) + ...
    z, df = 1.959963984540054, 1e6
    assert float(t_quantile(0.975, df)) == pytest.approx(z + (z**3 + z) / (4 * df), rel=1e-9)


def test_quantiles_of_fractional_df_lead_back() -> None:
    df = np.linspace(1.0, 60.0, 237)
    assert t_tail(t_quantile(0.995, df), df) == pytest.approx(np.full(237, 0.005), rel=1e-9)
    assert (np.diff(t_quantile(0.995, df)) < 0).all()


def test_incomplete_beta() -> None:
    x = np.linspace(0.0, 1.0, 11)
    assert incomplete_beta(1, 1, x) == pytest.approx(x)
    assert incomplete_beta(3, 1, x) == pytest.approx(x**3)
    assert incomplete_beta(2, 2, x) == pytest.approx(3 * x**2 - 2 * x**3)
    # I_x(a, n - a + 1) is the chance of at least a successes in n trials.
    binomial = [math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(11)]
    assert float(incomplete_beta(4, 7, 0.3)) == pytest.approx(sum(binomial[4:]))
