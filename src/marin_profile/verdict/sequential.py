"""Pairs until settled: bounds of the change that hold however often one looks, and stops.

Contract
* A look after each of pairs 3 to 20, or after any of them: one-sided bounds and p-values hold for
  all looks together, so one may stop at the first that settles. At no other number of pairs is
  there a bound: it is infinite.
* Certainly slower is wrong in at most 0.5 % of sequences without a slowdown, within the threshold
  in at most 2.5 % of those beyond it, and the 95 % intervals of all looks hold the true change in
  at least 95 %.
* That is exact for independent normal differences of any variance; heavy tails make it safer.
  Differences correlated from pair to pair break it (noise common to a pair does no harm), where
  not every second pair is taken in the other order: before, after, after, before.

Every look has the same nominal level (S. J. Pocock, Biometrika 64 (1977) 191), of the t statistic
of the pairs so far, chosen so that all looks together have the wanted one; the intervals are
repeated confidence intervals (C. Jennison and B. W. Turnbull, J. R. Stat. Soc. B 51 (1989) 305).
A larger change raises the t statistics of all looks together, so what holds at no change holds
for each smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.paired import PairedChange, pairs_needed
from marin_profile.verdict.student import Floats, t_quantile

FIRST_LOOK = 3
LAST_LOOK = 20
# The level of a single look at which all of them together have 2.5 and 0.5 %.
INTERVAL_EACH_LOOK = 0.00385
CERTAIN_EACH_LOOK = 0.000617

# Tails whose level is computed; no one asks for those beyond.
_SMALLEST_TAIL = 1e-5
_LARGEST_TAIL = 0.45
_CELLS = 400
_NODES = 32
_CLOSE = 1e-3  # of the logarithm of a level, on the safe side


@dataclass(frozen=True)
class Look:
    """What the pairs so far allow to say; changes are logarithms."""

    change: PairedChange

    @property
    def low(self) -> Floats:
        """Of the 95 % interval, as is `high`."""
        return self.change.estimate - self._half_width(INTERVAL_EACH_LOOK)

    @property
    def high(self) -> Floats:
        return self.change.estimate + self._half_width(INTERVAL_EACH_LOOK)

    @property
    def lower_bound(self) -> Floats:
        """One-sided, 99.5 %, as is `upper_bound`."""
        return self.change.estimate - self._half_width(CERTAIN_EACH_LOOK)

    @property
    def upper_bound(self) -> Floats:
        return self.change.estimate + self._half_width(CERTAIN_EACH_LOOK)

    def is_slower(self) -> NDArray[np.bool_]:
        """Certainly."""
        return np.asarray(self.lower_bound > 0)

    def is_within(self, threshold: float) -> NDArray[np.bool_]:
        return np.asarray(self.high < threshold)

    def slower_p(self) -> Floats:
        """Of "no slower": at most 0.5 % where it is certainly slower."""
        return self._p(self.change.estimate)

    def within_p(self, threshold: float) -> Floats:
        """Of "slower by the threshold or more": at most 2.5 % where it is within."""
        return self._p(threshold - self.change.estimate)

    def _half_width(self, each_look: float) -> Floats:
        if not FIRST_LOOK <= self.change.pairs <= LAST_LOOK:
            return np.full_like(self.change.estimate, np.inf)
        return self.change.half_width(1.0 - each_look)

    def _p(self, distance: Floats) -> Floats:
        if not FIRST_LOOK <= self.change.pairs <= LAST_LOOK:
            return np.ones_like(self.change.estimate)
        tails = self.change.tail(distance)
        return np.vectorize(_p_of_tail, otypes=[np.float64])(tails)


def pairs_needed_with_looks(estimate: float, threshold: float, sd: float, now: int) -> int | None:
    """After how many pairs a look settles it, if the estimate and the standard deviation of a
    difference stay; None: after none."""
    return pairs_needed(
        estimate,
        threshold,
        sd,
        max(now, FIRST_LOOK - 1),
        most=LAST_LOOK,
        interval=1.0 - INTERVAL_EACH_LOOK,
        certain=1.0 - CERTAIN_EACH_LOOK,
    )


def _p_of_tail(tail: float) -> float:
    """For the smallest and the largest tails an upper bound."""
    if tail < _SMALLEST_TAIL:
        return min((LAST_LOOK - FIRST_LOOK + 1) * tail, level_of_all_looks(_SMALLEST_TAIL))
    return level_of_all_looks(tail) if tail < _LARGEST_TAIL else 1.0


@lru_cache(maxsize=256)
def level_of_one_look(all_looks: float, last_look: int | None = None) -> float:
    """The level of a single look at which those up to `last_look` together have `all_looks`."""

    def excess(log_each: float) -> float:
        return math.log(level_of_all_looks(math.exp(log_each), last_look) / all_looks)

    # Almost a straight line of slope 1 in logarithms: the secant method.
    last = math.log(all_looks)
    last_excess = excess(last)
    each = last - last_excess
    while abs(found := excess(each)) > _CLOSE:
        last, last_excess, each = each, found, each - found * (each - last) / (found - last_excess)
    return math.exp(each - _CLOSE)


def level_of_all_looks(each_look: float, last_look: int | None = None) -> float:
    """P(at some look the t statistic is above its own 1 - `each_look` quantile), at no change.
    `last_look` is LAST_LOOK if not given.

    To about 0.02 %, by the recursion of C. Jennison and B. W. Turnbull (Biometrika 78 (1991) 133).
    k normal differences of mean 0 are a point in a random direction; the state is its angle a to
    the plane of zero sum, t = sqrt(k - 1) tan a, with density ~ cos^(k-2). The next difference
    turns the direction by an angle b that depends on nothing before (D. Basu, Sankhya 15 (1955)
    377), density ~ cos^(k-1): sin a' = (sqrt(k) sin a cos b + sin b) / sqrt(k + 1). From the last
    look back, `later` is the probability of a crossing after look k, given the angle there.
    """
    looks = np.arange(FIRST_LOOK, (LAST_LOOK if last_look is None else last_look) + 1)
    limits = np.arctan(t_quantile(1.0 - each_look, looks - 1.0) / np.sqrt(looks - 1.0))
    # Cells are fine near the limit, where the probability changes.
    share = 1.0 - (1.0 - np.linspace(0.0, 1.0, _CELLS)) ** 2
    angles = _up_to(limits[-1], share)
    later = np.zeros(_CELLS)
    for look, limit, next_limit in zip(
        looks[-2::-1].tolist(), limits[-2::-1], limits[:0:-1], strict=True
    ):
        here = _up_to(limit, share)
        later = _one_pair_back(here, look, next_limit, angles, later)
        angles = here
    density = _angle_density(angles, FIRST_LOOK - 2)
    return each_look + float(np.trapezoid(density * later, angles))


def _up_to(limit: float, share: Floats) -> Floats:
    return -0.5 * math.pi + (limit + 0.5 * math.pi) * share


def _angle_density(angles: Floats, power: int) -> Floats:
    log_norm = math.lgamma(0.5 * power + 1.0) - math.lgamma(0.5 * power + 0.5)
    return math.exp(log_norm) / math.sqrt(math.pi) * np.cos(angles) ** power


def _one_pair_back(
    here: Floats, look: int, limit: float, next_angles: Floats, later: Floats
) -> Floats:
    """The probability of a crossing after `look`, at its angles `here`, from that after the next
    look, which crosses at the angle `limit`."""
    root = math.sqrt(look)
    slope = root * np.sin(here)
    # slope cos b + sin b = size sin(b + tilt): above the limit from `first` to `last`.
    size, tilt = np.hypot(1.0, slope), np.arctan(slope)
    reach = np.arcsin(np.minimum(math.sqrt(look + 1) * math.sin(limit) / size, 1.0))
    right = np.full_like(here, 0.5 * math.pi)
    first = np.minimum(reach - tilt, right)
    last = np.minimum(math.pi - reach - tilt, right)
    total = np.zeros_like(here)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    for low, high, crosses in ((-right, first, False), (first, last, True), (last, right, False)):
        half = 0.5 * (high - low)[:, np.newaxis]
        turns = 0.5 * (low + high)[:, np.newaxis] + half * nodes
        mass = half * weights * _angle_density(turns, look - 1)
        if not crosses:
            sine = (slope[:, np.newaxis] * np.cos(turns) + np.sin(turns)) / math.sqrt(look + 1)
            mass = mass * np.interp(np.arcsin(np.clip(sine, -1.0, 1.0)), next_angles, later)
        total += mass.sum(axis=1)
    return total
