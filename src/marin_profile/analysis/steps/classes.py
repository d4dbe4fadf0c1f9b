"""Light and heavy steps: two classes of step lengths, if there really are two.

Contract: the split of the sorted log lengths with the least squared error (two means, exact in one
dimension). It counts only with at least MIN_STEPS steps, a ratio of the class medians of at least
MIN_RATIO, and at least MIN_SHARE of the steps, and two of them, in each class.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MIN_STEPS = 6
MIN_RATIO = 1.5
MIN_SHARE = 0.10


@dataclass(frozen=True)
class Classes:
    """For each length whether it is heavy."""

    heavy: tuple[bool, ...]


def classify_steps(lengths: list[float]) -> Classes | None:
    """None if there is one class. `lengths` in any unit."""
    count = len(lengths)
    if count < MIN_STEPS or min(lengths) <= 0:
        return None
    ordered = sorted(lengths)
    logs = np.log(ordered)
    sizes = np.arange(1, count)
    left = np.cumsum(logs)[:-1]
    right = logs.sum() - left
    # Minimising the squared error is maximising the classes' squared means, weighted by size.
    gain = left**2 / sizes + right**2 / (count - sizes)
    cut = int(np.argmax(gain)) + 1
    light, heavy = ordered[:cut], ordered[cut:]
    smallest = min(len(light), len(heavy))
    if smallest < 2 or smallest < MIN_SHARE * count:
        return None
    if np.median(heavy) < MIN_RATIO * np.median(light):
        return None
    return Classes(tuple(length > light[-1] for length in lengths))


def periodicity(indexes: list[int]) -> int | None:
    """The commonest difference above 1 between neighbours, seen at least twice; ties: smaller."""
    differences = Counter(later - earlier for earlier, later in pairwise(indexes))
    candidates = {gap: seen for gap, seen in differences.items() if gap > 1 and seen >= 2}
    return min(candidates, key=lambda gap: (-candidates[gap], gap)) if candidates else None
