"""The probability of each commit to be the first bad one, given log step times of some commits.

y = level + slowdown [commit >= first bad] + drift of the round + noise, normal given the noise's
variance. For each first bad commit and each size of the drift, the level is integrated out exactly,
the variance as well (it leaves Student's t; A. Gelman et al., Bayesian Data Analysis, 3rd ed.,
14.2), the slowdown by the trapezoidal rule over u with slowdown = estimate + error sinh u, which
follows the tails of t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.verdict.student import Floats

# Prior probabilities: a slowdown of `least_change` or more, and a smaller one; no change; a speedup
# of less than `least_change`, and of more.
_SLOWER, _SLIGHTLY_SLOWER, _SAME, _SLIGHTLY_FASTER, _FASTER = 0.5, 0.1, 0.25, 0.05, 0.1
_MOST_CHANGE = math.log(16.0)
# What is known of the spread from run to run before any capture: as much as one repeat tells.
_SPREAD, _SPREAD_FREEDOM = 0.02, 1.0
_KNOWN_FREEDOM = 20.0
# Standard deviations of a round's drift, in spreads from run to run.
_DRIFTS = (0.0, 1.0, 3.0)
_NODES = 81


@dataclass(frozen=True)
class Posterior:
    """`commits[0]`: no slowdown; `commits[c]`: the first bad commit is c. `slight`: the probability
    of a slowdown of less than the least one looked for, which is part of them."""

    commits: tuple[float, ...]
    slight: float


def posterior_of(
    commits: Sequence[int],
    log_step_times: Sequence[float],
    rounds: Sequence[int | None],
    last: int,
    least_change: float,
    spread: float | None,
) -> Posterior:
    """First bad commits are 1 to `last`."""
    if not commits:
        slower = _SLOWER + _SLIGHTLY_SLOWER
        return Posterior((1.0 - slower, *[slower / last] * last), _SLIGHTLY_SLOWER)
    at = np.asarray(commits)
    steps = (at >= np.arange(1, last + 1)[:, np.newaxis]).astype(np.float64)
    times = np.asarray(log_step_times, np.float64)
    prior = (_SPREAD, _SPREAD_FREEDOM) if spread is None else (spread, _KNOWN_FREEDOM)
    tables = [
        _log_evidence(_whitened(rounds, drift), times, steps, least_change, prior)
        for drift in _DRIFTS
    ]
    evidence = np.logaddexp.reduce(np.stack(tables), axis=0)
    weights = np.exp(evidence - evidence.max())
    none, more, slight = np.split(weights / weights.sum(), [1, 1 + last])
    return Posterior((float(none[0]), *(more + slight).tolist()), float(slight.sum()))


def _whitened(rounds: Sequence[int | None], drift: float) -> tuple[Floats, float]:
    """The inverse of the Cholesky factor of the covariance over the noise's variance, and the
    logarithm of the determinant."""
    own = [(-1 - at) if one is None else one for at, one in enumerate(rounds)]
    same = np.equal.outer(own, own)
    covariance = np.eye(len(own)) + drift**2 * same
    factor = np.linalg.cholesky(covariance)
    return np.asarray(np.linalg.inv(factor), np.float64), 2.0 * float(np.log(np.diag(factor)).sum())


def _log_evidence(
    whitened: tuple[Floats, float],
    times: Floats,
    steps: Floats,
    least_change: float,
    prior: tuple[float, float],
) -> Floats:
    """Of no slowdown, of each first bad commit, and of each with a slight slowdown, times its prior
    probability."""
    inverse, log_determinant = whitened
    level = inverse.sum(axis=1)
    known = float(level @ level)

    def without_level(values: Floats) -> Floats:
        return values - np.multiply.outer(values @ level / known, level)

    rest = without_level(inverse @ times)
    slopes = without_level(steps @ inverse.T)
    spread, freedom = prior
    squares = float(rest @ rest) + freedom * spread**2
    power = 0.5 * (len(times) - 1 + freedom)
    length = (slopes**2).sum(axis=1)
    told = length > 1e-9
    safe = np.where(told, length, 1.0)
    estimate = np.where(told, slopes @ rest / safe, 0.0)
    least = squares - np.where(told, estimate**2 * safe, 0.0)
    error = np.sqrt(least / safe / (2.0 * power))

    def of(low: float, high: float, density: Callable[[Floats], Floats]) -> Floats:
        start, stop = (np.arcsinh((end - estimate) / error) for end in (low, high))
        u = start + (stop - start) * np.linspace(0.0, 1.0, _NODES)[:, np.newaxis]
        change = np.clip(estimate + error * np.sinh(u), low, high)
        total = np.where(told, least + length * (change - estimate) ** 2, squares)
        value = (total / squares) ** -power * density(change) * error * np.cosh(u)
        return np.asarray(np.trapezoid(value, axis=0) * (stop - start) / (_NODES - 1))

    octaves = math.log(_MOST_CHANGE / least_change)
    slower = of(least_change, _MOST_CHANGE, lambda change: 1.0 / (change * octaves))
    faster = of(-_MOST_CHANGE, -least_change, lambda change: -1.0 / (change * octaves))
    slightly_slower, slightly_faster = (
        of(low, low + least_change, lambda change: np.full_like(change, 1.0 / least_change))
        for low in (0.0, -least_change)
    )
    none = _SAME + _SLIGHTLY_FASTER * slightly_faster.mean() + _FASTER * faster.mean()
    prior_of_each = np.array([[_SLOWER], [_SLIGHTLY_SLOWER]]) / len(steps)
    each = prior_of_each * np.stack([slower, slightly_slower])
    common = -power * math.log(squares) - 0.5 * (log_determinant + math.log(known))
    with np.errstate(divide="ignore"):
        values = np.log(np.concatenate([[none], *each]))
    return np.asarray(values + common)
