"""Small exact operations on integer columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


def is_sorted(values: Int64s) -> bool:
    """Whether `values` never descend."""
    return bool((values[1:] >= values[:-1]).all())


def sum_by(index: NDArray[np.integer], values: Int64s, size: int) -> Int64s:
    """Integer sums of `values` grouped by `index` (0..size-1); exact, unlike float weights."""
    totals = np.zeros(size, np.int64)
    np.add.at(totals, index, values)
    return totals


# bincount takes a copy of what is no int64: of so many values at once.
_AT_ONCE = 1 << 18


def counts_of(index: NDArray[np.integer], size: int) -> Int64s:
    """How often each of 0..size-1 occurs in `index`."""
    if index.dtype == np.int64:
        return np.bincount(index, minlength=size).astype(np.int64, copy=False)
    counts = np.zeros(size, np.int64)
    for at in range(0, len(index), _AT_ONCE):
        counts += np.bincount(index[at : at + _AT_ONCE], minlength=size)
    return counts


def rows_with(index: NDArray[np.integer], wanted: Sequence[int], size: int) -> Int64s:
    """Where an index column (all in 0..size-1) has one of the wanted values."""
    if not len(wanted):
        return np.zeros(0, np.int64)
    is_wanted = np.zeros(size, np.bool_)
    is_wanted[wanted] = True
    return np.flatnonzero(is_wanted[index])


def moved_to_clock(anchors: Int64s, shifts: Int64s, points: Int64s) -> Int64s:
    """Points moved from one clock to another: each by the shift of the last anchor at or before
    it, or of the first anchor."""
    order = np.argsort(anchors, kind="stable")
    at = np.searchsorted(anchors[order], points, side="right") - 1
    return points + shifts[order][np.clip(at, 0, None)]


def run_starts(values: NDArray[np.integer]) -> Int64s:
    """Where in a column a value begins that differs from the one before."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)


def extent_by(
    index: NDArray[np.integer], start: Int64s, end: Int64s, size: int
) -> tuple[Int64s, Int64s]:
    """Least start and greatest end of the rows of each group 0..size-1 (-1 is no group). Groups
    without rows keep the greatest and the least int64."""
    # One place more, the last, for the rows of no group.
    first = np.full(size + 1, np.iinfo(np.int64).max, np.int64)
    last = np.full(size + 1, np.iinfo(np.int64).min, np.int64)
    runs = run_starts(index)
    if len(runs):
        groups = index[runs]
        np.minimum.at(first, groups, np.minimum.reduceat(start, runs))
        np.maximum.at(last, groups, np.maximum.reduceat(end, runs))
    return first[:size], last[:size]


def distinct(index: NDArray[np.integer], size: int) -> Int64s:
    """The distinct values of an index column (all in 0..size-1), ascending."""
    return np.flatnonzero(counts_of(index, size))


def find_sorted(rows: Int64s, values: Int64s, wanted: Int64s) -> tuple[NDArray[np.bool_], Int64s]:
    """For each of `wanted` whether ascending `rows` hold it, and its value (else 0)."""
    if not len(rows):
        return np.zeros(len(wanted), np.bool_), np.zeros(len(wanted), np.int64)
    at = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    found = rows[at] == wanted
    return found, np.where(found, values[at], 0)


# Pairs of small numbers are counted in a table of at most this many cells.
LARGEST_TABLE = 1 << 21


def unique_pairs(first: Int64s, second: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The distinct pairs (first[i], second[i]), ascending, and each row's index among them."""
    if not len(first):
        return first, second, np.zeros(0, np.int64)
    low, least = int(first.min()), int(second.min())
    height, width = int(first.max()) - low + 1, int(second.max()) - least + 1
    if height * width <= LARGEST_TABLE:
        cell = (first - low) * width + (second - least)
        used = distinct(cell, height * width)
        rank = np.empty(height * width, np.int64)
        rank[used] = np.arange(len(used))
        return used // width + low, used % width + least, rank[cell]
    firsts, a = np.unique(first, return_inverse=True)
    seconds, b = np.unique(second, return_inverse=True)
    pairs, inverse = np.unique(a * len(seconds) + b, return_inverse=True)
    return firsts[pairs // len(seconds)], seconds[pairs % len(seconds)], inverse
