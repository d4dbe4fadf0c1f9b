"""Who owns each instant of a device's time: exactly one op, or nobody (idle).

Contract: of all self intervals that cover an instant, the owner is the one of the first ledger term
in the order compute, communication, transfer, unknown; among equals the op that started later, then
the first by name. Only an op of the op line owns time: an asynchronous operation in flight does
not, the `*-done` that waits for it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.base.jit import jit, jit_no_alloc
from marin_profile.events.timeline import Int64s

_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class OwnedTime:
    """Disjoint intervals by start, none empty; `owner` indexes the device's op columns."""

    start: Int64s
    end: Int64s
    owner: Int64s

    def inside(self, window: tuple[int, int]) -> Int64s:
        """How much of each interval lies inside the window."""
        clipped = np.minimum(self.end, window[1]) - np.maximum(self.start, window[0])
        return np.maximum(clipped, 0)


def is_serial(device: DeviceOps) -> bool:
    """Whether no two self intervals overlap, so that each owns its whole length."""
    return bool((device.piece_start[1:] >= device.piece_end[:-1]).all())


def owned_time(device: DeviceOps, terms: Int64s, ranks: Int64s) -> OwnedTime:
    """`terms` and `ranks`: of each op of the op table its ledger term, and its place by name."""
    return OwnedTime(
        *sweep(
            device.piece_start,
            device.piece_end,
            device.piece_owner,
            device.start,
            terms[device.op],
            ranks[device.op],
        )
    )


def _sweep_plain(
    piece_start: Int64s,
    piece_end: Int64s,
    piece_owner: Int64s,
    op_start: Int64s,
    term_of: Int64s,
    rank_of: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """`sweep` with Python's heap."""
    keys = zip(
        term_of[piece_owner].tolist(),
        (-op_start[piece_owner]).tolist(),
        rank_of[piece_owner].tolist(),
        piece_owner.tolist(),
        piece_end.tolist(),
        strict=True,
    )
    owned: list[tuple[int, int, int]] = []
    heap: list[tuple[int, int, int, int, int]] = []

    def pass_time(at: int, until: int) -> None:
        """Give out the time from `at` on to who owns it, until then or until nobody does."""
        while heap and at < until:
            *_, owner, end = heap[0]
            stop = min(end, until)
            if stop > at:
                owned.append((at, stop, owner))
                at = stop
            if end <= at:
                heappop(heap)

    at = 0
    for start, key in zip(piece_start.tolist(), keys, strict=True):
        pass_time(at, start)
        at = start
        heappush(heap, key)
    pass_time(at, _FAR)
    columns = np.array(owned, np.int64).reshape(-1, 3).T
    return columns[0].copy(), columns[1].copy(), columns[2].copy()


@jit(portable=_sweep_plain)
def sweep(piece_start, piece_end, piece_owner, op_start, term_of, rank_of):
    """(start, end, owner) columns. Pieces are sorted by start; op_start, term_of and rank_of tell
    each owner's start, ledger term and place by name; of equals the one first in the table owns."""
    n = len(piece_start)
    most = 2 * n
    starts = np.empty(most, np.int64)
    ends = np.empty(most, np.int64)
    owners = np.empty(most, np.int64)
    count = 0
    heap = np.empty((16, 5), np.int64)  # rows: term, -start, rank, owner, end
    size = piece = 0
    at = np.int64(0)
    while size or piece < n:
        following = piece_start[piece] if piece < n else _FAR
        if size == 0:
            at = np.int64(following)
        else:
            stop = min(heap[0, 4], following)
            if stop > at:
                starts[count] = at
                ends[count] = stop
                owners[count] = heap[0, 3]
                count += 1
                at = stop
            while size and heap[0, 4] <= at:
                size -= 1
                heap[0] = heap[size]
                _sink(heap, size)
        while piece < n and piece_start[piece] <= at:
            if size == len(heap):
                wider = np.empty((2 * size, 5), np.int64)
                wider[:size] = heap
                heap = wider
            owner = piece_owner[piece]
            heap[size, 0] = term_of[owner]
            heap[size, 1] = -op_start[owner]
            heap[size, 2] = rank_of[owner]
            heap[size, 3] = owner
            heap[size, 4] = piece_end[piece]
            _rise(heap, size)
            size += 1
            piece += 1
    return starts[:count].copy(), ends[:count].copy(), owners[:count].copy()


@jit_no_alloc
def _rise(heap, at):
    """Let the last row of a heap rise to its place."""
    while at:
        parent = (at - 1) // 2
        if not _before(heap, at, parent):
            return
        _swap(heap, at, parent)
        at = parent


@jit_no_alloc
def _sink(heap, size):
    """Let the first row of a heap sink to its place."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(heap, child + 1, child):
            child += 1
        if not _before(heap, child, at):
            return
        _swap(heap, at, child)
        at = child


@jit_no_alloc
def _before(heap, a, b):
    for column in range(4):
        if heap[a, column] != heap[b, column]:
            return heap[a, column] < heap[b, column]
    return False


@jit_no_alloc
def _swap(heap, a, b):
    for column in range(5):
        held = heap[a, column]
        heap[a, column] = heap[b, column]
        heap[b, column] = held
