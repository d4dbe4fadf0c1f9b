"""Student's t distribution: the two-sided p-value.

p = I_x(dof/2, 1/2) with x = dof / (dof + t^2) (Abramowitz and Stegun 26.7.1 and 26.5.27); the
incomplete beta function by its continued fraction (26.5.8), evaluated as Lentz does.
"""

from __future__ import annotations

import math

_TINY = 1e-300
_PRECISION = 1e-14
_MOST_TERMS = 10_000


def two_sided_p(t: float, dof: float) -> float:
    """P(|T| >= |t|) for `dof` > 0 degrees of freedom; 0 for infinite t."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(dof / 2, 0.5, dof / (dof + t * t), t * t / (dof + t * t))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised I_x(a, b); `rest` is 1 - x, which may be known better than x tells."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, rest, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log(rest)
    return math.exp(log_front) * _continued_fraction(a, b, x) / a


def _continued_fraction(a: float, b: float, x: float) -> float:
    numerator, denominator = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for factor in (even, odd):
            denominator = 1.0 / _not_zero(1.0 + factor * denominator)
            numerator = _not_zero(1.0 + factor / numerator)
            change = denominator * numerator
            value *= change
        if abs(change - 1.0) < _PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
