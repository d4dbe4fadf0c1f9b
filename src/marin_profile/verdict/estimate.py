"""The change from before to after, and its error.

Contract
* A change is the difference of the sides' typical values, a side's being the mean over its
  captures; arrays have the runs as their axis.
* Its error is known in one of two ways, and the wider interval is used: from the steps within the
  captures (AR(1)-corrected variances, Welch-Satterthwaite degrees of freedom), and from captures
  against captures (pooled variance of the captures' typical values and of a measured noise floor).
* Where neither is known the interval is infinite, never narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.series import Series, autocorrelation
from marin_profile.verdict.student import Floats, t_quantile

INTERVAL = 0.975  # each end of the two-sided 95 % interval
CERTAIN = 0.995  # a one-sided 99.5 % bound
ALL_STEPS = ""


@dataclass(frozen=True)
class ChangeEstimate:
    """`between`: the error comes from captures (and the noise floor), not from steps."""

    before: Floats
    after: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    between: NDArray[np.bool_]
    phi: Floats

    @property
    def estimate(self) -> Floats:
        return self.after - self.before

    def half_width(self, probability: float) -> Floats:
        """The distance from the estimate to a one-sided bound."""
        return _half_width(self.standard_error, self.degrees_of_freedom, probability)


def change_of_location(
    before: Sequence[Series], after: Sequence[Series], noise: NoiseFloor | None = None
) -> ChangeEstimate:
    """The change of the typical value; like classes of steps against like."""
    before, after = alike(before, after)
    weights = _weights([*before, *after])
    phi = autocorrelation([*before, *after])

    def of(series: Series) -> _Located:
        return _Located(
            series.location(weights),
            series.location_variance(weights, phi),
            series.degrees_of_freedom(phi),
        )

    return _combine([of(one) for one in before], [of(one) for one in after], phi, noise)


def change_of_quantile(
    before: Sequence[Series],
    after: Sequence[Series],
    probability: float,
    phi: Floats,
    noise: NoiseFloor | None = None,
) -> ChangeEstimate:
    """The change of a quantile's logarithm, over all steps; `phi`: the steps' autocorrelation."""

    def of(series: Series) -> _Located:
        return _Located(
            series.log_quantile(probability),
            series.quantile_variance(probability, phi),
            series.degrees_of_freedom(phi),
        )

    return _combine([of(one) for one in before], [of(one) for one in after], phi, noise)


def alike(
    before: Sequence[Series], after: Sequence[Series]
) -> tuple[Sequence[Series], Sequence[Series]]:
    """The series as given if all have the same classes of steps; else without classes."""
    if len({frozenset(one.classes) for one in (*before, *after)}) == 1:
        return before, after
    plain = [
        [Series(one.values, (ALL_STEPS,) * one.steps) for one in side] for side in (before, after)
    ]
    return plain[0], plain[1]


def _weights(series: Sequence[Series]) -> Mapping[str, float]:
    """Each class's share of all steps."""
    classes = [name for one in series for name in one.classes]
    return {name: classes.count(name) / len(classes) for name in sorted(set(classes))}


@dataclass(frozen=True)
class _Located:
    """One capture's value; the variance is NaN where its steps do not determine it."""

    value: Floats
    variance: Floats
    degrees_of_freedom: Floats


def _combine(
    before: Sequence[_Located], after: Sequence[_Located], phi: Floats, noise: NoiseFloor | None
) -> ChangeEstimate:
    sides = [np.mean([one.value for one in side], axis=0) for side in (before, after)]
    within = _within(before, after)
    between = _between(before, after, noise)
    error, freedom = within
    on_captures = np.zeros(len(error), np.bool_)
    if between is not None:
        widths = [_half_width(*one, INTERVAL) for one in (within, between)]
        on_captures = np.isinf(widths[0]) | (widths[1] > widths[0])
        error, freedom = (
            np.where(on_captures, wide, narrow)
            for wide, narrow in zip(between, within, strict=True)
        )
    return ChangeEstimate(sides[0], sides[1], error, freedom, on_captures, phi)


def _within(before: Sequence[_Located], after: Sequence[_Located]) -> tuple[Floats, Floats]:
    terms = [(one.variance / len(side) ** 2, one) for side in (before, after) for one in side]
    variance = np.asarray(sum(term for term, _ in terms))
    squares = np.asarray(sum(term**2 / one.degrees_of_freedom for term, one in terms))
    most = np.asarray(sum(one.degrees_of_freedom for _, one in terms))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(variance > 0, variance**2 / squares, most)
    return (
        np.where(np.isnan(variance), np.inf, np.sqrt(variance)),
        np.maximum(freedom, 1.0),
    )


def _between(
    before: Sequence[_Located], after: Sequence[_Located], noise: NoiseFloor | None
) -> tuple[Floats, Floats] | None:
    freedom = len(before) + len(after) - 2 + (noise.degrees_of_freedom if noise else 0)
    if freedom < 1:
        return None
    square = np.zeros_like(before[0].value)
    for side in (before, after):
        values = np.stack([one.value for one in side])
        square = square + ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    if noise:
        square = square + noise.degrees_of_freedom * noise.log_sd**2
    error = np.sqrt(square / freedom * (1.0 / len(before) + 1.0 / len(after)))
    return error, np.full_like(error, freedom)


def _half_width(error: Floats, freedom: Floats, probability: float) -> Floats:
    known = np.isfinite(error)
    width = t_quantile(probability, np.where(known, freedom, 1.0)) * np.where(known, error, 0.0)
    return np.where(known, width, np.inf)
