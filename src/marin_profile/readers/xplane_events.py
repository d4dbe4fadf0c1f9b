"""The event columns of an XSpace, filled line by line in place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from marin_profile.readers.hlo import Buffer
from marin_profile.readers.wire import BROKEN, EVENT_NUMBERS, MISSING, scan_events
from marin_profile.readers.xplane_ops import OP_ANCHORS, OP_STATS, OpDecoder
from marin_profile.readers.xplane_planes import RawLine, RawPlane
from marin_profile.timeline import (
    PS_PER_NS,
    HloInstruction,
    Int64s,
    Line,
    Op,
    Plane,
    Sparse,
    Timeline,
)

SOURCE_FORMAT = "xplane_pb"


class EventColumns:
    """Collects the columns of all lines; sized once, filled in place."""

    def __init__(self, count: int, base_ns: int) -> None:
        self.start = np.empty(count, np.int64)
        self.duration = np.empty(count, np.int64)
        self.op = np.empty(count, np.int32)
        self.line = np.empty(count, np.int32)
        self.base_ns = base_ns
        self.filled = 0
        self.lines: list[Line] = []
        self.ops: dict[Op, int] = {}
        self.sparse_rows: list[list[Int64s]] = [[] for _ in EVENT_NUMBERS]
        self.sparse_values: list[list[Int64s]] = [[] for _ in EVENT_NUMBERS]
        self.dropped: dict[str, int] = {}
        self.notes: list[str] = []
        self.num_planes = 0

    @staticmethod
    def allocate(planes: list[RawPlane]) -> EventColumns:
        filled = [line for plane in planes for line in plane.lines if line.count]
        base_ns = min((line.timestamp_ns for line in filled), default=0)
        return EventColumns(sum(line.count for line in filled), base_ns)

    def add_plane(self, buffer: Buffer, plane: RawPlane) -> None:
        number_ids = np.array([plane.stat_id(name) for name in EVENT_NUMBERS], np.int64)
        key_ids = _known_ids(plane, OP_STATS)
        is_host = plane.name.startswith("/host:")
        anchor_ids = _known_ids(plane, OP_ANCHORS) if is_host else np.zeros(0, np.int64)
        if is_host and not len(anchor_ids):
            key_ids = anchor_ids
        describe = OpDecoder(buffer, plane, keep_event_stats=bool(len(key_ids)))
        plane_index = self.num_planes
        self.num_planes += 1
        for line in plane.lines:
            first = self.filled
            self._add_events(buffer, line, number_ids, key_ids, anchor_ids, describe)
            self.lines.append(Line(plane_index, line.id, line.name, first, self.filled - first))

    def _add_events(
        self,
        buffer: Buffer,
        line: RawLine,
        number_ids: Int64s,
        key_ids: Int64s,
        anchor_ids: Int64s,
        describe: OpDecoder,
    ) -> None:
        first, last = self.filled, self.filled + line.count
        local = np.empty(line.count, np.int64)
        numbers = np.empty((len(EVENT_NUMBERS), line.count + 1), np.int64)
        count, aggregated, negative, ids, spans, broke_at = scan_events(
            buffer,
            line.span[0],
            line.span[1],
            (line.timestamp_ns - self.base_ns) * PS_PER_NS,
            number_ids,
            key_ids,
            anchor_ids,
            self.start[first:last],
            self.duration[first:last],
            local,
            numbers,
        )
        self._drop("aggregated_event", int(aggregated))
        self._drop("negative_duration", int(negative))
        if broke_at != BROKEN:
            self._drop("damaged_event", line.count - int(count) - int(aggregated) - int(negative))
            self.notes.append(
                f"Line {line.name!r} is damaged at byte {int(broke_at):,}: later events are lost."
            )
        to_global = np.array(
            [
                self.ops.setdefault(describe(int(key), (int(a), int(b))), len(self.ops))
                for key, (a, b) in zip(ids, spans.tolist(), strict=True)
            ],
            np.int32,
        )
        last = first + int(count)
        if count:
            self.op[first:last] = to_global[local[:count]]
        self.line[first:last] = len(self.lines)
        for slot in range(len(EVENT_NUMBERS)):
            if number_ids[slot] == MISSING:
                continue
            present = numbers[slot, :count] != MISSING
            if EVENT_NUMBERS[slot] == "device_duration_ps":
                present &= numbers[slot, :count] >= 0
            rows = np.flatnonzero(present)
            if len(rows):
                self.sparse_rows[slot].append(rows + first)
                self.sparse_values[slot].append(numbers[slot, rows])
        self.filled = last

    def _drop(self, reason: str, count: int) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def _sparse(self, slot: int) -> Sparse:
        if not self.sparse_rows[slot]:
            return Sparse.empty()
        return Sparse(
            np.concatenate(self.sparse_rows[slot]), np.concatenate(self.sparse_values[slot])
        )

    def timeline(
        self,
        *,
        planes: tuple[Plane, ...],
        hlo: Mapping[int, Mapping[str, HloInstruction]],
        hostname: str,
        window: tuple[int, int] | None,
        notes: tuple[str, ...],
        truncated: bool,
    ) -> Timeline:
        kept = slice(0, self.filled)
        start = self.start[kept]
        if len(start):
            start -= start.min()
        columns = dict(
            zip(EVENT_NUMBERS, map(self._sparse, range(len(EVENT_NUMBERS))), strict=True)
        )
        device_start = columns["device_offset_ps"]
        if len(device_start):
            device_start = Sparse(
                device_start.rows, device_start.values - device_start.values.min()
            )
        return Timeline(
            source_format=SOURCE_FORMAT,
            planes=planes,
            lines=tuple(self.lines),
            ops=tuple(self.ops),
            line=self.line[kept],
            op=self.op[kept],
            start=start,
            duration=self.duration[kept],
            device_start=device_start,
            device_duration=columns["device_duration_ps"],
            run_id=columns["run_id"],
            correlation_id=columns["correlation_id"],
            step_num=columns["step_num"],
            device_ordinal=columns["device_ordinal"],
            hlo=hlo,
            hostname=hostname,
            profile_start_ns=window[0] if window else None,
            profile_stop_ns=window[1] if window else None,
            dropped=self.dropped,
            notes=notes,
            truncated=truncated,
        )


def _known_ids(plane: RawPlane, names: tuple[str, ...]) -> Int64s:
    ids = [plane.stat_id(name) for name in names]
    return np.array([key for key in ids if key != MISSING], np.int64)
