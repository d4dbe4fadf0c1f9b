"""Steps that come back: every k-th step is slower (or faster) than the others.

Contract
* A comb is a distance and a phase of step numbers. It counts if its steps' ranks differ from the
  others' by the rank-sum test (Student's t of the ranks: Iman 1974) beyond what the best of all
  distances and phases shows by chance, and if the window holds LEAST_CYCLES of it.
* Of several combs the clearest is found first, the next among the steps that are left. Where only
  every m-th step of a comb is unlike the others, that is the comb.
* Ranks alone count: one giant step is no pattern, and the unit of the periods does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.verdict.student import Floats, two_sided_p

LEAST_CYCLES = 4
LEAST_OTHERS = 6  # steps outside the comb, which the error of the rest stands on
MOST_COMBS = 3
LONGEST_CYCLE = 1000  # steps; longer windows would take seconds
CHANCE = 0.1

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Comb:
    """The steps whose number leaves `phase` when divided by `every`; `chance` bounds how likely one
    as clear is where there is none."""

    every: int
    phase: int
    chance: float = 1.0

    def holds(self, numbers: Integers) -> NDArray[np.bool_]:
        return np.asarray(numbers % self.every == self.phase)


def find_combs(values: Floats, numbers: Integers) -> tuple[Comb, ...]:
    """`values` in order of time, `numbers` the steps' numbers. The clearest comb first."""
    found: list[Comb] = []
    left = np.ones(len(values), np.bool_)
    while len(found) < MOST_COMBS:
        comb = _clearest(values[left], numbers[left])
        if comb is None:
            break
        comb = _rarest(comb, values[left], numbers[left])
        found.append(comb)
        left &= ~comb.holds(numbers)
    return tuple(found)


def shares(combs: Sequence[Comb]) -> tuple[float, ...]:
    """What part of all steps, over whole cycles, each comb holds that none before it does."""
    return tuple(_share(comb, combs[:at]) for at, comb in enumerate(combs))


def _share(comb: Comb, others: Sequence[Comb]) -> float:
    if not others:
        return 1.0 / comb.every
    first, *rest = others
    both = _both(comb, first)
    return _share(comb, rest) - (_share(both, rest) if both else 0.0)


def _both(one: Comb, other: Comb) -> Comb | None:
    """The comb of the steps in both; None if there are none."""
    every = math.lcm(one.every, other.every)
    phases = range(one.phase, every, one.every)
    phase = next((at for at in phases if at % other.every == other.phase), None)
    return None if phase is None else Comb(every, phase)


def best_phase(values: Floats, numbers: Integers, every: int) -> Comb:
    """Where a comb of this distance would stand, whether it is one or not."""
    return Comb(every, _extreme(_rank_scores(_ranks(values), numbers % every, every)))


def _clearest(values: Floats, numbers: Integers) -> Comb | None:
    count = len(values)
    ranks = _ranks(values)
    if not ranks.any():
        return None
    tried, best, comb = 0, 0.0, None
    for every in range(2, min(count // LEAST_CYCLES, LONGEST_CYCLE) + 1):
        scores = _rank_scores(ranks, numbers % every, every)
        phase = _extreme(scores)
        tried += every
        if abs(scores[phase]) > best:
            best, comb = abs(float(scores[phase])), Comb(every, phase)
    if comb is None:
        return None
    rest = count - 1.0 - best**2
    t = best * math.sqrt((count - 2) / rest) if rest > 0 else math.inf
    chance = two_sided_p(t, count - 2) * tried
    return replace(comb, chance=chance) if chance < CHANCE else None


def _rarest(comb: Comb, values: Floats, numbers: Integers) -> Comb:
    """The part of a comb that is unlike the rest, if its other steps are like the rest."""
    members = comb.holds(numbers)
    usual = float(np.median(values[~members]))
    rarest, furthest = comb, 0.0
    for multiple in range(2, int(members.sum()) // LEAST_CYCLES + 1):
        every = comb.every * multiple
        for phase in range(comb.phase, every, comb.every):
            part = replace(comb, every=every, phase=phase)
            inside = part.holds(numbers)
            others = members & ~inside
            if inside.sum() < LEAST_CYCLES or not others.any():
                continue
            far = abs(float(np.median(values[inside])) - usual)
            if abs(float(np.median(values[others])) - usual) < far / 2.0 and far > furthest:
                rarest, furthest = part, far
    return rarest


def _extreme(scores: Floats) -> int:
    """The phase furthest from the others; of two as far (halves of the steps) the slower one."""
    sizes = np.abs(scores)
    far = sizes >= sizes.max() * (1.0 - 1e-9)
    return int(np.argmax(np.where(far, scores, -np.inf)))


def _ranks(values: Floats) -> Floats:
    """Of equal values the mean rank; centred, so that they sum to nothing."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2.0)[group] - (len(values) + 1) / 2.0)


def _rank_scores(ranks: Floats, phases: Integers, every: int) -> Floats:
    """For each phase the rank sum over its standard deviation by chance; 0 for a phase that the
    window holds fewer than LEAST_CYCLES times, or that leaves fewer than LEAST_OTHERS steps."""
    count = len(ranks)
    sums = np.bincount(phases, ranks, every)
    members = np.bincount(phases, minlength=every)
    spread = float(ranks @ ranks) / max(count - 1, 1)
    variance = spread * members * (count - members) / count
    enough = (members >= LEAST_CYCLES) & (count - members >= LEAST_OTHERS) & (spread > 0)
    return np.where(enough, sums / np.sqrt(np.where(enough, variance, 1.0)), 0.0)
