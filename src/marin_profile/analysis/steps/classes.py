"""Light and heavy steps: two groups of periods, if two fit clearly better than one; and how
regularly steps of a kind come back.

Contract: the split of the sorted log periods with the least squared error (two means, exact in one
dimension) among those that leave both classes MIN_SHARE of the steps, and two of them. It counts
if the squared error that is left, as a share of that of one group, is below what all but one in
200 samples of a uniform distribution give: a flat spread is the hardest to tell from two groups of
all with one peak (a normal distribution of logs leaves about half as much again). The medians must
also differ by MIN_RATIO, the excess that makes an outlier.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MIN_STEPS = 6
MIN_RATIO = 1.1
MIN_SHARE = 0.10

# How likely a distance may be by chance to be called a period.
CHANCE = 0.01

# Steps, and the 0.5 % quantile of the share of squared error that the best split leaves of uniform
# samples (200,000 and more each; without end 1/4). Between two entries 1/sqrt(steps) interpolates.
_UNIFORM_LEAVES = (
    (6, 0.0128),
    (7, 0.0211),
    (8, 0.0299),
    (9, 0.0382),
    (10, 0.0458),
    (12, 0.0604),
    (15, 0.0779),
    (20, 0.0986),
    (30, 0.1246),
    (50, 0.1517),
    (100, 0.1799),
    (200, 0.2005),
    (1000, 0.2277),
    (math.inf, 0.25),
)


@dataclass(frozen=True)
class Classes:
    """For each period whether it is heavy."""

    heavy: tuple[bool, ...]


def classify_steps(periods: Sequence[float]) -> Classes | None:
    """None if there is one class. `periods` in any unit."""
    count = len(periods)
    if count < MIN_STEPS or min(periods) <= 0:
        return None
    ordered = sorted(periods)
    logs = np.log(ordered)
    logs -= logs.mean()
    smallest = max(2, math.ceil(MIN_SHARE * count))
    sizes = np.arange(smallest, count - smallest + 1)
    # The squared error that a split saves is the classes' squared means, weighted by size.
    saved = np.cumsum(logs)[sizes - 1] ** 2 * (1 / sizes + 1 / (count - sizes))
    best = int(np.argmax(saved))
    light, heavy = ordered[: sizes[best]], ordered[sizes[best] :]
    whole = float(logs @ logs)
    if whole - float(saved[best]) >= _most_left(count) * whole:
        return None
    if np.median(heavy) < MIN_RATIO * np.median(light):
        return None
    return Classes(tuple(period > light[-1] for period in periods))


def _most_left(count: int) -> float:
    counts, shares = zip(*_UNIFORM_LEAVES, strict=True)
    near = [-1 / math.sqrt(one) for one in counts]
    return float(np.interp(-1 / math.sqrt(count), near, shares))


def periodicity(members: Sequence[int], count: int) -> int | None:
    """After how many steps a kind of step comes back; `members` are its places, ascending, among
    `count` steps in a row.

    The commonest distance between neighbours (ties: the smaller), if it is above 1, seen at least
    twice, and if chance alone would bring any distance that often in fewer than CHANCE of all ways
    to choose as many places.
    """
    distances = Counter(later - earlier for earlier, later in pairwise(members))
    if not distances:
        return None
    distance = min(distances, key=lambda one: (-distances[one], one))
    seen = distances[distance]
    if distance < 2 or seen < 2 or _chance(len(members), count, seen) >= CHANCE:
        return None
    return distance


def _chance(members: int, count: int, seen: int) -> float:
    """A bound on the probability that a distance above 1 occurs `seen` times among neighbours of a
    random set of `members` out of `count` places.

    To leave out `seen` members and the distance before each of them maps the sets in which given
    neighbours are `distance` apart one to one to those of `members - seen` out of `count - seen *
    distance`; summed over the choices of neighbours and the distances.
    """
    left = members - seen
    whole = _log_choose(count, members) - _log_choose(members - 1, seen)
    longest = (count - left) // seen
    return sum(
        math.exp(_log_choose(count - seen * distance, left) - whole)
        for distance in range(2, longest + 1)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
