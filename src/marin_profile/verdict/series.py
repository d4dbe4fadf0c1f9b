"""One capture's series of a quantity per step: its typical value, and the variance of that.

Contract
* Every array has the runs as its first axis: one in production, thousands in a simulation, by the
  same code. Values are on the scale on which differences count (log step times, shares).
* The typical value is a trimmed mean, its variance Yuen's (1974) of the winsorised values. Slow
  steps are commoner than fast ones, so more is trimmed above (see `trimmed`).
* Classes of steps are located apart and combined with the weights given, the same on both sides;
  their spread about their own means is taken as one.
* Autocorrelation is that of an AR(1) process, estimated over all series together, corrected for
  its bias (Marriott and Pope 1954, Kendall 1954), drawn towards PRIOR_PHI by as much as PRIOR_STEPS
  steps would, and kept within 0..MOST_PHI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.student import Floats, incomplete_beta

LEAST_STEPS = 6
MOST_PHI = 0.9
# Chosen on the table of docs/verdict.md. The degrees of freedom of a variance that stands on h
# steps of one class, trimmed ones left out, and an estimated phi:
# (h - LOST) / (1 + PHI_COST * (1 + phi) / (1 - phi)).
PRIOR_PHI = 0.5
PRIOR_STEPS = 12.0
LOST = 1.0
PHI_COST = 0.15


def trimmed(steps: int) -> tuple[int, int]:
    """How many of the shortest and of the longest steps are left out."""
    if steps < 10:
        return steps // 4, steps // 4
    return steps // 40 + 2, steps // 10 + 2


@dataclass(frozen=True)
class Series:
    """`values` (runs, steps) in order of time; `classes` names the class of each step."""

    values: Floats
    classes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def by_class(self) -> dict[str, ClassSteps]:
        found = {}
        for name in sorted(set(self.classes)):
            columns = np.flatnonzero([one == name for one in self.classes])
            found[name] = _class_steps(self.values[:, columns], columns)
        return found

    @cached_property
    def residuals(self) -> Floats:
        """(runs, steps): winsorised values about the mean of those of their class."""
        whole = np.empty_like(self.values)
        for part in self.by_class.values():
            whole[:, part.columns] = part.residuals
        return whole

    def location(self, weights: Mapping[str, float]) -> Floats:
        return np.asarray(sum(weights[name] * part.mean for name, part in self.by_class.items()))

    def location_variance(self, weights: Mapping[str, float], phi: Floats) -> Floats:
        """NaN where there are too few steps."""
        free = self.steps - len(self.by_class)
        if free < 1 or self.steps < LEAST_STEPS:
            return np.full(len(self.values), np.nan)
        square = sum(
            (part.residuals**2).sum(axis=1) * part.inflation for part in self.by_class.values()
        )
        share = sum(weights[name] ** 2 / len(part.columns) for name, part in self.by_class.items())
        # About a mean estimated from them, correlated values spread less than about the true mean.
        unbiased = square / (free + 1.0 - mean_variance_factor(phi, free + 1.0))
        return np.asarray(unbiased * mean_variance_factor(phi, self.steps) * share)

    def degrees_of_freedom(self, phi: Floats) -> Floats:
        counted = sum(part.counted - LOST for part in self.by_class.values())
        return np.asarray(max(counted, 0.5) / (1.0 + PHI_COST * (1.0 + phi) / (1.0 - phi)))

    def log_quantile(self, probability: float) -> Floats:
        """Of values that are logarithms: interpolated between what they are logarithms of."""
        plain = np.quantile(np.exp(self.values), probability, axis=1, method="linear")
        return np.asarray(np.log(plain))

    def quantile_variance(self, probability: float, phi: Floats) -> Floats:
        """Maritz and Jarrett's variance of a sample quantile (1978), times the AR(1) factor."""
        if self.steps < LEAST_STEPS:
            return np.full(len(self.values), np.nan)
        ordered = np.sort(self.values, axis=1)
        edges = np.linspace(0.0, 1.0, self.steps + 1)
        m = (self.steps + 1) * probability
        chance = np.diff(incomplete_beta(m, self.steps + 1 - m, edges))
        mean = ordered @ chance
        variance = ((ordered - mean[:, None]) ** 2) @ chance
        return np.asarray(variance * mean_variance_factor(phi, self.steps))


@dataclass(frozen=True)
class ClassSteps:
    """The steps of one class: their columns, how many count, the trimmed mean, the winsorised
    values about their mean, and what these lack of the variance that the trimmed mean stands on."""

    columns: NDArray[np.int64]
    counted: int
    mean: Floats
    residuals: Floats
    inflation: float


def _class_steps(values: Floats, columns: NDArray[np.int64]) -> ClassSteps:
    steps = len(columns)
    low, high = trimmed(steps)
    counted = steps - low - high
    ordered = np.sort(values, axis=1)
    # From the lowest that counts, so that equal values give exactly their value and no residual.
    base = ordered[:, [low]]
    winsorised = np.clip(values, base, ordered[:, [steps - 1 - high]]) - base
    return ClassSteps(
        columns=columns,
        counted=counted,
        mean=base[:, 0] + (ordered[:, low : steps - high] - base).mean(axis=1),
        residuals=winsorised - winsorised.mean(axis=1, keepdims=True),
        inflation=steps * (steps - 1) / (counted * (counted - 1)) if counted > 1 else 1.0,
    )


def mean_variance_factor(phi: Floats, count: float) -> Floats:
    """n * variance of the mean of n AR(1) values / variance of one (Bartlett 1935): near
    (1 + phi) / (1 - phi) for a long series, 1 for phi = 0."""
    lasting = 2.0 * phi * (1.0 - phi**count) / (count * (1.0 - phi) ** 2)
    return np.asarray((1.0 + phi) / (1.0 - phi) - lasting)


def autocorrelation(series: Sequence[Series]) -> Floats:
    """The AR(1) coefficient that all series share, per run; 0 where nothing varies."""
    long = [one for one in series if one.steps >= LEAST_STEPS]
    if not long:
        return np.zeros(len(series[0].values))
    product = sum((one.residuals[:, 1:] * one.residuals[:, :-1]).sum(axis=1) for one in long)
    square = np.asarray(sum((one.residuals**2).sum(axis=1) for one in long))
    varies = square > 0
    raw = product / np.where(varies, square, 1.0)
    steps = sum(one.steps for one in long)
    # E[raw] is about phi - (1 + 3 phi) / n for a series of n steps about its own mean.
    corrected = (steps * raw + len(long)) / (steps - 3 * len(long))
    drawn = (steps * corrected + PRIOR_STEPS * PRIOR_PHI) / (steps + PRIOR_STEPS)
    return np.asarray(np.where(varies, np.clip(drawn, 0.0, MOST_PHI), 0.0))
