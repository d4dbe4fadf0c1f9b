"""The event columns of an XSpace, filled line by line in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.base.progress import advance
from marin_profile.base.text import plural
from marin_profile.base.times import PS_PER_NS
from marin_profile.capture.formats import XPLANE
from marin_profile.events.buffers import BufferPlan
from marin_profile.events.timeline import (
    AllocatorState,
    Flow,
    HloInstruction,
    Int64s,
    Line,
    Op,
    Plane,
    Sparse,
    Timeline,
)
from marin_profile.readers.allocations import allocation_ids, read_allocations
from marin_profile.readers.hlo import Buffer
from marin_profile.readers.line_clocks import EARLIEST_EPOCH_NS, line_starts
from marin_profile.readers.op_stats import EVENT_NUMBERS, FLOW_NUMBERS, OP_ANCHORS, OP_STATS
from marin_profile.readers.protobuf import BROKEN
from marin_profile.readers.whole_file import forget
from marin_profile.readers.wire import scan_line_events
from marin_profile.readers.wire_columns import MISSING, LineEvents
from marin_profile.readers.xplane_ops import OpDecoder
from marin_profile.readers.xplane_planes import RawLine, RawPlane

NUMBERS = EVENT_NUMBERS + FLOW_NUMBERS
MOST_NAMELESS = 0.01


@dataclass(frozen=True)
class _StatIds:
    """The stat metadata ids that matter in one plane; slots index NUMBERS."""

    slots: tuple[int, ...]
    numbers: Int64s
    keys: Int64s
    anchors: Int64s

    @staticmethod
    def of(plane: RawPlane) -> _StatIds:
        # Flows join host events; devices, which have the most events, need not pay for them.
        wanted = NUMBERS if plane.is_host else EVENT_NUMBERS
        numbers = [plane.stat_id(name) for name in wanted]
        slots = tuple(slot for slot, key in enumerate(numbers) if key != MISSING)
        keys = _known_ids(plane, OP_STATS)
        anchors = np.zeros(0, np.int64)
        if plane.is_host:
            anchors = _known_ids(plane, OP_ANCHORS)
            keys = keys if len(anchors) else anchors
        return _StatIds(slots, np.array([numbers[slot] for slot in slots], np.int64), keys, anchors)


class EventColumns:
    """Collects the columns of all lines; sized once, filled in file order."""

    def __init__(self, planes: list[RawPlane], window: tuple[int, int] | None) -> None:
        filled = [line for plane in planes for line in plane.lines if line.count]
        count = sum(line.count for line in filled)
        starts = line_starts([(line.timestamp_ns, line.count) for line in filled], window)
        self.starts = {line.span: ns for line, ns in zip(filled, starts, strict=True)}
        self.start = np.empty(count, np.int64)
        self.duration = np.empty(count, np.int64)
        self.op = np.empty(count, np.int32)
        self.line = np.empty(count, np.int32)
        self.base_ns = min((ns for ns in starts if ns is not None), default=0)
        self.filled = 0
        self.lines: list[Line] = []
        self.ops: dict[Op, int] = {}
        self.sparse_rows: list[list[Int64s]] = [[] for _ in NUMBERS]
        self.sparse_values: list[list[Int64s]] = [[] for _ in NUMBERS]
        self.allocations: list[AllocatorState] = []
        self.dropped: dict[str, int] = {}
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self.nameless = 0
        self.nameless_stats = 0

    @staticmethod
    def read(
        buffer: Buffer, planes: list[RawPlane], window: tuple[int, int] | None
    ) -> EventColumns:
        columns = EventColumns(planes, window)
        columns._leave_out_lines(planes)
        for index, plane in enumerate(planes):
            ids = _StatIds.of(plane)
            describe = OpDecoder(buffer, plane, keep_event_stats=bool(len(ids.keys)))
            allocating = allocation_ids(buffer, plane)
            for line in plane.lines:
                start_ns = columns.starts.get(line.span, columns.base_ns)
                if start_ns is None:
                    columns.lines.append(Line(index, line.id, line.name, columns.filled, 0))
                    continue
                shift_ps = (start_ns - columns.base_ns) * PS_PER_NS
                scanned = columns._scan(buffer, line, ids, shift_ps)
                columns._add(index, line, ids, describe, scanned)
                if not allocating.isdisjoint(scanned.metadata.tolist()):
                    columns.allocations += read_allocations(
                        buffer, plane, line, scanned.broke_at, allocating, shift_ps
                    )
                forget(buffer, *line.span)
            columns.nameless_stats += describe.nameless_stats
        columns._note_nameless()
        return columns

    def _leave_out_lines(self, planes: list[RawPlane]) -> None:
        """Count and name the lines that begin nowhere."""
        lost = [
            (f"{line.name} of {plane.name}", line.count)
            for plane in planes
            for line in plane.lines
            if line.count and self.starts[line.span] is None
        ]
        if not lost:
            return
        count = sum(events for _, events in lost)
        self.dropped["outside_profile"] = count
        verbs = (
            "begins outside the profile and is"
            if len(lost) == 1
            else ("begin outside the profile and are")
        )
        self.doubts.append(
            f"{plural(len(lost), 'line')} of {plural(count, 'event')} {verbs} left out "
            f"({lost[0][0]}): the file may be damaged."
        )

    def leave_out_planes(self, repeated: list[RawPlane]) -> None:
        """Count and name planes that stand in the file already."""
        if not repeated:
            return
        self.dropped["repeated_plane"] = sum(plane.num_events for plane in repeated)
        names = ", ".join(dict.fromkeys(plane.name for plane in repeated))
        self.doubts.append(
            f"{plural(len(repeated), 'plane')} with a name that another has before "
            f"({names}): only the first of each name is read; files may have been joined."
        )

    def _scan(self, buffer: Buffer, line: RawLine, ids: _StatIds, shift_ps: int) -> LineEvents:
        """The line's events, into the columns behind those that are filled."""
        rows = slice(self.filled, self.filled + line.count)
        return scan_line_events(
            buffer,
            *line.span,
            shift_ps,
            ids.numbers,
            ids.keys,
            ids.anchors,
            self.start[rows],
            self.duration[rows],
            self.op[rows],
        )

    def _add(
        self, plane: int, line: RawLine, ids: _StatIds, describe: OpDecoder, scanned: LineEvents
    ) -> None:
        first, last = self.filled, self.filled + scanned.written
        damaged = line.count - scanned.written - sum(scanned.left_out.values())
        for reason, count in {**scanned.left_out, "damaged_event": damaged}.items():
            if count:
                self.dropped[reason] = self.dropped.get(reason, 0) + count
        if scanned.broke_at != BROKEN:
            self.notes.append(
                f"Line {line.name!r} is damaged at byte {scanned.broke_at:,}: later events "
                "are lost."
            )
        metadata = scanned.metadata.tolist()
        to_global = [
            self.ops.setdefault(describe(one, (at, end)), len(self.ops))
            for one, (at, end) in zip(metadata, scanned.spans.tolist(), strict=True)
        ]
        op = self.op[first:last]
        known = [describe.knows(one) for one in metadata]
        if not all(known):
            self.nameless += int((~np.array(known))[op].sum())
        op[:] = np.array(to_global, np.int32)[op]
        self.line[first:last] = len(self.lines)
        for slot, (rows, values) in zip(ids.slots, scanned.numbers, strict=True):
            if NUMBERS[slot] == "device_duration_ps" and len(values) and values.min() < 0:
                sound = values >= 0
                rows, values = rows[sound], values[sound]
            if len(rows):
                self.sparse_rows[slot].append(rows + first)
                self.sparse_values[slot].append(values)
        self.filled = last
        advance(events=last - first)
        self.lines.append(Line(plane, line.id, line.name, first, last - first))

    def _note_nameless(self) -> None:
        if self.nameless:
            self.doubts.append(
                f"{plural(self.nameless, 'event')} of {self.filled:,} have no name, for their "
                "metadata is missing: the file is damaged, and nothing can be said of their ops."
            )
        if self.nameless_stats:
            self.doubts.append(
                f"{plural(self.nameless_stats, 'stat')} of ops "
                f"{'has' if self.nameless_stats == 1 else 'have'} no name: the file may be "
                "damaged, and what they say of their ops is lost."
            )

    @property
    def has_lost_names(self) -> bool:
        """Whether the ops of more than MOST_NAMELESS of the events are unknown."""
        return self.nameless > MOST_NAMELESS * self.filled

    def _sparse(self, slot: int) -> Sparse:
        """Made once: the pieces are large and not kept."""
        rows, values = self.sparse_rows[slot], self.sparse_values[slot]
        return Sparse(_joined(rows), _joined(values)) if rows else Sparse.empty()

    def _origin(self, first_ps: int, window: tuple[int, int] | None) -> tuple[int, int] | None:
        """When the first event began. Lines count from the profile's start, some from 1970."""
        if self.base_ns >= EARLIEST_EPOCH_NS:
            base_ns = self.base_ns
        elif window:
            base_ns = window[0] + self.base_ns
        else:
            return None
        nanoseconds, picoseconds = divmod(first_ps, PS_PER_NS)
        return base_ns + nanoseconds, picoseconds

    def timeline(
        self,
        *,
        planes: tuple[Plane, ...],
        hlo: Mapping[int, Mapping[str, HloInstruction]],
        hlo_modules: Mapping[int, str],
        hlo_devices: Mapping[int, int],
        hlo_memory: Mapping[int, BufferPlan],
        hostname: str,
        window: tuple[int, int] | None,
        notes: tuple[str, ...],
        truncated: bool,
        ends_early: bool,
    ) -> Timeline:
        kept = slice(0, self.filled)
        start = self.start[kept]
        first = int(start.min()) if len(start) else 0
        origin = self._origin(first, window) if len(start) else None
        start -= first
        columns = dict(zip(NUMBERS, map(self._sparse, range(len(NUMBERS))), strict=True))
        columns["device_duration_ps"] = _beside(
            columns["device_duration_ps"], columns["device_offset_ps"]
        )
        device_start = columns["device_offset_ps"]
        if len(device_start):
            device_start = Sparse(
                device_start.rows, device_start.values - device_start.values.min()
            )
        return Timeline(
            source_format=XPLANE,
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
            produced=_flow(columns["_pt"], columns["_p"]),
            consumed=_flow(columns["_ct"], columns["_c"]),
            hlo=hlo,
            hlo_modules=hlo_modules,
            hlo_devices=hlo_devices,
            hlo_memory=hlo_memory,
            allocations=tuple(replace(one, start=one.start - first) for one in self.allocations),
            hostname=hostname,
            profile_start_ns=window[0] if window else None,
            profile_stop_ns=window[1] if window else None,
            origin=origin,
            dropped=self.dropped,
            notes=notes,
            doubts=tuple(self.doubts),
            truncated=truncated,
            ends_early=ends_early,
        )


def _beside(column: Sparse, other: Sparse) -> Sparse:
    """The column; where both tell of the same events, they hold them once."""
    return Sparse(other.rows, column.values) if np.array_equal(column.rows, other.rows) else column


def _joined(pieces: list[Int64s]) -> Int64s:
    """The pieces, which go."""
    joined = np.concatenate(pieces)
    pieces.clear()
    return joined


def _flow(types: Sparse, ids: Sparse) -> Flow:
    """Events that have both; the files write them together."""
    has_type, flow_type = types.find(ids.rows)
    return Flow(ids.rows[has_type], flow_type[has_type], ids.values[has_type])


def _known_ids(plane: RawPlane, names: tuple[str, ...]) -> Int64s:
    ids = [plane.stat_id(name) for name in names]
    return np.array([key for key in ids if key != MISSING], np.int64)
