"""The columns of a JSON trace in the Timeline's order: lines sorted, each line's rows together.

Contract
* Planes are sorted by pid, lines by (pid, tid); a line keeps the file's order of its rows.
* Columns are changed in place where that saves memory.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import counts_of, distinct, run_starts
from marin_profile.base.times import PS_PER_US
from marin_profile.events.timeline import Int32s, Int64s, Line, Op, Plane, Sparse
from marin_profile.readers.json_events import MAX_SPAN_US, Events
from marin_profile.readers.op_stats import EVENT_NUMBERS


def line_runs(line: Int32s, first: Int64s, count: Int64s) -> bool:
    """Fill first row and number of rows of each line; whether the rows of every line touch."""
    runs = run_starts(line)
    lines = line[runs]
    first[lines[::-1]] = runs[::-1]
    count[:] = counts_of(line, len(count))
    return len(distinct(lines, len(count))) == len(runs)


def rows_by_line(line: Int32s, count: Int64s) -> Int64s:
    """The rows in the order of their lines; inside a line they keep their order."""
    # Numbers of two bytes are sorted in linear time.
    is_short = len(count) <= np.iinfo(np.int16).max
    return np.argsort(line.astype(np.int16) if is_short else line, kind="stable")


def _column(values: array[int]) -> NDArray:
    """The same memory as an array."""
    return np.frombuffer(values, values.typecode)


class Columns:
    """The event columns while rows are dropped or reordered."""

    def __init__(self, events: Events) -> None:
        self.line: Int32s = _column(events.line)
        self.op: Int32s = _column(events.op)
        self.duration: Int64s = _column(events.duration)
        self.id_rows: list[Int64s] = [_column(rows) for rows in events.id_rows]
        self.id_values: list[Int64s] = [_column(values) for values in events.id_values]
        self._whole_us: Int64s = _column(events.whole_us)
        self._fraction_ps: Int32s = _column(events.fraction_ps)

    def drop_far_starts(self) -> int:
        """Drop events more than 26 days from the median start; returns how many."""
        whole = self._whole_us
        if whole.max() - whole.min() <= MAX_SPAN_US:
            return 0
        middle = np.partition(whole, len(whole) // 2)[len(whole) // 2]
        near = np.flatnonzero(np.abs(whole - middle) <= MAX_SPAN_US // 2)
        self._select(near)
        return len(whole) - len(near)

    def lay_out(self, events: Events) -> tuple[tuple[Plane, ...], tuple[Line, ...]]:
        """Number the lines by (pid, tid) and bring the events of each line together."""
        tracks = sorted(set(events.tracks) | set(events.threads))
        pids = sorted({pid for pid, _ in tracks} | set(events.processes))
        rank = {track: at for at, track in enumerate(tracks)}
        if events.tracks:
            self.line[:] = np.array([rank[track] for track in events.tracks], np.int32)[self.line]
        first = np.zeros(len(tracks), np.int64)
        count = np.zeros(len(tracks), np.int64)
        if not line_runs(self.line, first, count):
            self._select(rows_by_line(self.line, count))
            first = np.cumsum(count) - count
        plane_of = {pid: at for at, pid in enumerate(pids)}
        lines = tuple(
            Line(plane_of[pid], tid, events.threads.get((pid, tid), ""), int(at), int(size))
            for (pid, tid), at, size in zip(tracks, first, count, strict=True)
        )
        return tuple(Plane(events.processes.get(pid, ""), pid) for pid in pids), lines

    def take_starts(self) -> tuple[Int64s, int]:
        """Picoseconds from the earliest event, and when the file says that this began; gives up the
        columns that they come from."""
        start = self._whole_us
        whole = int(start.min())
        start -= whole
        start *= PS_PER_US
        start += self._fraction_ps
        rest = int(start.min())
        start -= rest
        del self._whole_us, self._fraction_ps
        return start, whole * PS_PER_US + rest

    def numbers(self) -> dict[str, Sparse]:
        """The columns of EVENT_NUMBERS; those that the same rows have share them."""
        rows: list[Int64s] = []
        for own in self.id_rows:
            rows.append(next((one for one in rows if np.array_equal(one, own)), own))
        return dict(zip(EVENT_NUMBERS, map(Sparse, rows, self.id_values), strict=True))

    def _select(self, order: Int64s) -> None:
        """Keep the rows `order`, in that order."""
        place = np.full(len(self.line), -1, np.int64)
        place[order] = np.arange(len(order))
        self.line = self.line[order]
        self.op = self.op[order]
        self.duration = self.duration[order]
        self._whole_us = self._whole_us[order]
        self._fraction_ps = self._fraction_ps[order]
        for at, rows in enumerate(self.id_rows):
            moved = place[rows]
            kept = np.argsort(moved, kind="stable")[np.count_nonzero(moved < 0) :]
            self.id_rows[at] = moved[kept]
            self.id_values[at] = self.id_values[at][kept]


def without_host_args(ops: list[Op], columns: Columns, host: NDArray[np.bool_]) -> list[Op]:
    """Host events describe an op only if they have an anchor (see op_stats)."""
    loose = [
        at
        for at, op in enumerate(ops)
        if not (op.hlo_op or op.category or op.long_name or op.memcpy_details)
    ]
    on_device = np.zeros(len(ops), np.bool_)
    on_device[columns.op[~host[columns.line]]] = True
    stripped = list(ops)
    for at in loose:
        if not on_device[at]:
            stripped[at] = Op(name=ops[at].name)
    return stripped


def distinct_ops(ops: list[Op], op_column: Int32s) -> tuple[Op, ...]:
    """The op table without repetitions; `op_column` is renumbered in place."""
    places: dict[Op, int] = {}
    renumbered = np.array([places.setdefault(op, len(places)) for op in ops], np.int32)
    if len(places) < len(ops):
        op_column[:] = renumbered[op_column]
    return tuple(places)
