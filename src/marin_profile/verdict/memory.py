"""How much neighbouring steps have in common: what that makes of the error of a mean.

Contract
* Short memory is that of an AR(1) process with one coefficient for all captures, estimated over
  them together, corrected for its bias (Marriott and Pope 1954, Kendall 1954), drawn towards
  PRIOR_PHI as by PRIOR_STEPS more steps, within 0..MOST_PHI.
* Longer memory (drift, 1/f noise, a clock that switches for a while) shows in the slowest waves of
  a capture: WAVES cosines a capture (Mueller 2007; Lazarus, Lewis and Stock 2018). The mean of
  their squares estimates the same variance without a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marin_profile.verdict.student import Floats

MOST_PHI = 0.95
# Chosen on the table of docs/verdict.md.
PRIOR_PHI = 0.5
PRIOR_STEPS = 12.0
WAVES = 3


def autocorrelation(residuals: Sequence[Floats], prior_steps: float = PRIOR_STEPS) -> float:
    """The AR(1) coefficient that all captures share; 0 where nothing varies."""
    if not residuals:
        return 0.0
    product = sum(float(one[1:] @ one[:-1]) for one in residuals)
    square = sum(float(one @ one) for one in residuals)
    if square <= 0:
        return 0.0
    steps, captures = sum(map(len, residuals)), len(residuals)
    # E[raw] is about phi - (1 + 3 phi) / n for a series of n steps about its own mean.
    corrected = (steps * product / square + captures) / (steps - 3 * captures)
    drawn = (steps * corrected + prior_steps * PRIOR_PHI) / (steps + prior_steps)
    return min(max(drawn, 0.0), MOST_PHI)


def mean_variance_factor(phi: float, count: float) -> float:
    """n * variance of the mean of n AR(1) values / variance of one (Bartlett 1935): near
    (1 + phi) / (1 - phi) for a long series, 1 for phi = 0."""
    lasting = 2.0 * phi * (1.0 - phi**count) / (count * (1.0 - phi) ** 2)
    return (1.0 + phi) / (1.0 - phi) - lasting


def independent_steps(phi: float, steps: int) -> float:
    """How many independent steps tell as much of the mean as so many of this phi."""
    return steps * (1.0 - phi) / (1.0 + phi)


def slow_variance(residuals: Floats) -> float:
    """n * variance of the mean, as the slowest waves of the series show it; WAVES degrees of
    freedom. `residuals` sum to zero."""
    steps = len(residuals)
    waves = np.arange(1, WAVES + 1)[:, None]
    cosines = np.cos(np.pi * waves * (np.arange(steps) + 0.5) / steps)
    return float((2.0 / steps * (cosines @ residuals) ** 2).mean())
