"""Arms against one control, in rounds: which arm is faster, and which is worth another round?

Contract
* One may look after every round and stop whenever one likes. Whatever the arms' true effects, an
  arm that is not faster wins in at most `error` (1 %) of experiments, all arms and looks together.
  That is exact for arms of one spread; others, and heavy tails, were simulated.
* The intervals of all arms and looks together hold all true effects in at least 95 %.
* An arm stops as soon as it wins; is certainly slower (its interval is above zero); or has no win
  worth having: its bound of level 1 / (3 rounds), of this look alone, excludes a gain of
  `worthwhile`. So stop about 1 in 6 arms that gain just that, and 1 in 100 that gain twice as much.
  After `most_rounds` it is undecided. No bound holds before three rounds.
* Effects are logarithms of ratios: negative is faster. Drift common to a round cancels in them.
  One capture of the control a round serves all arms: a second one would cost what it saves, as
  fewer and fewer arms run.

Every look has the same nominal level (Pocock; see verdict.sequential), the bounds are those of
repeated confidence intervals (Jennison and Turnbull). Arms share `error` by S. Holm's step-down
procedure (Scand. J. Stat. 6 (1979) 65), at each look (W. Maurer and F. Bretz, Stat. Biopharm. Res.
5 (2013) 311): of k arms, w of which have won, each other is tested at error / (k - w). That holds
for any correlation of the arms, so also for the control that they share. Stopping for no win is
not binding: error rates hold as well for who goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from marin_profile.experiment.spread import Spread, spread_of
from marin_profile.verdict.sequential import FIRST_LOOK, LAST_LOOK, level_of_one_look

State = Literal["running", "wins", "slower", "no_win", "undecided"]

ERROR = 0.01
WORTHWHILE = math.log1p(-0.01)
INTERVAL_ERROR = 0.05


@dataclass(frozen=True)
class ArmStanding:
    """`estimate`: the mean effect, None before the first round; `low`, `high`: of the interval;
    `best`: the bound that stops the arm where it excludes a gain worth having."""

    state: State
    estimate: float | None
    low: float
    high: float
    best: float
    rounds: int


@dataclass(frozen=True)
class Race:
    arms: Mapping[str, ArmStanding]

    @property
    def running(self) -> tuple[str, ...]:
        """The arms worth another round, in the order given."""
        return tuple(name for name, arm in self.arms.items() if arm.state == "running")

    @property
    def is_over(self) -> bool:
        return not self.running


@dataclass(frozen=True)
class _Arm:
    rounds: int
    estimate: float
    spread: Spread


def decide(
    effects: Mapping[str, Sequence[float]],
    *,
    error: float = ERROR,
    worthwhile: float = WORTHWHILE,
    most_rounds: int = LAST_LOOK,
) -> Race:
    """`effects[arm]`: log(step time of the arm / of the control) of each round in which both ran,
    in order. Effects after `most_rounds` do not count."""
    if most_rounds < FIRST_LOOK:
        raise ValueError(f"most_rounds is {most_rounds}: at least {FIRST_LOOK} are needed")
    counted = {name: values[:most_rounds] for name, values in effects.items()}
    for name, values in counted.items():
        if not all(map(math.isfinite, values)):
            raise ValueError(f"an effect of arm {name} is not a finite number: {list(values)}")
    arms = {name: _arm(name, counted) for name, values in counted.items() if len(values) > 1}
    looked = {name: arm for name, arm in arms.items() if arm.rounds >= FIRST_LOOK}
    winners = _winners(looked, len(effects), error, most_rounds)
    return Race(
        {
            name: (
                _standing(looked[name], name in winners, len(effects), worthwhile, most_rounds)
                if name in looked
                else _before_a_look(values)
            )
            for name, values in counted.items()
        }
    )


def _arm(name: str, effects: Mapping[str, Sequence[float]]) -> _Arm:
    own = effects[name]
    others = [values for other, values in effects.items() if other != name]
    return _Arm(
        len(own),
        math.fsum(own) / len(own),
        spread_of(own, others),
    )


def _winners(
    looked: Mapping[str, _Arm], family: int, error: float, most_rounds: int
) -> frozenset[str]:
    """Holm's procedure: each winner leaves more of the error to the others."""
    winners: frozenset[str] = frozenset()
    while len(winners) < family:
        level = level_of_one_look(error / (family - len(winners)), most_rounds)
        now = {
            name for name, arm in looked.items() if arm.estimate + arm.spread.half_width(level) < 0
        }
        if now <= winners:
            break
        winners |= now
    return winners


def _standing(
    arm: _Arm, wins: bool, family: int, worthwhile: float, most_rounds: int
) -> ArmStanding:
    width = arm.spread.half_width(level_of_one_look(INTERVAL_ERROR / 2 / family, most_rounds))
    low, high = arm.estimate - width, arm.estimate + width
    best = arm.estimate - arm.spread.half_width(1 / (3 * arm.rounds))
    state: State = "running"
    if wins:
        # What Holm's procedure gives to the last arms reaches as far as zero.
        state, high = "wins", min(high, 0.0)
    elif low > 0:
        state = "slower"
    elif best > worthwhile:
        state = "no_win"
    elif arm.rounds >= most_rounds:
        state = "undecided"
    return ArmStanding(state, arm.estimate, low, high, best, arm.rounds)


def _before_a_look(values: Sequence[float]) -> ArmStanding:
    estimate = math.fsum(values) / len(values) if values else None
    return ArmStanding("running", estimate, -math.inf, math.inf, -math.inf, len(values))
