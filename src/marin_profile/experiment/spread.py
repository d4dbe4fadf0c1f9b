"""How far an arm's effects scatter: its own spread, steadied by that of the other arms.

Contract
* The variance is never below the arm's own: an arm that scatters more than the others keeps its
  error.
* The variances of the other arms count as few degrees of freedom, however many they have: G. K.
  Smyth's moderated t (Stat. Appl. Genet. Mol. Biol. 3 (2004) 3) with a fixed prior weight. With
  more, an arm or a control that scatters more than the others makes false winners; with that few,
  none does, however much it scatters (docs/operating_curve.md). More arms allow for more: each is
  tested at a smaller level.
* All arms of a round share its control, so their variances are correlated by 1/4 and their common
  degrees of freedom grow more slowly than their number (F. E. Satterthwaite, Biometrics Bull. 2
  (1946) 110).
* Of the other arms as many effects count as the arm itself has: what later rounds bring to them
  does not change what was said of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from marin_profile.verdict.noise import SMALLEST_SD
from marin_profile.verdict.student import t_quantile

WEIGHT_A_DOUBLING = 0.8

# The control is half of the variance of each difference; of normal draws, the correlation of
# variances is the square of that of the differences.
_SHARED = 0.25


@dataclass(frozen=True)
class Spread:
    """Of the mean of an arm's effects: a standard error and its degrees of freedom."""

    standard_error: float
    degrees_of_freedom: float

    def half_width(self, level: float) -> float:
        """The distance from the mean to a one-sided bound that fails with `level`."""
        return self.standard_error * float(t_quantile(1.0 - level, self.degrees_of_freedom))


def most_weight(arms: int) -> float:
    """The most degrees of freedom that the other arms count as, of so many in all."""
    return WEIGHT_A_DOUBLING * math.log2(arms)


def spread_of(own: Sequence[float], others: Sequence[Sequence[float]]) -> Spread:
    """Of two effects or more."""
    freedom = len(own) - 1
    variance = _variance(own)
    beside = [values[: len(own)] for values in others if len(values) > 1]
    known = [len(values) - 1 for values in beside]
    if not known:
        return Spread(_error(variance, len(own)), freedom)
    total = sum(known)
    common = sum(one * _variance(values) for one, values in zip(known, beside, strict=True)) / total
    share = min(most_weight(len(beside) + 1), total**2 / _correlated(known))
    steadied = (freedom * variance + share * common) / (freedom + share)
    return Spread(_error(max(variance, steadied), len(own)), freedom + share)


def _correlated(freedoms: Sequence[int]) -> float:
    """The sum over pairs of arms of what their variances share."""
    return sum(
        one if first == second else _SHARED * min(one, other)
        for first, one in enumerate(freedoms)
        for second, other in enumerate(freedoms)
    )


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _error(variance: float, rounds: int) -> float:
    return max(math.sqrt(variance), SMALLEST_SD) / math.sqrt(rounds)
