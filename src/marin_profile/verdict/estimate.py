"""The change from before to after of the typical and of the mean step, and its error.

Contract
* A change is the difference of the sides' values (logarithms), a side's being the mean over its
  captures.
* Its error is known in two ways, and the wider interval counts: from the steps within the captures,
  and from captures against captures: each side's own variance (Welch 1947), with a noise floor
  pooled with it, unless the captures spread more than the floor allows; or, of captures taken in
  turn, the variance of the differences of pairs, in which a drift common to both cancels.
* Where a capture holds too few independent steps to show how they are correlated, what captures of
  both sides (or pairs) show stands alone: they differ by their steps' noise as well.
* Where neither is known the interval is infinite, never narrow.
* `drifts`: the steps of the captures remember longer than a few steps; then the error from the
  steps stands on the slowest waves alone, and what it says is not to be relied on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from marin_profile.verdict import memory, sequential
from marin_profile.verdict.noise import Floors, NoiseFloor
from marin_profile.verdict.paired import paired_change
from marin_profile.verdict.series import (
    LEAST_STEPS,
    SortedSteps,
    StepSeries,
    Variance,
    sort_steps,
    stray_rate,
    summed,
)
from marin_profile.verdict.student import CERTAIN, INTERVAL, Floats, f_tail, t_quantile

# The chance of so much slow variance in steps without long memory, from which on they drift. Short
# series show less of it, by about this many steps' part.
DRIFT_CHANCE = 0.01
HIDDEN_STEPS = 12
# Shorter series cannot show how long they remember.
LEAST_DRIFT_STEPS = 24
# With fewer independent steps a capture, how correlated they are is not known.
LEAST_INDEPENDENT = 3.3
# The chance of spreads as unlike as a side's and the floor's, from which on they are not pooled.
UNLIKE_CHANCE = 0.05


# How the captures were taken: any, in turn (pairs), or in turn and judged after each pair.
Design = Literal["captures", "pairs", "looks"]
LOOKS: Final = "looks"
STEPS: Final = "steps"
CAPTURES: Final = "captures"
PAIRS: Final = "pairs"
ErrorFrom = Literal["steps", "captures", "pairs"]


@dataclass(frozen=True)
class ChangeEstimate:
    """Logarithms, or a quantity per step. `error_from`: steps within the captures, captures (and
    the noise floor), or pairs of captures. A standard error of infinity: not known."""

    before: float
    after: float
    standard_error: float
    degrees_of_freedom: float
    error_from: ErrorFrom
    design: Design = "captures"

    @property
    def estimate(self) -> float:
        return self.after - self.before

    @property
    def interval_half_width(self) -> float:
        """Half the 95 % interval."""
        return self._half_width(INTERVAL, sequential.INTERVAL_EACH_LOOK)

    @property
    def certain_half_width(self) -> float:
        """The distance to a one-sided 99.5 % bound."""
        return self._half_width(CERTAIN, sequential.CERTAIN_EACH_LOOK)

    def _half_width(self, probability: float, each_look: float) -> float:
        chosen = 1.0 - each_look if self.design == LOOKS else probability
        return half_width(self.standard_error, self.degrees_of_freedom, chosen)


@dataclass(frozen=True)
class StepChange:
    """Both estimands and what slow steps add to the mean, in typical steps; the autocorrelation of
    the steps, whether they remember longer than that, and how much strays come together."""

    typical: ChangeEstimate
    mean: ChangeEstimate
    slow_cost: ChangeEstimate
    phi: float
    drifts: bool
    stray_phi: float
    sides: tuple[tuple[SortedSteps, ...], tuple[SortedSteps, ...]]


def change_of_steps(
    before: Sequence[StepSeries],
    after: Sequence[StepSeries],
    floors: Floors | None = None,
    *,
    design: Design = CAPTURES,
) -> StepChange:
    """Of other designs than "captures", the captures belong together one by one, in this order."""
    floors = floors or Floors()
    captures = sort_steps([*before, *after])
    long = [one for one in captures if one.series.steps >= LEAST_STEPS]
    typical_phi = memory.autocorrelation([one.residuals for one in long])
    cores = [one.core for one in long if len(one.core) >= LEAST_STEPS]
    phi = max(typical_phi, memory.autocorrelation(cores))
    # Several captures a side show by themselves how far slow changes move them.
    alone = min(len(before), len(after)) == 1
    drifts = alone and _drifts(cores, phi)
    strays = stray_rate(captures)
    few_steps = any(are_few(memory.independent_steps(phi, len(one.core))) for one in captures)
    split = len(before)

    def combined(
        values: list[float], variances: list[Variance], floor: NoiseFloor | None = None
    ) -> ChangeEstimate:
        return combine(
            (values[:split], values[split:]),
            (variances[:split], variances[split:]),
            floor,
            design=design,
            few_steps=few_steps,
        )

    return StepChange(
        typical=combined(
            [one.typical for one in captures],
            [one.typical_variance(typical_phi, drifts) for one in captures],
            floors.typical,
        ),
        mean=combined(
            [one.mean for one in captures],
            [one.mean_variance(phi, drifts, strays) for one in captures],
            floors.mean,
        ),
        slow_cost=combined(
            [one.slow_cost for one in captures],
            [one.slow_cost_variance(strays) for one in captures],
        ),
        phi=phi,
        drifts=drifts,
        stray_phi=strays.phi,
        sides=(tuple(captures[:split]), tuple(captures[split:])),
    )


def _drifts(residuals: Sequence[Floats], phi: float) -> bool:
    """Whether the slowest waves hold more than steps of this phi give them, or too few independent
    steps are left."""
    residuals = [one for one in residuals if len(one) >= LEAST_DRIFT_STEPS]
    if any(are_few(memory.independent_steps(phi, len(one))) for one in residuals):
        return True
    slow = expected = 0.0
    for one in residuals:
        factor = memory.mean_variance_factor(phi, len(one))
        slow += memory.slow_variance(one) / (1.0 - HIDDEN_STEPS / len(one))
        expected += float(one @ one) / (len(one) - factor) * factor
    if expected <= 0:
        return False
    waves = memory.WAVES * len(residuals)
    return f_tail(slow / expected, waves, sum(map(len, residuals))) < DRIFT_CHANCE


def are_few(independent_steps: float) -> bool:
    """Whether a capture of so many cannot show how correlated they are."""
    return independent_steps < LEAST_INDEPENDENT


def combine(
    values: tuple[Sequence[float], Sequence[float]],
    variances: tuple[Sequence[Variance], Sequence[Variance]],
    noise: NoiseFloor | None = None,
    *,
    design: Design = CAPTURES,
    few_steps: bool = False,
) -> ChangeEstimate:
    """One value and one variance (of the value, from its steps) for each capture of each side.
    `few_steps`: too few to know those variances, see `are_few`."""
    before, after = (math.fsum(side) / len(side) for side in values)
    within = summed(
        [
            Variance(one.value / len(side) ** 2, one.degrees_of_freedom)
            for side in variances
            for one in side
        ]
    )
    if design == LOOKS and not sequential.FIRST_LOOK <= len(values[0]) <= sequential.LAST_LOOK:
        return ChangeEstimate(before, after, math.inf, 1.0, PAIRS, design)
    between = _between(values, noise) if design == CAPTURES else _of_pairs(values)
    chosen: Variance = within
    error_from: ErrorFrom = STEPS
    measured = design != CAPTURES or min(map(len, values)) > 1
    if between is not None and ((few_steps and measured) or not _width(between) < _width(within)):
        chosen, error_from = between, CAPTURES if design == CAPTURES else PAIRS
    error = math.inf if math.isnan(chosen.value) else math.sqrt(chosen.value)
    return ChangeEstimate(before, after, error, chosen.degrees_of_freedom, error_from, design)


def _width(variance: Variance) -> float:
    """Half the 95 % interval; -1 where the variance is not known."""
    if math.isnan(variance.value):
        return -1.0
    return half_width(math.sqrt(variance.value), variance.degrees_of_freedom, INTERVAL)


def _of_pairs(values: tuple[Sequence[float], Sequence[float]]) -> Variance | None:
    differences = [after - before for before, after in zip(*values, strict=True)]
    error = paired_change(differences, math.nan).between
    if math.isnan(error.standard_error):
        return None
    return Variance(float(error.standard_error) ** 2, float(error.degrees_of_freedom))


def _between(
    values: tuple[Sequence[float], Sequence[float]], noise: NoiseFloor | None
) -> Variance | None:
    """The variance of the change, as captures against captures show it."""
    counts = [len(side) for side in values]
    spreads = [
        Variance(float(np.var(side, ddof=1)), len(side) - 1.0) if len(side) > 1 else None
        for side in values
    ]
    known = [one for one in spreads if one is not None]
    floor = Variance(noise.log_sd**2, float(noise.degrees_of_freedom)) if noise else None
    if floor is not None and not any(_spreads_more(one, floor) for one in known):
        known = [*known, floor]
    elif len(known) == 2:
        return _welch(known, counts)
    if not known:
        return None
    freedom = sum(one.degrees_of_freedom for one in known)
    pooled = sum(one.value * one.degrees_of_freedom for one in known) / freedom
    return Variance(pooled * (1.0 / counts[0] + 1.0 / counts[1]), freedom)


def _welch(spreads: Sequence[Variance], counts: Sequence[int]) -> Variance:
    """With no more degrees of freedom than twice the smaller side has, and fewer against twice as
    many captures or more, where the sum may rest on the few: 1.5 times, of two captures theirs."""
    whole = summed(
        [
            Variance(one.value / count, one.degrees_of_freedom)
            for one, count in zip(spreads, counts, strict=True)
        ]
    )
    fewest = min(counts)
    share = 2.0 if max(counts) < 2 * fewest else 1.0 if fewest == 2 else 1.5
    return Variance(whole.value, min(whole.degrees_of_freedom, share * (fewest - 1)))


def _spreads_more(one: Variance, floor: Variance) -> bool:
    if floor.value <= 0:
        return one.value > 0
    ratio = one.value / floor.value
    return f_tail(ratio, one.degrees_of_freedom, floor.degrees_of_freedom) < UNLIKE_CHANCE


def half_width(error: float, freedom: float, probability: float) -> float:
    if not math.isfinite(error):
        return math.inf
    return float(t_quantile(probability, freedom)) * error
