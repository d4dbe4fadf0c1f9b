"""The number that is said to settle it does, and one less does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from marin_profile.verdict.estimate import ChangeEstimate, ErrorFrom
from marin_profile.verdict.model import Needed
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.planning import more_than_nothing, to_confirm, to_settle
from marin_profile.verdict.student import t_quantile


def settles(
    estimate: float, threshold: float, error: ArrayLike, freedom: ArrayLike
) -> NDArray[np.bool_]:
    """In nine of ten cases: the estimate may fall short by 1.2816 standard errors."""
    near, far = ((t_quantile(one, freedom) + 1.2816) * np.asarray(error) for one in (0.975, 0.995))
    return np.asarray((estimate + near < threshold) | (estimate - far > 0))


def needed(
    estimate: float,
    error: float,
    freedom: float,
    error_from: ErrorFrom,
    captures: tuple[int, int] = (1, 1),
    steps: tuple[int, int] = (10, 10),
    noise: NoiseFloor | None = None,
) -> Needed:
    change = ChangeEstimate(1.0, 1.0 + estimate, error, freedom, error_from)
    return to_settle(change, 0.05, captures, steps, noise)


@pytest.mark.parametrize("estimate", [-0.01, 0.0, 0.03, 0.06])
@pytest.mark.parametrize(("captures", "steps"), [(1, 10), (4, 80)])
def test_steps(estimate: float, captures: int, steps: int) -> None:
    error, freedom = 0.06, 9.0
    found = needed(estimate, error, freedom, "steps", (captures, captures), (steps, steps))
    counts = np.arange(steps + 1, 5000)
    errors = error * np.sqrt(steps / counts)
    least = counts[np.argmax(settles(estimate, 0.05, errors, freedom * counts / steps))]
    several = max(3, captures)
    each = max(25, math.ceil(least / several))
    assert (found.captures_per_side, found.steps_per_capture) == (several, each)
    assert found.sentence == (
        f"about {several} captures a side, in turn, of {each:,} steps each would settle it"
    )


def test_at_least_one_cell_asks_for_more_than_is_advised_anyway() -> None:
    assert (needed(0.03, 0.06, 9.0, "steps").steps_per_capture or 0) > 25


def test_unequal_sides_count_as_their_harmonic_mean() -> None:
    one = needed(0.03, 0.06, 9.0, "steps", steps=(10, 40))
    assert one == needed(0.03, 0.06, 9.0, "steps", steps=(16, 16))


@pytest.mark.parametrize("noise", [None, NoiseFloor(9, 0.03)])
def test_captures(noise: NoiseFloor | None) -> None:
    """Two a side: error = spread, k a side: spread sqrt(2 / k), 2 (k - 1) degrees of freedom and
    those of the noise floor."""
    found = needed(0.0, 0.03, 2.0, "captures", (2, 2), noise=noise)
    count = found.captures_per_side
    assert count is not None
    assert count > 2
    more = 8 if noise else 0
    for at, expected in ((count, True), (count - 1, count - 1 == 2)):
        assert settles(0.0, 0.05, 0.03 * math.sqrt(2 / at), 2 * (at - 1) + more) == expected
    assert found.sentence == f"about {count} captures a side would settle it"
    assert found.steps_per_capture is None


def test_a_noise_floor_saves_captures() -> None:
    """Where few captures are needed, its degrees of freedom count."""
    one, other = (
        needed(0.0, 0.02, 2.0, "captures", (2, 2), noise=noise).captures_per_side
        for noise in (None, NoiseFloor(9, 0.02))
    )
    assert (one, other) == (5, 4)


def test_pairs() -> None:
    """Four pairs have 3 degrees of freedom, k of them error 0.06 sqrt(4 / k) and k - 1."""
    found = needed(0.01, 0.06, 3.0, "pairs", (4, 4))
    least = next(
        count
        for count in range(5, 100)
        if settles(0.01, 0.05, 0.06 * math.sqrt(4 / count), count - 1)
    )
    assert found.captures_per_side == least
    assert found.sentence == f"about {least} pairs of captures would settle it"


def test_captures_of_unequal_sides() -> None:
    """1 / 2 + 1 / 6 = 2 / 3: the spread is 0.03 sqrt(1.5)."""
    count = needed(0.0, 0.03, 1.0, "captures", (2, 6)).captures_per_side
    spread = 0.03 * math.sqrt(1.5)
    least = next(
        k for k in range(3, 100) if settles(0.0, 0.05, spread * math.sqrt(2 / k), 2 * (k - 1))
    )
    assert count == least


@pytest.mark.parametrize(
    ("error_from", "words"),
    [
        ("steps", "not even 10,000 steps a side"),
        ("captures", "not even 100 captures a side"),
        ("pairs", "not even 100 pairs of captures"),
    ],
)
def test_what_nothing_would_settle(error_from: ErrorFrom, words: str) -> None:
    found = needed(0.0499999, 1.0, 9.0, error_from, (2, 2))
    assert (found.captures_per_side, found.steps_per_capture) == (None, None)
    assert found.sentence == f"{words} would settle it: the change is too near the threshold"


def test_what_is_asked_for_without_a_number() -> None:
    assert more_than_nothing().sentence == (
        "take 3 captures a side, in turn, with the periods of at least 6 steps each, better 25"
    )
    assert to_confirm().sentence == (
        "3 captures a side, taken in turn, would tell it from what runs differ by"
    )
    for one in (more_than_nothing(), to_confirm()):
        assert (one.captures_per_side, one.steps_per_capture) == (3, 25)
