"""Asynchronous operations: from the start of a `*-start` to the end of its `*-done`.

Contract: one span per operation; a start or done without its partner (the capture cut it) makes no
span. Spans are on the device clock. Where the op line has no such pair, the async line's own event
serves, placed on the device clock by its neighbours on the op line.
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
    """Columns, one row per span, by start. start_at and done_at index the device's op columns; both
    are -1 for a span that the async line gave. `op` indexes the facts that carry the kind."""

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
            start_at, done_at = _match(
                device.start, np.flatnonzero(device.op == start), np.flatnonzero(device.op == done)
            )
            found.append((start_at, done_at, done))
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


def _match(start: Int64s, start_at: Int64s, done_at: Int64s) -> tuple[Int64s, Int64s]:
    """First in, first out: several may be in flight. Dones before the first start ended what began
    before the capture; if that does not fit, each done ends the latest start before it."""
    if not len(start_at) or not len(done_at):
        return start_at[:0], done_at[:0]
    ended = done_at[start[done_at] >= start[start_at[0]]]
    count = min(len(start_at), len(ended))
    if (start[start_at[:count]] <= start[ended[:count]]).all():
        return start_at[:count], ended[:count]
    latest = np.searchsorted(start[start_at], start[done_at], side="right") - 1
    fresh = np.ones(len(latest), np.bool_)
    fresh[1:] = latest[1:] != latest[:-1]
    usable = fresh & (latest >= 0)
    return start_at[latest[usable]], done_at[usable]


def _from_async_line(
    timeline: Timeline, facts: tuple[OpFacts, ...], device: DeviceOps, paired: set[str]
) -> AsyncSpans:
    rows = device.async_rows
    lone = np.array(
        [
            row
            for row in rows.tolist()
            if facts[timeline.op[row]].hlo_op not in paired
            and facts[timeline.op[row]].name not in paired
        ],
        np.int64,
    )
    if not len(lone):
        return _no_spans()
    start = device.to_device_clock(timeline.start[lone])
    nowhere = np.full(len(lone), -1, np.int64)
    return AsyncSpans(
        start, start + timeline.duration[lone], timeline.op[lone].astype(np.int64), nowhere, nowhere
    )


def _no_spans() -> AsyncSpans:
    nothing = np.zeros(0, np.int64)
    return AsyncSpans(nothing, nothing, nothing, nothing, nothing)
