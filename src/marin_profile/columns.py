"""Small exact operations on integer columns."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


@njit(cache=True, nogil=True)
def is_sorted(values):
    """Whether `values` never descend."""
    for i in range(1, len(values)):  # noqa: SIM110 - numba compiles no generators
        if values[i] < values[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def sum_by(index, values, size):
    """Integer sums of `values` grouped by `index` (0..size-1); exact, unlike float weights."""
    totals = np.zeros(size, np.int64)
    for i in range(len(index)):
        totals[index[i]] += values[i]
    return totals


def unique_pairs(first: Int64s, second: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The distinct pairs (first[i], second[i]), ascending, and each row's index among them."""
    firsts, a = np.unique(first, return_inverse=True)
    seconds, b = np.unique(second, return_inverse=True)
    width = max(1, len(seconds))
    pairs, inverse = np.unique(a * width + b, return_inverse=True)
    return firsts[pairs // width], seconds[pairs % width], inverse
