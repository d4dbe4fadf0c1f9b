"""Asynchronous operations: from the start of a `*-start` to the end of its `*-done`.

Contract: one span per operation; a start or done without its partner (the capture cut it) makes no
span. Spans are on the device clock. Where the op line has no such pair, the async line's own event
serves, placed on the device clock by its neighbours on the op line; where the op line has one half
of the pair, that half is the event's own end or start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.base.columns import distinct
from marin_profile.events.timeline import Int64s, Timeline

_NUMBERED = re.compile(r"^(.*?)(-start|-done)((?:\.\d+)?)$")


@dataclass(frozen=True)
class AsyncSpans:
    """Columns, one row per span, by start. start_at and done_at index the device's op columns, -1
    where the async line gave that end. `op` indexes the facts that carry the kind."""

    start: Int64s
    end: Int64s
    op: Int64s
    start_at: Int64s
    done_at: Int64s

    def __len__(self) -> int:
        return len(self.start)


def find_spans(host: HostDevices, device: DeviceOps) -> AsyncSpans:
    pairs = _paired(host.facts, device)
    paired_ops = set(device.op[pairs.done_at].tolist()) | set(device.op[pairs.start_at].tolist())
    names = {host.facts[index].name for index in paired_ops}
    lone = _from_async_line(host.timeline, host.facts, device, names)
    columns = [
        np.concatenate((getattr(pairs, column), getattr(lone, column)))
        for column in ("start", "end", "op", "start_at", "done_at")
    ]
    order = np.argsort(columns[0], kind="stable")
    return AsyncSpans(*(column[order] for column in columns))


def _paired(facts: tuple[OpFacts, ...], device: DeviceOps) -> AsyncSpans:
    used = distinct(device.op, len(facts)).tolist()
    starts = {
        (facts[i].name, facts[i].module, facts[i].program_id): i
        for i in used
        if facts[i].op_class.role == "start"
    }
    found: list[tuple[Int64s, Int64s, int]] = []
    for done in used:
        start = start_of(facts[done], starts) if facts[done].op_class.role == "done" else None
        if start is not None:
            starts_at = np.flatnonzero(device.op == start)
            dones_at = np.flatnonzero(device.op == done)
            first, second = _match(device.start[starts_at], device.start[dones_at])
            found.append((starts_at[first], dones_at[second], done))
    if not found:
        return _no_spans()
    start_at = np.concatenate([row[0] for row in found])
    done_at = np.concatenate([row[1] for row in found])
    op = np.concatenate([np.full(len(row[0]), row[2], np.int64) for row in found])
    return AsyncSpans(device.start[start_at], device.end[done_at], op, start_at, done_at)


def start_of(done: OpFacts, starts: Mapping[tuple[str, str, int | None], int]) -> int | None:
    """By operand, else by name: "copy-done.3" ends "copy-start.3" (a start that was carried through
    a loop is no operand of its done)."""
    for operand in done.operands:
        found = starts.get((operand, done.module, done.program_id))
        if found is not None:
            return found
    match = _NUMBERED.match(done.name)
    if not match:
        return None
    name = f"{match.group(1)}-start{match.group(3)}"
    return starts.get((name, done.module, done.program_id))


def _match(starts: Int64s, dones: Int64s) -> tuple[Int64s, Int64s]:
    """Which start (an index into ascending times) each done ends. First in, first out: several may
    be in flight. Dones before the first start ended what began before the capture; if that does not
    fit, each done ends the latest start before it."""
    nothing = np.zeros(0, np.int64)
    if not len(starts) or not len(dones):
        return nothing, nothing
    ended = np.flatnonzero(dones >= starts[0])
    count = min(len(starts), len(ended))
    if (starts[:count] <= dones[ended[:count]]).all():
        return np.arange(count), ended[:count]
    latest = np.searchsorted(starts, dones, side="right") - 1
    fresh = np.ones(len(latest), np.bool_)
    fresh[1:] = latest[1:] != latest[:-1]
    usable = np.flatnonzero(fresh & (latest >= 0))
    return latest[usable], usable


def _from_async_line(
    timeline: Timeline, facts: tuple[OpFacts, ...], device: DeviceOps, paired: set[str]
) -> AsyncSpans:
    is_lone = np.array(
        [fact.hlo_op not in paired and fact.name not in paired for fact in facts], np.bool_
    )
    lone = device.async_rows[is_lone[timeline.op[device.async_rows]]]
    if not len(lone):
        return _no_spans()
    start = device.to_device_clock(timeline.start[lone])
    end = start + timeline.duration[lone]
    op = timeline.op[lone].astype(np.int64)
    nowhere = np.full(len(lone), -1, np.int64)
    spans = AsyncSpans(start, end, op, nowhere, nowhere.copy())
    _take_halves(facts, device, spans)
    return spans


def _take_halves(facts: tuple[OpFacts, ...], device: DeviceOps, spans: AsyncSpans) -> None:
    """Let the halves on the op line end or start the spans of the async line that they belong to:
    `spans` is changed in place."""
    shown = {
        (_as_start(facts[op].hlo_op or facts[op].name), facts[op].program_id): op
        for op in distinct(spans.op, len(facts)).tolist()
    }
    in_order = np.argsort(spans.start, kind="stable")
    op_of = spans.op.copy()
    for half in distinct(device.op, len(facts)).tolist():
        fact = facts[half]
        role = fact.op_class.role
        if role not in ("start", "done"):
            continue
        names = (*fact.operands, _as_start(fact.name)) if role == "done" else (fact.name,)
        found = [shown[name, fact.program_id] for name in names if (name, fact.program_id) in shown]
        if not found:
            continue
        row = in_order[op_of[in_order] == found[0]]
        at = np.flatnonzero(device.op == half)
        if role == "done":
            of_span, of_half = _match(spans.start[row], device.start[at])
            spans.done_at[row[of_span]] = at[of_half]
            spans.end[row[of_span]] = device.end[at[of_half]]
            spans.op[row[of_span]] = half
        else:
            of_half, of_span = _match(device.start[at], spans.end[row])
            spans.start_at[row[of_span]] = at[of_half]
            spans.start[row[of_span]] = device.start[at[of_half]]


def _as_start(name: str) -> str:
    match = _NUMBERED.match(name)
    return f"{match.group(1)}-start{match.group(3)}" if match else name


def _no_spans() -> AsyncSpans:
    nothing = np.zeros(0, np.int64)
    return AsyncSpans(nothing, nothing, nothing, nothing, nothing)
