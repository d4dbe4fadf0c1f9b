"""A Timeline -> its devices: which events are device work, device by device.

Contract
* Device op lines only: TPU "XLA Ops" lanes (async lines beside them), GPU "Stream #..." lines, on
  CPU the host events that carry an HLO op, grouped by device ordinal (threads are a pool).
* The order of events, lines and planes in the file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.executions import find_executions
from marin_profile.analysis.op_facts import OpFacts, op_facts, with_update_pass
from marin_profile.analysis.planes import (
    ASYNC_LINE,
    CPU,
    GPU,
    is_op_line,
    is_steps_line,
    plane_kind,
    unknown_lines,
)
from marin_profile.base.columns import distinct, is_sorted, sum_by
from marin_profile.base.intervals import self_pieces
from marin_profile.base.text import natural_order
from marin_profile.events.classify import is_sync_entry
from marin_profile.events.timeline import Int64s, Line, Plane, Timeline


def find_devices(timeline: Timeline, host: str) -> HostDevices:
    facts = op_facts(timeline)
    devices: list[DeviceOps] = []
    empty: list[str] = []
    ignored: set[str] = set()
    sync = 0
    kinds = [plane_kind(plane) for plane in timeline.planes]
    # Beside an accelerator the host's events with an HLO op are launches, not work.
    has_accelerator = any(kind not in ("", CPU) for kind in kinds)
    for index, (plane, kind) in enumerate(zip(timeline.planes, kinds, strict=True)):
        lines = [line for line in timeline.lines if line.plane == index]
        if kind == CPU and has_accelerator:
            continue
        if kind == CPU:
            devices += _cpu_devices(timeline, host, facts, lines)
        elif kind:
            rows, skipped = _device_rows(timeline, facts, kind, lines)
            sync += skipped
            if len(rows):
                devices.append(_device(timeline, host, facts, plane, kind, rows, lines))
            else:
                empty.append(plane.name)
            ignored.update(unknown_lines(plane, kind, lines))
        elif plane.name.startswith("/device:"):
            ignored.update(f"{plane.name}: {line.name}" for line in lines if line.count)
    devices.sort(key=lambda device: natural_order(device.name))
    used = {op for device in devices for op in distinct(device.op, len(facts)).tolist()}
    facts = with_update_pass(facts, used)
    return HostDevices(
        timeline=timeline,
        host=host,
        facts=facts,
        devices=tuple(devices),
        empty_devices=tuple(sorted(empty, key=natural_order)),
        lines_not_analysed=tuple(sorted(ignored)),
        sync_entries=sync,
    )


def _device_rows(
    timeline: Timeline, facts: tuple[OpFacts, ...], kind: str, lines: Iterable[Line]
) -> tuple[Int64s, int]:
    """Op events of a device plane, and how many driver sync entries were left out."""
    rows = [timeline.rows_of(line) for line in lines if is_op_line(kind, line)]
    joined = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    if kind != GPU or not len(joined):
        return joined, 0
    is_sync = np.array([is_sync_entry(fact.name) for fact in facts], np.bool_)
    keep = ~is_sync[timeline.op[joined]]
    return joined[keep], int((~keep).sum())


def _cpu_devices(
    timeline: Timeline, host: str, facts: tuple[OpFacts, ...], lines: Iterable[Line]
) -> list[DeviceOps]:
    """Ops by device ordinal; an event with a correlation id launches work on another device."""
    has_hlo_op = np.array([bool(op.hlo_op) for op in timeline.ops], np.bool_)
    rows = np.concatenate([timeline.rows_of(line) for line in lines] or [np.zeros(0, np.int64)])
    rows = rows[has_hlo_op[timeline.op[rows]]] if len(rows) else rows
    rows = rows[~timeline.correlation_id.find(rows)[0]]
    found, ordinal = timeline.device_ordinal.find(rows)
    ordinal = np.where(found, ordinal, 0)
    return [
        _device(
            timeline, host, facts, Plane(f"/device:CPU:{number}", int(number)), CPU,
            rows[ordinal == number], (),
        )
        for number in np.unique(ordinal).tolist()
    ]  # fmt: skip


def _device(
    timeline: Timeline,
    host: str,
    facts: tuple[OpFacts, ...],
    plane: Plane,
    kind: str,
    rows: Int64s,
    lines: Iterable[Line],
) -> DeviceOps:
    start, duration = timeline.device_times(rows)
    op = timeline.op[rows].astype(np.int64)
    is_container = np.array([fact.op_class.is_container for fact in facts], np.bool_)
    order = _nesting_order(start, duration, op, is_container, facts)
    rows, start, duration, op = rows[order], start[order], duration[order], op[order]
    lane = timeline.line[rows].astype(np.int64)
    pieces = _lane_pieces(start, start + duration, lane, np.ones(len(op), np.bool_))
    overlapping = pieces[3]
    if kind == CPU:
        # Threads are a pool: an op may contain what another thread ran, if it is a container.
        one_lane = np.zeros(len(rows), np.int64)
        pieces = _lane_pieces(start, start + duration, one_lane, is_container[op])
    self_time = sum_by(pieces[2], pieces[1] - pieces[0], len(rows))
    async_rows = [timeline.rows_of(line) for line in lines if line.name.startswith(ASYNC_LINE)]
    executions, execution = find_executions(timeline, kind, rows, op, facts, lines)
    steps = [timeline.rows_of(line) for line in lines if is_steps_line(line) and line.count]
    return DeviceOps(
        timeline=timeline,
        name=plane.name,
        host=host,
        kind=kind,
        plane_stats=plane.stats,
        rows=rows,
        op=op,
        start=start,
        end=start + duration,
        self_time=self_time,
        piece_start=pieces[0],
        piece_end=pieces[1],
        piece_owner=pieces[2],
        overlapping=overlapping,
        execution=execution,
        executions=executions,
        steps_line=steps[0] if steps else None,
        async_rows=np.concatenate(async_rows) if async_rows else np.zeros(0, np.int64),
    )


def _nesting_order(
    start: Int64s,
    duration: Int64s,
    op: Int64s,
    is_container: NDArray[np.bool_],
    facts: tuple[OpFacts, ...],
) -> Int64s:
    """By (start, longest first, container first, name, op); only ties pay for the full key."""
    order = np.arange(len(start)) if is_sorted(start) else np.argsort(start, kind="stable")
    sorted_start = start[order]
    tied = np.zeros(len(order), np.bool_)
    if len(order) > 1:
        same = sorted_start[1:] == sorted_start[:-1]
        tied[1:] |= same
        tied[:-1] |= same
    where = np.flatnonzero(tied)
    if len(where):
        names = sorted(range(len(facts)), key=lambda i: facts[i].sort_key)
        rank = np.empty(len(facts), np.int64)
        rank[names] = np.arange(len(names))
        subset = order[where]
        keys = (rank[op[subset]], ~is_container[op[subset]], -duration[subset], start[subset])
        order[where] = subset[np.lexsort(keys)]
    return order


def _lane_pieces(
    start: Int64s, end: Int64s, lane: Int64s, can_contain: NDArray[np.bool_]
) -> tuple[Int64s, Int64s, Int64s, int]:
    lanes = distinct(lane, int(lane.max()) + 1)
    if len(lanes) == 1:
        piece_start, piece_end, owner, overlaps = self_pieces(start, end, can_contain)
        if not is_sorted(piece_start):
            order = np.argsort(piece_start, kind="stable")
            piece_start, piece_end, owner = piece_start[order], piece_end[order], owner[order]
        return piece_start, piece_end, owner, int(overlaps)
    parts = []
    overlapping = 0
    for number in lanes:
        members = np.flatnonzero(lane == number)
        piece_start, piece_end, owner, overlaps = self_pieces(
            start[members], end[members], can_contain[members]
        )
        parts.append((piece_start, piece_end, members[owner]))
        overlapping += int(overlaps)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return columns[0][order], columns[1][order], columns[2][order], overlapping
