"""What would settle a verdict: captures first, then how many steps each.

Contract: the same number on both sides. A change is settled when its 95 % interval ends below the
threshold, or its one-sided 99.5 % bound passes zero, whichever needs less. The number is that which
settles a change as estimated in nine of ten cases, with the spread and autocorrelation as measured.
One capture a side never shows how far runs differ: at least LEAST_CAPTURES are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from marin_profile.verdict.estimate import (
    LOOKS,
    PAIRS,
    STEPS,
    ChangeEstimate,
)
from marin_profile.verdict.model import Needed
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.paired import NINE_OF_TEN, pairs_needed
from marin_profile.verdict.sequential import FIRST_LOOK, LAST_LOOK, pairs_needed_with_looks
from marin_profile.verdict.series import LEAST_STEPS
from marin_profile.verdict.student import CERTAIN, INTERVAL, t_quantile

ADVISED_STEPS = 25
LEAST_CAPTURES = 3
MOST_STEPS_NEEDED = 10_000
MOST_CAPTURES_NEEDED = 100

Error = Callable[[int], tuple[float, float]]  # number a side -> standard error, df


def more_than_nothing() -> Needed:
    return Needed(
        captures_per_side=LEAST_CAPTURES,
        steps_per_capture=ADVISED_STEPS,
        sentence=(
            f"take {LEAST_CAPTURES} captures a side, in turn, with the periods of at least "
            f"{LEAST_STEPS} steps each, better {ADVISED_STEPS}"
        ),
    )


def to_confirm() -> Needed:
    return Needed(
        captures_per_side=LEAST_CAPTURES,
        steps_per_capture=ADVISED_STEPS,
        sentence=(
            f"{LEAST_CAPTURES} captures a side, taken in turn, would tell it from what runs differ "
            "by"
        ),
    )


def to_settle(
    change: ChangeEstimate,
    threshold: float,
    captures: tuple[int, int],
    steps: tuple[int, int],
    noise: NoiseFloor | None,
) -> Needed:
    """`threshold` as a logarithm; `steps` over all captures of a side."""
    if change.error_from == STEPS:
        return _steps_needed(change, threshold, captures, steps)
    if change.error_from == PAIRS:
        return _pairs_needed(change, threshold, captures[0])
    repeats = noise.degrees_of_freedom if noise else 0
    spread = change.standard_error / math.sqrt(1.0 / captures[0] + 1.0 / captures[1])

    def error(count: int) -> tuple[float, float]:
        freedom = 2.0 * (count - 1) + repeats
        return spread * math.sqrt(2.0 / count), max(1.0, freedom)

    noun = "captures a side"
    first = max(2, min(captures) + 1)
    count = _least(error, change.estimate, threshold, first, MOST_CAPTURES_NEEDED)
    if count is None:
        return Needed(sentence=_hopeless(MOST_CAPTURES_NEEDED, noun))
    return Needed(captures_per_side=count, sentence=f"about {count:,} {noun} would settle it")


def _pairs_needed(change: ChangeEstimate, threshold: float, now: int) -> Needed:
    if not math.isfinite(change.standard_error):
        return Needed(
            captures_per_side=FIRST_LOOK,
            sentence=f"pairs are judged from {FIRST_LOOK} to {LAST_LOOK} of them",
        )
    spread, noun = change.standard_error * math.sqrt(now), "pairs of captures"
    if change.design == LOOKS:
        count = pairs_needed_with_looks(change.estimate, threshold, spread, now)
        if count is None:
            return Needed(sentence=_hopeless(LAST_LOOK, noun))
        return Needed(
            captures_per_side=count,
            sentence=f"take another pair and look again; about {count:,} {noun} would settle it",
        )
    count = pairs_needed(change.estimate, threshold, spread, now)
    if count is None:
        return Needed(sentence=_hopeless(MOST_CAPTURES_NEEDED, noun))
    return Needed(captures_per_side=count, sentence=f"about {count:,} {noun} would settle it")


def _steps_needed(
    change: ChangeEstimate, threshold: float, captures: tuple[int, int], steps: tuple[int, int]
) -> Needed:
    now = 2.0 / (1.0 / steps[0] + 1.0 / steps[1])

    def error(count: int) -> tuple[float, float]:
        freedom = change.degrees_of_freedom * count / now
        return change.standard_error * math.sqrt(now / count), max(1.0, freedom)

    count = _least(error, change.estimate, threshold, min(steps) + 1, MOST_STEPS_NEEDED)
    if count is None:
        return Needed(sentence=_hopeless(MOST_STEPS_NEEDED, "steps a side"))
    several = max(LEAST_CAPTURES, *captures)
    each = max(ADVISED_STEPS, math.ceil(count / several))
    return Needed(
        captures_per_side=several,
        steps_per_capture=each,
        sentence=(
            f"about {several} captures a side, in turn, of {each:,} steps each would settle it"
        ),
    )


def _hopeless(most: int, noun: str) -> str:
    return f"not even {most:,} {noun} would settle it: the change is too near the threshold"


def _least(error: Error, estimate: float, threshold: float, first: int, most: int) -> int | None:
    def settles(count: int) -> bool:
        width, freedom = error(count)
        near, far = (
            (float(t_quantile(one, freedom)) + NINE_OF_TEN) * width for one in (INTERVAL, CERTAIN)
        )
        return estimate + near < threshold or estimate - far > 0

    if not settles(most):
        return None
    low, high = first - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle) else (middle, high)
    return high
