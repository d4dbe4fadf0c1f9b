"""Experiments with several arms, simulated: false winners, winners found, and captures taken.

A round is one capture of the control and one of each arm that still runs, judged after each round
by the very code of `marin-profile experiment`, up to 20 rounds. Log step times scatter by 1 % from
run to run, and by 1.5 % from round to round, which is common to a round. Errors of a capture:

normal         independent
t3             independent, Student's t with 3 degrees of freedom
one x 3, x 10  one arm scatters three or ten times as much as the others
half x 3       every second arm scatters three times as much
lognormal      each arm has a spread of its own, of lognormal size (sigma 0.5)
control x 3    the control scatters three times as much
wandering      the machine's state is AR(1) with 0.9 from capture to capture, as wide as the noise;
               every second round is taken in the reverse order
drifting       the machine slows down by 0.1 % with each capture, the order reversed likewise
AR rounds      each arm's and the control's noise is AR(1) with 0.3 from round to round
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.experiment.expected import expected
from marin_profile.experiment.race import Race, decide
from marin_profile.verdict.sequential import LAST_LOOK
from marin_profile.verdict.student import Floats

SPREAD = 0.01
WINDOW_DRIFT = 0.015
ARMS = (1, 2, 4, 8, 16)
CHANGES = (-0.01, -0.02, -0.03, -0.05, 0.03)
PHI_CAPTURES = 0.9
PHI_ROUNDS = 0.3
DRIFT_A_CAPTURE = 0.1

Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Sweep:
    """One experiment when it is over. `effects` are the true ones."""

    race: Race
    effects: tuple[float, ...]

    @property
    def rounds(self) -> int:
        return max(arm.rounds for arm in self.race.arms.values())

    @property
    def captures(self) -> int:
        return sum(arm.rounds for arm in self.race.arms.values()) + self.rounds

    @property
    def captures_without_stops(self) -> int:
        """Every arm and the control as often as the last arm needed."""
        return (len(self.effects) + 1) * self.rounds

    @property
    def captures_with_own_controls(self) -> int:
        """The same with a control for each arm."""
        return 2 * len(self.effects) * self.rounds

    def states(self, where: Callable[[float], bool] = lambda effect: True) -> list[str]:
        pairs = zip(self.race.arms.values(), self.effects, strict=True)
        return [arm.state for arm, effect in pairs if where(effect)]

    @property
    def has_false_winner(self) -> bool:
        return "wins" in self.states(lambda effect: effect >= 0)

    @property
    def is_covered(self) -> bool:
        pairs = zip(self.race.arms.values(), self.effects, strict=True)
        return all(arm.low <= effect <= arm.high for arm, effect in pairs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=2000, help="experiments a line")
    parser.add_argument("--seed", type=int, default=1)


def bench_sweeps(options: argparse.Namespace) -> None:
    print("\n".join(errors_table(options.runs, options.seed)), end="\n\n", flush=True)
    print("\n".join(changes_table(options.runs, options.seed)), flush=True)


# --- draws: (control and arms, rounds), in spreads from run to run --------------------------------


def normal(rng: np.random.Generator, arms: int) -> Floats:
    return rng.standard_normal((arms + 1, LAST_LOOK))


def heavy(rng: np.random.Generator, arms: int) -> Floats:
    return rng.standard_t(3, (arms + 1, LAST_LOOK)) / math.sqrt(3.0)


def scattered(factor: float, which: slice) -> Draw:
    def draw(rng: np.random.Generator, arms: int) -> Floats:
        noise = normal(rng, arms)
        noise[which] *= factor
        return noise

    return draw


def lognormal(rng: np.random.Generator, arms: int) -> Floats:
    return normal(rng, arms) * np.exp(0.5 * rng.standard_normal((arms + 1, 1)))


def wandering(rng: np.random.Generator, arms: int) -> Floats:
    noise = rng.standard_normal((arms + 1) * LAST_LOOK)
    state = _autoregressive(noise[np.newaxis], PHI_CAPTURES)[0]
    own = rng.standard_normal(len(state))
    return _in_order_of_time((state + own) / math.sqrt(2.0))


def drifting(rng: np.random.Generator, arms: int) -> Floats:
    count = (arms + 1) * LAST_LOOK
    return _in_order_of_time(rng.standard_normal(count) + DRIFT_A_CAPTURE * np.arange(count))


def remembering(rng: np.random.Generator, arms: int) -> Floats:
    return _autoregressive(normal(rng, arms), PHI_ROUNDS)


def _autoregressive(noise: Floats, phi: float) -> Floats:
    for at in range(1, noise.shape[1]):
        noise[:, at] = phi * noise[:, at - 1] + math.sqrt(1.0 - phi**2) * noise[:, at]
    return noise


def _in_order_of_time(captures: Floats) -> Floats:
    by_round = captures.reshape(LAST_LOOK, -1).copy()
    by_round[1::2] = by_round[1::2, ::-1]
    return by_round.T


ERRORS: dict[str, Draw] = {
    "normal": normal,
    "t3": heavy,
    "one x 3": scattered(3.0, slice(1, 2)),
    "one x 10": scattered(10.0, slice(1, 2)),
    "half x 3": scattered(3.0, slice(1, None, 2)),
    "lognormal": lognormal,
    "control x 3": scattered(3.0, slice(0, 1)),
    "wandering": wandering,
    "drifting": drifting,
    "AR rounds": remembering,
}


# --- sweeps ---------------------------------------------------------------------------------------


def sweep(rng: np.random.Generator, effects: Sequence[float], draw: Draw = normal) -> Sweep:
    """Rounds until the race is over."""
    times = SPREAD * draw(rng, len(effects)) + WINDOW_DRIFT * rng.standard_normal(LAST_LOOK)
    times[1:] += np.asarray(effects)[:, np.newaxis]
    seen: dict[str, list[float]] = {f"arm {at}": [] for at in range(len(effects))}
    race = decide(seen)
    for control, *arms in times.T.tolist():
        running = race.running
        for (name, values), time in zip(seen.items(), arms, strict=True):
            if name in running:
                values.append(time - control)
        race = decide(seen)
        if race.is_over:
            break
    return Sweep(race, tuple(effects))


def sweeps(runs: int, seed: Sequence[int], effects: Sequence[float], draw: Draw) -> list[Sweep]:
    rng = np.random.default_rng(seed)
    return [sweep(rng, effects, draw) for _ in range(runs)]


# --- tables ---------------------------------------------------------------------------------------


def errors_table(runs: int, seed: int) -> Iterator[str]:
    yield f"Eight arms, none faster, {runs:,} experiments a line:"
    yield ""
    yield from _header(
        "errors",
        "a false winner",
        "all intervals hold",
        "no win",
        "undecided",
        "rounds of an arm",
        "of the last",
        "captures",
        "of all without stops",
    )
    for at, (name, draw) in enumerate(ERRORS.items()):
        found = sweeps(runs, [seed, at], [0.0] * 8, draw)
        yield _line(
            name,
            _share([one.has_false_winner for one in found], 2),
            _share([one.is_covered for one in found], 1),
            _share([state == "no_win" for one in found for state in one.states()]),
            _share([state == "undecided" for one in found for state in one.states()]),
            f"{np.mean([arm.rounds for one in found for arm in one.race.arms.values()]):.1f}",
            f"{np.mean([one.rounds for one in found]):.1f}",
            f"{np.mean([one.captures for one in found]):.0f}",
            _saved(found),
        )


def changes_table(runs: int, seed: int) -> Iterator[str]:
    yield f"One arm with a change, the others without, normal errors, {runs:,} experiments a line:"
    yield ""
    yield from _header(
        "arms",
        "change",
        "expected: rounds, wins",
        "wins",
        "slower",
        "no win",
        "undecided",
        "its rounds",
        "a false winner",
        "captures",
        "of all without stops",
        "with own controls",
    )
    for arms in ARMS:
        for at, change in enumerate(CHANGES):
            moved = math.log1p(change)
            found = sweeps(runs, [seed, 100 + arms, at], [moved, *[0.0] * (arms - 1)], normal)
            states = [one.states()[0] for one in found]
            planned = expected(SPREAD, moved, arms)
            often = "-" if planned.rounds is None else str(planned.rounds)
            yield _line(
                str(arms),
                f"{100 * change:+.0f} %",
                f"{often}, {100 * planned.power:.0f} %",
                *(
                    _share([state == one for state in states], 1)
                    for one in ("wins", "slower", "no_win", "undecided")
                ),
                f"{np.mean([next(iter(one.race.arms.values())).rounds for one in found]):.1f}",
                _share([one.has_false_winner for one in found], 2),
                f"{np.mean([one.captures for one in found]):.0f}",
                _saved(found),
                _of(found, [one.captures_with_own_controls for one in found]),
            )


def _saved(found: Sequence[Sweep]) -> str:
    return _of(found, [one.captures_without_stops for one in found])


def _of(found: Sequence[Sweep], whole: Sequence[int]) -> str:
    return f"{100 * sum(one.captures for one in found) / sum(whole):.0f} %"


def _share(flags: Sequence[bool], digits: int = 0) -> str:
    return f"{100 * np.mean(flags):.{digits}f} %"


def _header(*titles: str) -> Iterator[str]:
    yield _line(*titles)
    yield "|---:" * len(titles) + "|"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
