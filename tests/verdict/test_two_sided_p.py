"""p-values against closed forms and the printed table."""

from __future__ import annotations

import math

import pytest

from marin_profile.verdict.student import two_sided_p


@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, -40.0, 1e5])
def test_closed_forms_of_one_and_two_degrees(t: float) -> None:
    cauchy = 2 / math.pi * math.atan2(1, abs(t))
    assert two_sided_p(t, 1) == pytest.approx(cauchy, rel=1e-9)
    size = math.sqrt(2 + t * t)
    assert two_sided_p(t, 2) == pytest.approx(2 / (size * (size + abs(t))), rel=1e-9)


# Critical values of the usual printed table, two-sided.
TABLE = [
    *((4, 2.776, 0.05), (4, 8.610, 0.001), (10, 2.228, 0.05), (10, 4.587, 0.001)),
    *((30, 2.750, 0.01), (30, 3.646, 0.001), (100, 3.390, 0.001), (1e6, 1.960, 0.05)),
]


@pytest.mark.parametrize(("dof", "t", "p"), TABLE)
def test_the_printed_table(dof: float, t: float, p: float) -> None:
    assert two_sided_p(t, dof) == pytest.approx(p, rel=2e-3)


def test_the_far_end() -> None:
    assert two_sided_p(math.inf, 5) == 0.0
    assert 0 < two_sided_p(50, 40) < 1e-30
