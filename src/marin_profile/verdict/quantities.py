"""Other quantities than the step time: deciles of it, and device time a step, with their variances.

Contract: a value and the variance of it from the steps of one capture; NaN where they are fewer
than LEAST_STEPS. `phi` is what the captures' steps have in common (see `memory`).
"""

from __future__ import annotations

import math

import numpy as np

from marin_profile.verdict import memory
from marin_profile.verdict.series import LEAST_STEPS, Variance
from marin_profile.verdict.student import Floats, incomplete_beta

FAR = 9.0  # standard deviations of an order statistic


def log_quantile(lengths: Floats, probability: float) -> float:
    """The logarithm of a quantile, linearly interpolated."""
    return math.log(float(np.quantile(lengths, probability, method="linear")))


def log_quantile_variance(lengths: Floats, probability: float, phi: float) -> Variance:
    """Maritz and Jarrett's variance of a sample quantile (1978), times the AR(1) factor."""
    steps = len(lengths)
    if steps < LEAST_STEPS:
        return Variance(math.nan, 1.0)
    ordered = np.sort(np.log(lengths))
    edges = np.linspace(0.0, 1.0, steps + 1)
    m = (steps + 1) * probability
    # Further away the distribution is 0 or 1 to all digits.
    reach = FAR * math.sqrt(probability * (1.0 - probability) / steps) + 1.0 / steps
    near = np.abs(edges - probability) <= reach
    below = np.where(edges > probability, 1.0, 0.0)
    below[near] = incomplete_beta(m, steps + 1 - m, edges[near])
    chance = np.diff(below)
    mean = float(ordered @ chance)
    variance = float(((ordered - mean) ** 2) @ chance)
    independent = max(1.0, memory.independent_steps(phi, steps - 1))
    return Variance(variance * memory.mean_variance_factor(phi, steps), independent)


def mean_variance(values: Floats) -> Variance:
    """Of the mean of a quantity per step, with an autocorrelation of its own."""
    steps = len(values)
    if steps < LEAST_STEPS:
        return Variance(math.nan, 1.0)
    residuals = values - values.mean()
    phi = memory.autocorrelation([residuals])
    factor = memory.mean_variance_factor(phi, steps)
    variance = float(residuals @ residuals) / (steps - factor) * factor / steps
    return Variance(variance, max(1.0, memory.independent_steps(phi, steps - 1)))
