"""The best split of a series into levels.

Contract: exact: of all splits into segments of at least `shortest` values, the one with the least
sum of squares about the segments' means, plus `penalty` for every segment after the first. Time
grows about as the number of values: a start that no mean can make the best is dropped (functional
pruning: Maidstone et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class _Piece:
    """Of all starts of the last segment, `start` is the best while its mean is in low..high."""

    low: float
    high: float
    start: int


def best_bounds(values: Sequence[float], penalty: float, shortest: int) -> list[int]:
    """0, where a segment starts, and the length."""
    count = len(values)
    if count < 2 * shortest:
        return [0, count]
    middle = math.fsum(values) / count
    centred = [value - middle for value in values]
    sums = [0.0, *accumulate(centred)]
    squares = [0.0, *accumulate(value * value for value in centred)]
    lowest, highest = min(centred), max(centred)
    if lowest == highest:
        return [0, count]
    best = [-penalty] + [math.inf] * count
    previous = [0] * (count + 1)
    pieces: list[_Piece] = []
    for end in range(shortest, count + 1):
        newest = end - shortest
        if math.isfinite(best[newest]):
            pieces = _joined(pieces, newest, end, best, sums, squares, lowest, highest)
        for piece in pieces:
            start = piece.start
            length, total = end - start, sums[end] - sums[start]
            mean = min(max(total / length, piece.low), piece.high)
            square = squares[end] - squares[start] + mean * (length * mean - 2 * total)
            whole = best[start] + square + penalty
            if whole < best[end] or (whole == best[end] and start < previous[end]):
                best[end], previous[end] = whole, start
    bounds = [count]
    while bounds[-1] > 0:
        bounds.append(previous[bounds[-1]])
    return bounds[::-1]


def _joined(
    pieces: list[_Piece],
    newest: int,
    end: int,
    best: list[float],
    sums: list[float],
    squares: list[float],
    lowest: float,
    highest: float,
) -> list[_Piece]:
    """The pieces with one more start: each older one keeps the means for which it costs less."""
    if not pieces:
        return [_Piece(lowest, highest, newest)]
    found: list[_Piece] = []

    def add(low: float, high: float, start: int) -> None:
        if found and found[-1].start == start and found[-1].high == low:
            found[-1] = _Piece(found[-1].low, high, start)
        elif high > low:
            found.append(_Piece(low, high, start))

    for piece in pieces:
        start = piece.start
        # older - newest = a m^2 - 2 b m + c, over the values that only the older one holds
        a, b = newest - start, sums[newest] - sums[start]
        c = squares[newest] - squares[start] + best[start] - best[newest]
        inside = b * b - a * c
        if inside <= 0:
            add(piece.low, piece.high, newest)
            continue
        root = math.sqrt(inside)
        left = min(max((b - root) / a, piece.low), piece.high)
        right = min(max((b + root) / a, piece.low), piece.high)
        add(piece.low, left, newest)
        add(left, right, start)
        add(right, piece.high, newest)
    return found
