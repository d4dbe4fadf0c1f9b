"""How far an arm's effects scatter: its own spread, steadied by that of the other arms.

Contract
* With `own_at_least` the variance is never below the arm's own, so an arm that scatters more than
  the others keeps its error.
* The variances of the other arms count as at most a few degrees of freedom, however many they have:
  G. K. Smyth's moderated t (Stat. Appl. Genet. Mol. Biol. 3 (2004) 3) with a fixed prior weight.
  All arms of a round share its control, so their variances are correlated by 1/4 and their common
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


def spread_of(
    own: Sequence[float], others: Sequence[Sequence[float]], *, weight: float, own_at_least: bool
) -> Spread:
    """Of two effects or more; `weight`: the most degrees of freedom that the others count as."""
    freedom = len(own) - 1
    variance = _variance(own)
    beside = [values[: len(own)] for values in others if len(values) > 1]
    known = [len(values) - 1 for values in beside]
    if not known or weight <= 0:
        return Spread(_error(variance, len(own)), freedom)
    total = sum(known)
    common = sum(one * _variance(values) for one, values in zip(known, beside, strict=True)) / total
    share = min(weight, total**2 / _correlated(known))
    steadied = (freedom * variance + share * common) / (freedom + share)
    used = max(variance, steadied) if own_at_least else steadied
    return Spread(_error(used, len(own)), freedom + share)


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
