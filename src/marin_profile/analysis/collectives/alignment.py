"""Which execution on one host is which on another, where no number shows it.

Members of a collective end together, so under the right alignment of two sequences the distances
between ends are the same on both clocks. Windows may open a few executions apart.
"""

from __future__ import annotations

import math

import numpy as np

from marin_profile.events.timeline import Int64s

FURTHEST = 64
# Of the mean distance between ends: how well they must fit, and what does not tell fits apart.
WORST_FIT = 0.1
SAME_FIT = 0.0001


def shift_between(reference: Int64s, other: Int64s, *, one_clock: bool = False) -> int | None:
    """The s by which execution i of `other` is execution i + s of `reference`, both given by their
    ends; None where they do not fit, or fit in several ways.

    At least two executions, and half of the shorter sequence, must overlap. Of shifts that fit
    alike the one with the largest overlap is meant.
    """
    least = max(2, (min(len(reference), len(other)) + 1) // 2)
    distance = (reference[-1] - reference[0]) / (len(reference) - 1) if len(reference) > 1 else 0.0
    fits: list[tuple[float, int, int]] = []
    best = math.inf
    for shift in sorted(range(-FURTHEST, FURTHEST + 1), key=abs):
        first, last = max(0, shift), min(len(reference), len(other) + shift)
        if last - first < least:
            continue
        apart = reference[first:last] - other[first - shift : last - shift]
        off = np.abs(apart - (0 if one_clock else np.median(apart)))
        # The median of what is mostly farther off than that is, too.
        if 2 * np.count_nonzero(off <= _alike(best, distance)) < len(off):
            continue
        fits.append((float(np.median(off)), last - first, shift))
        best = min(best, fits[-1][0])
    if best > WORST_FIT * distance:
        return None
    alike = [(overlap, shift) for fit, overlap, shift in fits if fit <= _alike(best, distance)]
    overlap, shift = max(alike)
    return shift if [one for one, _ in alike].count(overlap) == 1 else None


def _alike(best: float, distance: float) -> float:
    """How badly a shift may fit that fits as well as the best."""
    return 2 * best + SAME_FIT * distance
