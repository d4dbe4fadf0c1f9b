"""One capture's series of a quantity per step: its typical value, and how exact that is.

Contract
* Every array has the runs as its first axis: one in production, thousands in a simulation, by the
  same code. Values are on the scale on which differences count (log step times, shares).
* The typical value is the mean of the steps, without those that stand further from the median of
  their class than OUTLYING normal-consistent median absolute deviations (none is set aside where
  that deviation is 0).
* Classes of steps are located apart and combined with the weights given, the same on both sides.
* Autocorrelation is that of an AR(1) process, estimated over all series together, corrected for
  its bias (Marriott and Pope 1954, Kendall 1954), drawn towards PRIOR_PHI by as much as PRIOR_STEPS
  steps would, and kept within 0..MOST_PHI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marin_profile.verdict.student import Floats, incomplete_beta

LEAST_STEPS = 6
OUTLYING = 4.0
MOST_PHI = 0.9
# Chosen on the table of docs/verdict.md. The degrees of freedom of a variance that stands on n
# steps of one class and an estimated phi: (n - LOST) / (1 + PHI_COST * (1 + phi) / (1 - phi)).
PRIOR_PHI = 0.5
PRIOR_STEPS = 12.0
LOST = 3.0
PHI_COST = 0.5

_MAD_TO_SD = 1.482602218505602


@dataclass(frozen=True)
class Series:
    """`values` (runs, steps) in order of time; `classes` names the class of each step."""

    values: Floats
    classes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def parts(self) -> dict[str, Part]:
        found = {}
        for name in sorted(set(self.classes)):
            columns = np.flatnonzero([one == name for one in self.classes])
            found[name] = _part(self.values[:, columns], columns)
        return found

    @cached_property
    def kept(self) -> Floats:
        """(runs, steps): 1 for a step that counts, 0 for one set aside."""
        return self._whole({name: part.kept for name, part in self.parts.items()})

    @cached_property
    def residuals(self) -> Floats:
        """(runs, steps): distance from the class's mean; 0 for a step set aside."""
        return self._whole({name: part.residuals for name, part in self.parts.items()})

    def _whole(self, of_class: Mapping[str, Floats]) -> Floats:
        whole = np.empty_like(self.values)
        for name, columns in of_class.items():
            whole[:, self.parts[name].columns] = columns
        return whole

    def location(self, weights: Mapping[str, float]) -> Floats:
        return np.asarray(sum(weights[name] * part.mean for name, part in self.parts.items()))

    def spread(self, phi: Floats) -> Floats:
        """The variance of one step within its class, unbiased under AR(1); NaN if unknown."""
        free = self.kept.sum(axis=1) - len(self.parts)
        raw = (self.residuals**2).sum(axis=1)
        taken = mean_variance_factor(phi, free + 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = raw / free * (free / (free + 1.0 - taken))
        return np.where((free > 0) & (self.steps >= LEAST_STEPS), variance, np.nan)

    def location_variance(self, weights: Mapping[str, float], phi: Floats) -> Floats:
        share = sum(weights[name] ** 2 / part.count for name, part in self.parts.items())
        # Fewer of the pairs that add covariance are left where steps are set aside.
        pairs = (self.kept.sum(axis=1) - 1.0) / max(self.steps - 1, 1)
        factor = 1.0 + (mean_variance_factor(phi, self.steps) - 1.0) * pairs
        return np.asarray(self.spread(phi) * factor * share)

    def degrees_of_freedom(self, phi: Floats) -> Floats:
        left = self.kept.sum(axis=1) - LOST * len(self.parts)
        ratio = (1.0 + phi) / (1.0 - phi)
        return np.asarray(np.maximum(left, 0.5) / (1.0 + PHI_COST * ratio))

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
class Part:
    """The steps of one class: their columns, and per run what counts of them."""

    columns: np.ndarray
    kept: Floats
    count: Floats
    mean: Floats
    residuals: Floats


def _part(values: Floats, columns: np.ndarray) -> Part:
    middle = np.median(values, axis=1, keepdims=True)
    deviation = _MAD_TO_SD * np.median(np.abs(values - middle), axis=1, keepdims=True)
    reach = np.where(deviation > 0, OUTLYING * deviation, np.inf)
    kept = (np.abs(values - middle) <= reach).astype(np.float64)
    count = kept.sum(axis=1)
    # From the middle, so that equal values give exactly their value and no residual.
    mean = middle[:, 0] + ((values - middle) * kept).sum(axis=1) / count
    return Part(columns, kept, count, mean, (values - mean[:, None]) * kept)


def mean_variance_factor(phi: Floats, count: Floats | float) -> Floats:
    """n * variance of the mean of n AR(1) values / variance of one (Bartlett 1935): near
    (1 + phi) / (1 - phi) for a long series, 1 for phi = 0."""
    lasting = 2.0 * phi * (1.0 - phi**count) / (count * (1.0 - phi) ** 2)
    return np.asarray((1.0 + phi) / (1.0 - phi) - lasting)


def autocorrelation(series: Sequence[Series]) -> Floats:
    """The AR(1) coefficient that all series share, per run."""
    long = [one for one in series if one.steps >= LEAST_STEPS]
    if not long:
        return np.zeros(len(series[0].values))
    product = sum((one.residuals[:, 1:] * one.residuals[:, :-1]).sum(axis=1) for one in long)
    pairs = sum((one.kept[:, 1:] * one.kept[:, :-1]).sum(axis=1) for one in long)
    square = sum((one.residuals**2).sum(axis=1) for one in long)
    kept = sum(one.kept.sum(axis=1) for one in long)
    steps = sum(one.steps for one in long)
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = (product / pairs) / (square / kept) * (steps - len(long)) / steps
    raw = np.where(square > 0, raw, 0.0)
    # E[raw] is about phi - (1 + 3 phi) / n for a series of n steps about its own mean.
    corrected = (steps * raw + len(long)) / (steps - 3 * len(long))
    drawn = (steps * corrected + PRIOR_STEPS * PRIOR_PHI) / (steps + PRIOR_STEPS)
    return np.asarray(np.clip(np.where(square > 0, drawn, 0.0), 0.0, MOST_PHI))
