"""Interval algebra on int64 picoseconds.

Contract
* `Intervals` is a set of disjoint, sorted, half-open, non-empty intervals; every operation gives
  one again. Sums are integers, so identities hold exactly: |A| = |A & B| + |A - B|.
* `self_pieces` splits nested events of one lane into the parts that no child covers. Partial
  overlap is not nesting: A 0-10 and B 5-15 keep 10 each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s, is_sorted
from marin_profile.base.jit import jit_no_alloc

Window = tuple[int, int]  # [start, end)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint sorted half-open intervals [starts[i], ends[i])."""

    starts: Int64s
    ends: Int64s

    @staticmethod
    def empty() -> Intervals:
        nothing = np.zeros(0, np.int64)
        return Intervals(nothing, nothing)

    @staticmethod
    def union_of(starts: Int64s, ends: Int64s) -> Intervals:
        """The union of any intervals; empty and reversed ones vanish."""
        if not is_sorted(starts):
            order = np.argsort(starts, kind="stable")
            starts, ends = starts[order], ends[order]
        return Intervals(*_merge(starts, ends))

    def __or__(self, other: Intervals) -> Intervals:
        if not len(other):
            return self
        # Two sorted runs: the stable sort takes linear time.
        return Intervals.union_of(
            np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends))
        )

    def __and__(self, other: Intervals) -> Intervals:
        return _intersect(self, other)

    def __sub__(self, other: Intervals) -> Intervals:
        return _intersect(self, _complement(other))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def total(self) -> int:
        return int((self.ends - self.starts).sum())

    def clip(self, start: int, end: int) -> Intervals:
        return self & Intervals(np.array([start], np.int64), np.array([max(start, end)], np.int64))

    def covered(self, starts: Int64s, ends: Int64s) -> Int64s:
        """For each [starts[i], ends[i]) how much of it the set covers."""
        if not len(self):
            return np.zeros(len(starts), np.int64)
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.ends - self.starts)))
        return self._measure_before(ends, before) - self._measure_before(starts, before)

    def _measure_before(self, points: Int64s, before: Int64s) -> Int64s:
        at = np.searchsorted(self.starts, points, side="right")
        last = np.maximum(at - 1, 0)
        overshoot = np.where(at > 0, np.maximum(self.ends[last] - points, 0), 0)
        return before[at] - overshoot


def _merge(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """The union of intervals that are sorted by start."""
    is_filled = ends > starts
    if not is_filled.all():
        starts, ends = starts[is_filled], ends[is_filled]
    if not len(starts):
        return starts, ends
    reach = np.maximum.accumulate(ends)
    first = np.append(0, np.flatnonzero(starts[1:] > reach[:-1]) + 1)
    return starts[first], reach[np.append(first[1:], len(starts)) - 1]


def _intersect(a: Intervals, b: Intervals) -> Intervals:
    """The shorter one's intervals are looked up in the longer one."""
    if len(a) > len(b):
        a, b = b, a
    low = np.searchsorted(b.ends, a.starts, side="right")
    count = np.searchsorted(b.starts, a.ends, side="left") - low
    of_a = np.repeat(np.arange(len(a)), count)
    of_b = np.arange(len(of_a)) + np.repeat(low - np.cumsum(count) + count, count)
    starts = np.maximum(a.starts[of_a], b.starts[of_b])
    ends = np.minimum(a.ends[of_a], b.ends[of_b])
    is_filled = starts < ends
    return Intervals(starts[is_filled], ends[is_filled])


def _complement(one: Intervals) -> Intervals:
    return Intervals(np.append(_LEAST, one.ends), np.append(one.starts, _MOST))


def self_pieces(
    starts: Int64s, ends: Int64s, can_contain: NDArray[np.bool_]
) -> tuple[Int64s, Int64s, Int64s, int]:
    """The parts of each event that none of its children covers.

    Events of one lane, sorted by (start ascending, end descending). An event is a child of the
    nearest earlier one that `can_contain` and covers it whole.

    Returns (piece starts, piece ends, index of the event that owns each piece, number of events
    that overlap an earlier one partially). Pieces are not empty; their order is unspecified.
    """
    n = len(starts)
    if (starts[1:] >= ends[:-1]).all():
        filled = np.flatnonzero(ends > starts)
        return starts[filled], ends[filled], filled, 0
    pieces = tuple(np.empty(2 * n, np.int64) for _ in range(3))
    work = tuple(np.empty(n, np.int64) for _ in range(2))
    count, overlaps = _nested_pieces(starts, ends, can_contain, *pieces, *work)
    piece_starts, piece_ends, owners = (column[:count].copy() for column in pieces)
    return piece_starts, piece_ends, owners, overlaps


@jit_no_alloc(views=True)
def _nested_pieces(starts, ends, can_contain, piece_starts, piece_ends, owners, stack, covered_to):
    """Fills piece_starts, piece_ends and owners; returns how many, and the partial overlaps."""
    count = 0
    depth = 0
    overlaps = 0
    for i in range(len(starts)):
        while depth and ends[stack[depth - 1]] <= starts[i]:
            depth -= 1
            parent = stack[depth]
            if covered_to[depth] < ends[parent]:
                piece_starts[count] = covered_to[depth]
                piece_ends[count] = ends[parent]
                owners[count] = parent
                count += 1
        at = depth - 1
        partial = False
        while at >= 0:
            parent = stack[at]
            if can_contain[parent] and ends[parent] >= ends[i]:
                break
            if starts[i] < ends[parent] < ends[i]:
                partial = True
            at -= 1
        if partial:
            overlaps += 1
        if at >= 0:
            if covered_to[at] < starts[i]:
                piece_starts[count] = covered_to[at]
                piece_ends[count] = starts[i]
                owners[count] = stack[at]
                count += 1
            covered_to[at] = max(covered_to[at], ends[i])
        stack[depth] = i
        covered_to[depth] = starts[i]
        depth += 1
    while depth:
        depth -= 1
        parent = stack[depth]
        if covered_to[depth] < ends[parent]:
            piece_starts[count] = covered_to[depth]
            piece_ends[count] = ends[parent]
            owners[count] = parent
            count += 1
    return count, overlaps
