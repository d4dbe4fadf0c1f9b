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

from marin_profile.base.hashing import mix64
from marin_profile.base.jit import jit
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
    size = 1 << (2 * len(ids)).bit_length()
    key, keys = _flow_keys(types, ids, np.full(size, -1, np.int64))
    at = len(produced)
    return _Ends(consumed.rows, key[at:], produced.rows, key[:at], int(keys))


@jit
def _flow_keys(types, ids, table):
    """A number for each distinct (type, id), and how many they are; `table` is free (-1) and larger
    than twice their count."""
    mask = np.uint64(len(table) - 1)
    key = np.empty(len(ids), np.int64)
    count = 0
    for i in range(len(ids)):
        at = mix64(np.uint64(ids[i]) ^ mix64(np.uint64(types[i]))) & mask
        while table[at] >= 0 and (ids[table[at]] != ids[i] or types[table[at]] != types[i]):
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at] = i
            key[i] = count
            count += 1
        else:
            key[i] = key[table[at]]
    return key, count


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
    found = _sweep(order, kind, start, line, end, value, len(timeline.lines), flows.keys)
    first = len(markers.start)
    consumers = found[first : first + len(flows.rows)]
    return consumers, found[len(found) - len(starts) :]


@jit
def _sweep(order, kind, start, line, end, value, lines, keys):
    """The step of each row (-1: none). `value`: the step of a marker, the flow key of a producer or
    consumer. Open spans of a line are a stack; `below` holds what lies under each."""
    step = np.full(len(order), -1, np.int64)
    top = np.full(lines, _NO_SPAN, np.int64)
    below = np.full(len(order), _NO_SPAN, np.int64)
    produced_in = np.full(keys, -1, np.int64)
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
    return step


def _only_step_running(begin: Int64s, end: Int64s, step: Int64s, points: Int64s) -> Int64s:
    """For each point the step of all intervals that hold it, if it is one; else -1."""
    by_begin, by_end = np.argsort(begin, kind="stable"), np.argsort(end, kind="stable")
    order = np.argsort(points, kind="stable")
    found = np.empty(len(points), np.int64)
    found[order] = _running(
        begin[by_begin], step[by_begin] + 1, end[by_end], step[by_end] + 1, points[order]
    )
    return found


@jit
def _running(begin, begin_step, end, end_step, points):
    """Steps count from 1 here, 0 is none. All three time columns ascend."""
    size = 1
    for i in range(len(begin_step)):
        size = max(size, begin_step[i] + 1)
    open_of = np.zeros(size, np.int64)
    distinct = 0
    total = 0
    opened = 0
    closed = 0
    found = np.full(len(points), -1, np.int64)
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
    return found
