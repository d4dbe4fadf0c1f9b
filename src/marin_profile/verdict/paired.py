"""The change from captures taken in turn, as pairs: a drift common to both of a pair cancels.

Contract
* Captures form pairs only where their starts say so: as many before as after, and in time each
  first and second capture, third and fourth, ... are one of each side, in either order.
* The change is the mean of the pairs' differences. Its error from pairs is that of a one-sample
  t interval, k - 1 degrees of freedom. The captures' own variances bound it from below: at every
  level the wider of the two intervals counts, each at its own degrees of freedom.
* One pair has no error from pairs, captures of unknown variance none from steps; where neither is
  known the interval is infinite, never narrow.

Differences are those of log step times, after - before; the last axis of arrays is that of pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marin_profile.verdict.student import CERTAIN, INTERVAL, Floats, t_quantile, t_tail

MOST_PAIRS_NEEDED = 100
NINE_OF_TEN = 1.2816  # the normal quantile: how far an estimate may fall short
KNOWN = 1e6  # degrees of freedom of a variance that is as good as known


@dataclass(frozen=True)
class Error:
    """A standard error; NaN where it is not known, as is then what follows from it."""

    standard_error: Floats
    degrees_of_freedom: Floats

    def half_width(self, probability: float) -> Floats:
        """The distance from the estimate to a one-sided bound."""
        freedoms, which = np.unique(self.degrees_of_freedom, return_inverse=True)
        quantiles = t_quantile(probability, freedoms)[which]
        return self.standard_error * quantiles.reshape(self.standard_error.shape)

    def tail(self, distance: Floats) -> Floats:
        """The level of the one-sided bound that lies `distance` away, at most 1/2."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.maximum(distance, 0.0) / self.standard_error
        tail = np.where(np.isinf(t), 0.0, 0.5 + t)  # of t = 0, and NaN
        inside = (t > 0) & np.isfinite(t)
        tail[inside] = t_tail(t[inside], np.broadcast_to(self.degrees_of_freedom, t.shape)[inside])
        return tail


@dataclass(frozen=True)
class PairedChange:
    """`between`: the error from pairs; `within`: from steps, a lower bound of it."""

    pairs: int
    estimate: Floats
    between: Error
    within: Error

    @property
    def from_pairs(self) -> NDArray[np.bool_]:
        """Whether the 95 % interval stands on the pairs, not on the steps within captures."""
        between, within = (one.half_width(INTERVAL) for one in (self.between, self.within))
        return np.asarray((between >= within) | np.isnan(within) & ~np.isnan(between))

    @property
    def standard_error(self) -> Floats:
        """Of the wider 95 % interval; infinite where neither is known."""
        error = np.where(self.from_pairs, self.between.standard_error, self.within.standard_error)
        return np.where(np.isnan(error), np.inf, error)

    @property
    def degrees_of_freedom(self) -> Floats:
        """Of the wider 95 % interval."""
        return np.where(
            self.from_pairs, self.between.degrees_of_freedom, self.within.degrees_of_freedom
        )

    def half_width(self, probability: float) -> Floats:
        """The distance from the estimate to a one-sided bound: the larger of the two errors'."""
        width = np.fmax(self.between.half_width(probability), self.within.half_width(probability))
        return np.where(np.isnan(width), np.inf, width)

    def tail(self, distance: Floats) -> Floats:
        """The level of the one-sided bound that lies `distance` away, at most 1/2."""
        tail = np.fmax(self.between.tail(distance), self.within.tail(distance))
        return np.where(np.isnan(tail), 0.5, tail)


def pairs_in_time(
    before_starts: Sequence[float | None], after_starts: Sequence[float | None]
) -> tuple[tuple[int, int], ...] | None:
    """(index before, index after) of each pair in the order of time; None: not taken in turn.

    Starts are in one unit and of one clock. An unknown start, or one start in two pairs, leaves
    the order open: None.
    """
    count = len(before_starts)
    starts = [*before_starts, *after_starts]
    if count != len(after_starts) or not count:
        return None
    known = [start for start in starts if start is not None and math.isfinite(start)]
    if len(known) < len(starts):
        return None
    order = sorted(range(len(known)), key=lambda one: known[one])
    couples = list(zip(order[::2], order[1::2], strict=True))
    if any(known[couple[1]] == known[later[0]] for couple, later in itertools.pairwise(couples)):
        return None
    pairs = tuple((min(couple), max(couple) - count) for couple in couples)
    # As many of each side: where two before are a pair, so are two after.
    return pairs if all(after >= 0 for _, after in pairs) else None


def paired_change(
    differences: ArrayLike, within_variances: ArrayLike, within_freedom: ArrayLike = KNOWN
) -> PairedChange:
    """`within_variances`: of each difference (the sum of its two captures'), NaN where not known;
    `within_freedom`: their degrees of freedom."""
    values = np.asarray(differences, np.float64)
    pairs = values.shape[-1]
    estimate = np.asarray(values.mean(axis=-1))
    if pairs > 1:
        error = np.asarray(values.std(axis=-1, ddof=1) / math.sqrt(pairs))
    else:
        error = np.full_like(estimate, np.nan)
    between = Error(error, np.full_like(estimate, max(1, pairs - 1)))
    variances = np.broadcast_to(np.asarray(within_variances, np.float64), values.shape)
    freedoms = np.broadcast_to(np.asarray(within_freedom, np.float64), values.shape)
    return PairedChange(pairs, estimate, between, _within(variances, freedoms))


def _within(variances: Floats, freedoms: Floats) -> Error:
    """Unknown variances add nothing to what is a lower bound anyway; Satterthwaite's degrees of
    freedom."""
    known = ~np.isnan(variances)
    terms = np.where(known, variances, 0.0)
    total = np.asarray(terms.sum(axis=-1))
    squares = (terms**2 / freedoms).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(total > 0, total**2 / squares, KNOWN)
    error = np.where(known.any(axis=-1), np.sqrt(total) / variances.shape[-1], np.nan)
    return Error(error, np.clip(freedom, 1.0, KNOWN))


def pairs_needed(
    estimate: float,
    threshold: float,
    sd: float,
    now: int,
    *,
    most: int = MOST_PAIRS_NEEDED,
    interval: float = INTERVAL,
    certain: float = CERTAIN,
) -> int | None:
    """The number of pairs, more than `now`, that settles the verdict in nine of ten cases if the
    change is as estimated and the standard deviation of a difference stays; None: more than `most`.

    Settled: the end of the interval is below the threshold, or the certain bound above zero.
    """
    counts = np.arange(max(2, now + 1), most + 1)
    if not len(counts):
        return None
    near, far = (
        (t_quantile(one, counts - 1.0) + NINE_OF_TEN) * sd / np.sqrt(counts)
        for one in (interval, certain)
    )
    settles = (estimate + near < threshold) | (estimate - far > 0)
    return int(counts[settles.argmax()]) if settles.any() else None
