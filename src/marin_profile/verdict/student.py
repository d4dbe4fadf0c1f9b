"""Quantiles of Student's t, and the incomplete beta function below them.

Contract: relative error below 1e-8 for 0.5 < probability <= 0.9999 and 1 <= df <= 1e6, held in a
test to published tables. The incomplete beta function is the continued fraction 8.17.22 of the
NIST Digital Library of Mathematical Functions, by Lentz's method. One value at a time, which is
faster than arrays for the few that a verdict needs; arrays are mapped.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

INTERVAL = 0.975  # each end of the two-sided 95 % interval
CERTAIN = 0.995  # a one-sided 99.5 % bound

_TINY = 1e-300
_CLOSE = 1e-14
_MOST_TERMS = 5000


def incomplete_beta(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Floats:
    """The regularised I_x(a, b) for 0 <= x <= 1."""
    return np.asarray(_map_beta(a, b, x), np.float64)


def t_tail(t: ArrayLike, df: ArrayLike) -> Floats:
    """P(T > t) for t > 0."""
    return np.asarray(_map_tail(t, df), np.float64)


def two_sided_p(t: float, df: float) -> float:
    """P(|T| >= |t|); 0 for infinite t."""
    if t == 0 or math.isinf(t):
        return 0.0 if t else 1.0
    return 2.0 * _tail(abs(t), df)


def f_tail(ratio: float, above: float, below: float) -> float:
    """P(F > ratio) of the F distribution with `above` and `below` degrees of freedom."""
    share, rest = below / (below + above * ratio), above * ratio / (below + above * ratio)
    return _beta(0.5 * below, 0.5 * above, share, rest)


def t_quantile(probability: float, df: ArrayLike) -> Floats:
    """The t with P(T <= t) = probability, for 0.5 < probability < 1 and df >= 1."""
    return np.asarray(_map_quantile(probability, df), np.float64)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), with 1 - x given as `rest`, which the caller may know more exactly."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # there 1 - I_{1-x}(b, a) converges fast
        return 1.0 - _beta_below(b, a, rest, x)
    return _beta_below(a, b, x, rest)


def _beta_below(a: float, b: float, x: float, rest: float) -> float:
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    return math.exp(log_front) / a * _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _not_zero(1.0 + term * d)
            c = _not_zero(1.0 + term / c)
            step = c * d
            value *= step
        if abs(step - 1.0) < _CLOSE:
            break
    return value


def _not_zero(value: float) -> float:
    return _TINY if abs(value) < _TINY else value


def _tail(t: float, df: float) -> float:
    whole = df + t * t
    return 0.5 * _beta(0.5 * df, 0.5, df / whole, t * t / whole)


@lru_cache(maxsize=4096)
def _quantile(probability: float, df: float) -> float:
    """Newton's method on log P(T > t) over log t, which is concave, from the normal quantile, which
    is never above it."""
    log_beta = math.lgamma(0.5 * df) + math.lgamma(0.5) - math.lgamma(0.5 * df + 0.5)
    wanted = math.log(1.0 - probability)
    log_t = math.log(NormalDist().inv_cdf(probability))
    for _ in range(60):
        t = math.exp(log_t)
        tail = _tail(t, df)
        log_density = -log_beta - 0.5 * math.log(df) - 0.5 * (df + 1.0) * math.log1p(t * t / df)
        change = (math.log(tail) - wanted) * tail / (t * math.exp(log_density))
        log_t += change
        if abs(change) < 1e-7:  # the next one would be about its square
            break
    return math.exp(log_t)


_map_beta = np.vectorize(lambda a, b, x: _beta(a, b, x, 1.0 - x), otypes=[np.float64])
_map_tail = np.vectorize(_tail, otypes=[np.float64])
_map_quantile = np.vectorize(_quantile, otypes=[np.float64])
