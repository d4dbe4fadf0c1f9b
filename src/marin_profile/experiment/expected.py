"""Before an experiment: after how many rounds does an arm that is faster by so much win?

Drawn, not derived: the looks so far depend on each other, and so do the spreads that stand for the
error. The draws are seeded; the rule is that of `race`, for normal step times of one spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from marin_profile.experiment.race import ERROR
from marin_profile.experiment.spread import most_weight
from marin_profile.verdict.sequential import FIRST_LOOK, LAST_LOOK, level_of_one_look
from marin_profile.verdict.student import Floats, t_quantile

SEED = 1
EXPERIMENTS = 2000
OFTEN = 0.9


@dataclass(frozen=True)
class Expected:
    """`rounds`: after so many an arm has won in nine of ten experiments, None: after no number that
    is allowed; `power`: the share of experiments in which it wins at all."""

    rounds: int | None
    power: float


def expected(
    spread: float,
    change: float,
    arms: int,
    *,
    error: float = ERROR,
    most_rounds: int = LAST_LOOK,
) -> Expected:
    """`spread`: the standard deviation of log step times from run to run; `change`: of the one arm
    that is not like the control, a logarithm."""
    rng = np.random.default_rng(SEED)
    shape = (EXPERIMENTS, arms, most_rounds)
    control = rng.standard_normal((EXPERIMENTS, 1, most_rounds))
    effects = spread * (rng.standard_normal(shape) - control)
    effects[:, 0] += change
    level = level_of_one_look(error / arms, most_rounds)
    won_at = np.full(EXPERIMENTS, most_rounds + 1)
    for rounds in range(most_rounds, FIRST_LOOK - 1, -1):
        won_at[_wins(effects[..., :rounds], level)] = rounds
    often = int(np.sort(won_at)[math.ceil(OFTEN * EXPERIMENTS) - 1])
    power = float((won_at <= most_rounds).mean())
    return Expected(often if often <= most_rounds else None, power)


def _wins(effects: Floats, level: float) -> Floats:
    """Of the first arm, whether its bound is below zero."""
    arms, rounds = effects.shape[1:]
    variances = effects.var(axis=-1, ddof=1)
    freedom, used = rounds - 1.0, variances[:, 0]
    if arms > 1:
        others = freedom * (arms - 1) / (1 + (arms - 2) / 4)
        weight = min(most_weight(arms), others)
        steadied = freedom * used + weight * variances[:, 1:].mean(axis=-1)
        used = np.maximum(used, steadied / (freedom + weight))
        freedom += weight
    bound = np.sqrt(used / rounds) * t_quantile(1.0 - level, freedom)
    return np.asarray(effects[:, 0].mean(axis=-1) + bound < 0)
