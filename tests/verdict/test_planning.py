"""The number that is said to settle it does, and one less does not."""

from __future__ import annotations

import math

import pytest

from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.planning import captures_needed, steps_needed
from marin_profile.verdict.student import t_quantile


def settles(estimate: float, threshold: float, error: float, freedom: float) -> bool:
    near, far = (float(t_quantile(one, freedom)) * error for one in (0.975, 0.995))
    return estimate + near < threshold or estimate - far > 0


@pytest.mark.parametrize("estimate", [-0.01, 0.0, 0.03, 0.06])
def test_steps(estimate: float) -> None:
    error, freedom = 0.04, 9.0
    needed = steps_needed(estimate, 0.05, error, freedom, (10, 10))
    count = needed.steps_per_side
    assert count is not None
    assert count > 10
    for at, expected in ((count, True), (count - 1, False)):
        assert settles(estimate, 0.05, error * math.sqrt(10 / at), freedom * at / 10) is expected
    assert needed.sentence == f"about {count:,} steps a side would settle it"


def test_unequal_sides_count_as_their_harmonic_mean() -> None:
    one = steps_needed(0.0, 0.05, 0.04, 9.0, (10, 40))
    other = steps_needed(0.0, 0.05, 0.04, 9.0, (16, 16))
    assert one.steps_per_side == other.steps_per_side


def test_captures() -> None:
    # Two a side: error = spread, 2 degrees of freedom; k a side: spread sqrt(2 / k), 2 (k - 1).
    count = captures_needed(0.0, 0.05, 0.03, (2, 2), None).captures_per_side
    assert count is not None
    assert count > 2
    for at, expected in ((count, True), (count - 1, False)):
        assert settles(0.0, 0.05, 0.03 * math.sqrt(2 / at), 2 * (at - 1)) is expected
    with_noise = captures_needed(0.0, 0.05, 0.03, (2, 2), NoiseFloor(9, 0.03)).captures_per_side
    assert with_noise is not None
    assert with_noise < count


def test_what_nothing_would_settle() -> None:
    near = steps_needed(0.0499999, 0.05, 1.0, 9.0, (10, 10))
    assert near.steps_per_side is None
    assert "not even 10,000 steps a side" in near.sentence
    assert captures_needed(0.0499999, 0.05, 1.0, (2, 2), None).captures_per_side is None
