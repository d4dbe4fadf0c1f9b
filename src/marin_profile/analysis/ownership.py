"""Who owns each instant of a window on one device: exactly one op, or idle.

Contract: of all self pieces and asynchronous spans that cover an instant (the intervals of
`ledger`), the owner is the one of the first ledger term in the order compute, communication,
transfer, unknown; among equals the op that started later, then the first by name. So the owned
times of a term's ops sum to that term of the ledger of the same window, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.async_spans import AsyncSpans
from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.ledger import Ledger
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.base.columns import distinct
from marin_profile.base.jit import jit
from marin_profile.events.classify import GROUP_COMMUNICATION, GROUP_TRANSFER
from marin_profile.events.timeline import Int64s

_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Owned:
    """Picoseconds. `of_group`: per group of op executions. `of_lone`: per row of the facts, for
    spans that only the async line shows and that belong to no op execution."""

    of_group: Int64s
    of_lone: dict[int, int]


def name_ranks(facts: tuple[OpFacts, ...]) -> Int64s:
    """The place of each op in the order of names; of one name, by program."""
    keys = [
        (fact.name, fact.hlo_op, fact.module, -1 if fact.program_id is None else fact.program_id)
        for fact in facts
    ]
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.int64)


def owned_time(
    device: DeviceOps,
    facts: tuple[OpFacts, ...],
    spans: AsyncSpans,
    group: Int64s,
    size: int,
    ledger: Ledger,
    ranks: Int64s,
) -> Owned:
    """Owned time in the ledger's window. `group` numbers the op executions' groups, 0..size-1; all
    executions of a group are of one op.

    Raises AssertionError if the sums are not the ledger's.
    """
    terms = np.array([fact.group for fact in facts], np.int64)
    moves_data = np.flatnonzero(np.isin(terms[spans.op], (GROUP_COMMUNICATION, GROUP_TRANSFER)))
    span_op, done_at = spans.op[moves_data], spans.done_at[moves_data]
    lone_ops = distinct(span_op[done_at < 0], len(facts))
    span_group = np.where(done_at >= 0, group[done_at], size + np.searchsorted(lone_ops, span_op))
    op_of = np.zeros(size + len(lone_ops), np.int64)
    op_of[group] = device.op
    op_of[size:] = lone_ops
    owned = sweep(
        device.piece_start,
        device.piece_end,
        device.piece_owner,
        device.start,
        group,
        spans.start[moves_data],
        spans.end[moves_data],
        span_group,
        terms[op_of],
        ranks[op_of],
        ledger.start,
        ledger.end,
    )
    sums = [int(owned[terms[op_of] == term].sum()) for term in range(4)]
    expected = [
        ledger.compute,
        ledger.exposed_communication,
        ledger.exposed_transfer,
        ledger.unattributed,
    ]
    if sums != expected:
        raise AssertionError(f"owned times {sums} are not the ledger's {expected}")
    lone = dict(zip(lone_ops.tolist(), owned[size:].tolist(), strict=True))
    return Owned(owned[:size], lone)


@jit
def sweep(
    piece_start,
    piece_end,
    piece_owner,
    op_start,
    group,
    span_start,
    span_end,
    span_group,
    term_of,
    rank_of,
    low,
    high,
):
    """Owned time per group in [low, high). Pieces and spans are sorted by start; term_of and
    rank_of tell a group's ledger term and its place by name."""
    owned = np.zeros(len(term_of), np.int64)
    heap = np.empty((16, 5), np.int64)  # rows: term, -start, rank, end, group
    size = 0
    piece = span = 0
    at = low
    while True:
        while piece < len(piece_start) and piece_end[piece] <= at:
            piece += 1
        while span < len(span_start) and span_end[span] <= at:
            span += 1
        next_piece = piece_start[piece] if piece < len(piece_start) else _FAR
        next_span = span_start[span] if span < len(span_start) else _FAR
        following = min(max(min(next_piece, next_span), at), high)
        if size == 0:
            if following >= high:
                return owned
            at = following
            # Most pieces are alone: they own their whole length.
            if next_piece <= at and next_span > at:
                end = piece_end[piece]
                after = piece_start[piece + 1] if piece + 1 < len(piece_start) else _FAR
                if end <= next_span and end <= after:
                    owned[group[piece_owner[piece]]] += min(end, high) - at
                    at = min(end, high)
                    piece += 1
                    continue
        else:
            stop = min(heap[0, 3], following)
            owned[heap[0, 4]] += stop - at
            at = stop
            if at >= high:
                return owned
            while size and heap[0, 3] <= at:
                size -= 1
                heap[0] = heap[size]
                _sink(heap, size)
            if at < following:
                continue
        if size + 2 > len(heap):
            wider = np.empty((2 * len(heap), 5), np.int64)
            wider[:size] = heap[:size]
            heap = wider
        if next_piece <= at and piece_end[piece] > at:
            owner = piece_owner[piece]
            index = group[owner]
            _place(heap, size, term_of, rank_of, index, op_start[owner], piece_end[piece])
            size += 1
            piece += 1
        elif next_span <= at and span_end[span] > at:
            index = span_group[span]
            _place(heap, size, term_of, rank_of, index, span_start[span], span_end[span])
            size += 1
            span += 1


@jit
def _place(heap, size, term_of, rank_of, index, start, end):
    """Add a row to the first `size` rows, which are a heap, and let it rise."""
    heap[size, 0] = term_of[index]
    heap[size, 1] = -start
    heap[size, 2] = rank_of[index]
    heap[size, 3] = end
    heap[size, 4] = index
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if not _before(heap, at, parent):
            return
        _swap(heap, at, parent)
        at = parent


@jit
def _sink(heap, size):
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(heap, child + 1, child):
            child += 1
        if not _before(heap, child, at):
            return
        _swap(heap, at, child)
        at = child


@jit
def _before(heap, a, b):
    for column in range(3):
        if heap[a, column] != heap[b, column]:
            return heap[a, column] < heap[b, column]
    return False


@jit
def _swap(heap, a, b):
    for column in range(5):
        held = heap[a, column]
        heap[a, column] = heap[b, column]
        heap[b, column] = held
