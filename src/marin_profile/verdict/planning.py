"""How many steps or captures would settle an inconclusive verdict on the estimated change.

Contract: the same number on both sides. A verdict is settled when the 95 % interval ends below the
threshold, or the one-sided 99.5 % bound passes zero, whichever needs less; with the spread and the
autocorrelation as measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from marin_profile.verdict.estimate import CERTAIN, INTERVAL
from marin_profile.verdict.model import Needed
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.series import LEAST_STEPS
from marin_profile.verdict.student import t_quantile

ADVISED_STEPS = 25
MOST_STEPS_NEEDED = 10_000
MOST_CAPTURES_NEEDED = 100

Error = Callable[[int], tuple[float, float]]  # number a side -> standard error, df


def more_than_nothing() -> Needed:
    return Needed(
        steps_per_side=ADVISED_STEPS,
        sentence=(
            f"capture at least {LEAST_STEPS} steps a side with their periods, better "
            f"{ADVISED_STEPS}"
        ),
    )


def steps_needed(
    estimate: float, threshold: float, error: float, freedom: float, steps: tuple[int, int]
) -> Needed:
    """`estimate` and `threshold` as logarithms; the error is that of `steps` (before, after)."""
    now = 2.0 / (1.0 / steps[0] + 1.0 / steps[1])

    def scaled(count: int) -> tuple[float, float]:
        return error * math.sqrt(now / count), max(1.0, freedom * count / now)

    count = _least(scaled, estimate, threshold, min(steps) + 1, MOST_STEPS_NEEDED)
    if count is None:
        return Needed(sentence=_hopeless(MOST_STEPS_NEEDED, "steps"))
    return Needed(steps_per_side=count, sentence=f"about {count:,} steps a side would settle it")


def captures_needed(
    estimate: float,
    threshold: float,
    error: float,
    captures: tuple[int, int],
    noise: NoiseFloor | None,
) -> Needed:
    spread = error / math.sqrt(1.0 / captures[0] + 1.0 / captures[1])
    repeats = noise.degrees_of_freedom if noise else 0

    def scaled(count: int) -> tuple[float, float]:
        return spread * math.sqrt(2.0 / count), max(1.0, 2.0 * (count - 1) + repeats)

    count = _least(scaled, estimate, threshold, max(2, min(captures) + 1), MOST_CAPTURES_NEEDED)
    if count is None:
        return Needed(sentence=_hopeless(MOST_CAPTURES_NEEDED, "captures"))
    return Needed(
        captures_per_side=count, sentence=f"about {count:,} captures a side would settle it"
    )


def _hopeless(most: int, noun: str) -> str:
    return f"not even {most:,} {noun} a side would settle it: the change is too near the threshold"


def _least(error: Error, estimate: float, threshold: float, first: int, most: int) -> int | None:
    def settles(count: int) -> bool:
        width, freedom = error(count)
        near, far = (float(t_quantile(one, freedom)) * width for one in (INTERVAL, CERTAIN))
        return estimate + near < threshold or estimate - far > 0

    if not settles(most):
        return None
    low, high = first - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle) else (middle, high)
    return high
