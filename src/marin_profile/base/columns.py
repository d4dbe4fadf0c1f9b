"""Small exact operations on integer columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.jit import jit

Int64s = NDArray[np.int64]


@jit
def is_sorted(values):
    """Whether `values` never descend."""
    for i in range(1, len(values)):  # noqa: SIM110 - numba compiles no generators
        if values[i] < values[i - 1]:
            return False
    return True


@jit
def sum_by(index, values, size):
    """Integer sums of `values` grouped by `index` (0..size-1); exact, unlike float weights."""
    totals = np.zeros(size, np.int64)
    for i in range(len(index)):
        totals[index[i]] += values[i]
    return totals


@jit
def counts_of(index, size):
    """How often each of 0..size-1 occurs in `index`."""
    counts = np.zeros(size, np.int64)
    for i in range(len(index)):
        counts[index[i]] += 1
    return counts


def moved_to_clock(anchors: Int64s, shifts: Int64s, points: Int64s) -> Int64s:
    """Points moved from one clock to another: each by the shift of the last anchor at or before
    it, or of the first anchor."""
    order = np.argsort(anchors, kind="stable")
    at = np.searchsorted(anchors[order], points, side="right") - 1
    return points + shifts[order][np.clip(at, 0, None)]


@jit
def extent_by(index, start, end, size):
    """Least start and greatest end of the rows of each group 0..size-1 (-1 is no group). Groups
    without rows keep the greatest and the least int64."""
    first = np.full(size, np.iinfo(np.int64).max, np.int64)
    last = np.full(size, np.iinfo(np.int64).min, np.int64)
    for i in range(len(index)):
        group = index[i]
        if group >= 0:
            first[group] = min(first[group], start[i])
            last[group] = max(last[group], end[i])
    return first, last


def distinct(index: NDArray[np.integer], size: int) -> Int64s:
    """The distinct values of an index column (all in 0..size-1), ascending."""
    return np.flatnonzero(counts_of(index, size))


@jit
def find_sorted(rows, values, wanted):
    """For each of `wanted` whether ascending `rows` hold it, and its value (else 0). Linear where
    `wanted` ascends, a binary search at each place where it does not."""
    found = np.zeros(len(wanted), np.bool_)
    result = np.zeros(len(wanted), np.int64)
    at = 0
    for i in range(len(wanted)):
        row = wanted[i]
        if i == 0 or row < wanted[i - 1] or row - wanted[i - 1] > 64:
            at = np.searchsorted(rows, row)
        while at < len(rows) and rows[at] < row:
            at += 1
        if at < len(rows) and rows[at] == row:
            found[i] = True
            result[i] = values[at]
    return found, result


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
