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

from marin_profile.base.columns import Int64s, is_sorted
from marin_profile.base.jit import jit

Window = tuple[int, int]  # [start, end)


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
        return Intervals(*_intersect(self.starts, self.ends, other.starts, other.ends))

    def __sub__(self, other: Intervals) -> Intervals:
        return Intervals(*_subtract(self.starts, self.ends, other.starts, other.ends))

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


@jit
def _merge(starts, ends):
    out_starts = np.empty(len(starts), np.int64)
    out_ends = np.empty(len(starts), np.int64)
    count = 0
    for i in range(len(starts)):
        if ends[i] <= starts[i]:
            continue
        if count and starts[i] <= out_ends[count - 1]:
            out_ends[count - 1] = max(out_ends[count - 1], ends[i])
        else:
            out_starts[count] = starts[i]
            out_ends[count] = ends[i]
            count += 1
    return out_starts[:count].copy(), out_ends[:count].copy()


@jit
def _intersect(a_starts, a_ends, b_starts, b_ends):
    size = len(a_starts) + len(b_starts)
    out_starts = np.empty(size, np.int64)
    out_ends = np.empty(size, np.int64)
    count = i = j = 0
    while i < len(a_starts) and j < len(b_starts):
        start = max(a_starts[i], b_starts[j])
        end = min(a_ends[i], b_ends[j])
        if start < end:
            out_starts[count] = start
            out_ends[count] = end
            count += 1
        if a_ends[i] < b_ends[j]:
            i += 1
        else:
            j += 1
    return out_starts[:count].copy(), out_ends[:count].copy()


@jit
def _subtract(a_starts, a_ends, b_starts, b_ends):
    size = len(a_starts) + len(b_starts)
    out_starts = np.empty(size, np.int64)
    out_ends = np.empty(size, np.int64)
    count = j = 0
    for i in range(len(a_starts)):
        at = a_starts[i]
        while j < len(b_starts) and b_ends[j] <= at:
            j += 1
        k = j
        while k < len(b_starts) and b_starts[k] < a_ends[i]:
            if b_starts[k] > at:
                out_starts[count] = at
                out_ends[count] = b_starts[k]
                count += 1
            at = max(at, b_ends[k])
            k += 1
        if at < a_ends[i]:
            out_starts[count] = at
            out_ends[count] = a_ends[i]
            count += 1
        j = max(j, k - 1)
    return out_starts[:count].copy(), out_ends[:count].copy()


@jit
def self_pieces(starts, ends, can_contain):
    """The parts of each event that none of its children covers.

    Events of one lane, sorted by (start ascending, end descending). An event is a child of the
    nearest earlier one that `can_contain` and covers it whole.

    Returns (piece starts, piece ends, index of the event that owns each piece, number of events
    that overlap an earlier one partially). Pieces are not empty; their order is unspecified.
    """
    n = len(starts)
    most = 2 * n
    piece_starts = np.empty(most, np.int64)
    piece_ends = np.empty(most, np.int64)
    owners = np.empty(most, np.int64)
    count = 0
    stack = np.empty(n, np.int64)
    covered_to = np.empty(n, np.int64)
    depth = 0
    overlaps = 0
    for i in range(n):
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
    return piece_starts[:count].copy(), piece_ends[:count].copy(), owners[:count].copy(), overlaps
