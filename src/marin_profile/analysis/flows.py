"""Which step marker a host event belongs to: inside it on its line, or joined to it by flow ids.

Contract
* A span owns what starts inside it on its line; of nested spans the innermost owns it. Markers are
  spans, and so is a consumer whose flow was produced by something that a marker owns: joins are
  transitive. A flow id that is used again joins the nearest producer before the consumer.
* An event on a line that has no such span belongs to the one marker of all consumers, on whatever
  line, that are running when it starts; if these are of several markers, or of none, to none.
* Times are the event clock's; O(n log n) in the number of flow events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marin_profile.base.columns import unique_pairs
from marin_profile.base.jit import jit_no_alloc
from marin_profile.events.timeline import Int64s, Timeline

# What happens when two things start at once: a span opens before what it holds.
_MARKER, _CONSUMER, _PRODUCER, _EVENT = range(4)
_NO_SPAN = -1


@dataclass(frozen=True)
class Spans:
    """Intervals on lines, each of one step."""

    start: Int64s
    end: Int64s
    line: Int64s
    step: Int64s


def steps_of_events(timeline: Timeline, markers: Spans, rows: Int64s) -> Int64s:
    """For each of the host events `rows` the step of its marker, else -1."""
    lines = timeline.line[rows].astype(np.int64)
    starts = timeline.start[rows]
    consumers = _consumers(timeline)
    consumer_step, step = _owners(timeline, markers, consumers, lines, starts)
    with_spans = np.zeros(len(timeline.lines), np.bool_)
    with_spans[markers.line] = True
    with_spans[timeline.line[consumers.rows[consumer_step >= 0]]] = True
    elsewhere = np.flatnonzero((step < 0) & ~with_spans[lines])
    if len(elsewhere) and (consumer_step >= 0).any():
        begin = timeline.start[consumers.rows]
        end = begin + timeline.duration[consumers.rows]
        step[elsewhere] = _only_step_running(begin, end, consumer_step, starts[elsewhere])
    return step


@dataclass(frozen=True)
class _Ends:
    """Producers and consumers of flows; `key` is equal where type and id are."""

    rows: Int64s
    key: Int64s
    producer_rows: Int64s
    producer_key: Int64s
    keys: int


def _consumers(timeline: Timeline) -> _Ends:
    produced, consumed = timeline.produced, timeline.consumed
    types = np.concatenate((produced.types, consumed.types))
    ids = np.concatenate((produced.ids, consumed.ids))
    distinct_types, _, key = unique_pairs(types, ids)
    at = len(produced)
    return _Ends(consumed.rows, key[at:], produced.rows, key[:at], len(distinct_types))


def _owners(
    timeline: Timeline, markers: Spans, flows: _Ends, lines: Int64s, starts: Int64s
) -> tuple[Int64s, Int64s]:
    """The steps of all consumers and of the events, by one pass over time."""
    nothing = np.zeros(len(starts), np.int64)
    columns = (
        (_MARKER, markers.start, markers.line, markers.end, markers.step),
        (
            _CONSUMER,
            timeline.start[flows.rows],
            timeline.line[flows.rows],
            timeline.start[flows.rows] + timeline.duration[flows.rows],
            flows.key,
        ),
        (
            _PRODUCER,
            timeline.start[flows.producer_rows],
            timeline.line[flows.producer_rows],
            flows.producer_key,
            flows.producer_key,
        ),
        (_EVENT, starts, lines, nothing, nothing),
    )
    kind = np.concatenate([np.full(len(column[1]), column[0], np.int64) for column in columns])
    start, line, end, value = (
        np.concatenate([column[place] for column in columns]).astype(np.int64)
        for place in range(1, 5)
    )
    # Of spans that start at once the longer one holds the other.
    length = np.where(kind <= _CONSUMER, end - start, 0)
    order = np.lexsort((-length, kind, start))
    found = np.full(len(order), -1, np.int64)
    below = np.full(len(order), _NO_SPAN, np.int64)
    top = np.full(len(timeline.lines), _NO_SPAN, np.int64)
    produced_in = np.full(flows.keys, -1, np.int64)
    _sweep(order, kind, start, line, end, value, found, top, below, produced_in)
    first = len(markers.start)
    consumers = found[first : first + len(flows.rows)]
    return consumers, found[len(found) - len(starts) :]


@jit_no_alloc(views=True)
def _sweep(order, kind, start, line, end, value, step, top, below, produced_in):
    """Fills `step`, of each row (-1: none). `value`: the step of a marker, the flow key of a
    producer or consumer. Open spans of a line are a stack, `top` (by line) the innermost; `below`
    holds what lies under each. produced_in: the step of the last producer by key."""
    for row in order:
        at = line[row]
        while top[at] != _NO_SPAN and end[top[at]] <= start[row]:
            top[at] = below[top[at]]
        if kind[row] == _MARKER:
            step[row] = value[row]
        elif kind[row] == _CONSUMER:
            step[row] = produced_in[value[row]]
        elif top[at] != _NO_SPAN:
            step[row] = step[top[at]]
        if kind[row] == _PRODUCER:
            produced_in[value[row]] = step[row]
        if kind[row] <= _CONSUMER and step[row] >= 0:
            below[row] = top[at]
            top[at] = row


def _only_step_running(begin: Int64s, end: Int64s, step: Int64s, points: Int64s) -> Int64s:
    """For each point the step of all intervals that hold it, if it is one; else -1."""
    by_begin, by_end = np.argsort(begin, kind="stable"), np.argsort(end, kind="stable")
    order = np.argsort(points, kind="stable")
    found = np.full(len(points), -1, np.int64)
    step_of = step + 1
    open_of = np.zeros(int(step_of.max(initial=0)) + 1, np.int64)
    in_order = np.full(len(points), -1, np.int64)
    _running(
        begin[by_begin],
        step_of[by_begin],
        end[by_end],
        step_of[by_end],
        points[order],
        open_of,
        in_order,
    )
    found[order] = in_order
    return found


@jit_no_alloc(views=True)
def _running(begin, begin_step, end, end_step, points, open_of, found):
    """Fills `found`. Steps count from 1 here, 0 is none; open_of: how many are running, by step.
    All three time columns ascend."""
    distinct = 0
    total = 0
    opened = 0
    closed = 0
    for i in range(len(points)):
        while opened < len(begin) and begin[opened] <= points[i]:
            if open_of[begin_step[opened]] == 0:
                distinct += 1
                total += begin_step[opened]
            open_of[begin_step[opened]] += 1
            opened += 1
        while closed < len(end) and end[closed] <= points[i]:
            open_of[end_step[closed]] -= 1
            if open_of[end_step[closed]] == 0:
                distinct -= 1
                total -= end_step[closed]
            closed += 1
        if distinct == 1:
            found[i] = total - 1
