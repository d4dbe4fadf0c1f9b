"""The ops that a device executed, as sorted columns: what every question about devices is asked of.

Contract
* Columns are sorted by (start, longest first, container first, name).
* Lengths are on the device clock where the file has one; `event_start` keeps the event clock, on
  which an op belongs to an execution, a step or a marker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from marin_profile.analysis.executions import Executions
from marin_profile.analysis.op_facts import OpFacts, name_ranks
from marin_profile.analysis.planes import CPU, SPARSECORE, plane_kind
from marin_profile.base.columns import moved_to_clock
from marin_profile.events.timeline import Int64s, Timeline


@dataclass(frozen=True)
class DeviceOps:
    """One device's op executions as sorted columns (see the module docstring).

    rows: events of the Timeline. execution: index into `executions` or -1. piece_*: self intervals;
    `piece_owner` indexes the op columns.
    """

    timeline: Timeline
    name: str
    host: str
    kind: str
    plane_stats: Mapping[str, int | float | str]
    rows: Int64s
    op: Int64s
    start: Int64s
    end: Int64s
    self_time: Int64s
    piece_start: Int64s
    piece_end: Int64s
    piece_owner: Int64s
    overlapping: int
    execution: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    executions: Executions | None = None
    steps_line: Int64s | None = None
    async_rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def event_start(self) -> Int64s:
        """Starts on the event clock; made anew on each use."""
        return self.timeline.start[self.rows]

    @property
    def event_end(self) -> Int64s:
        return self.event_start + self.timeline.duration[self.rows]

    def to_device_clock(self, points: Int64s) -> Int64s:
        """Event-clock times on the device clock, by the shift of the op that started last."""
        event_start = self.event_start
        return moved_to_clock(event_start, self.start - event_start, points)

    def to_event_clock(self, points: Int64s) -> Int64s:
        """Device-clock times on the event clock, by the shift of the op that started last."""
        return moved_to_clock(self.start, self.event_start - self.start, points)

    @property
    def ordinal(self) -> int:
        """3 for "/device:TPU:3"."""
        return int(self.name.rsplit(":", 1)[1].split()[0])

    @property
    def window(self) -> tuple[int, int]:
        """From the first op's start to the last op's end, device clock."""
        return int(self.start.min()), int(self.end.max())


@dataclass(frozen=True)
class HostDevices:
    """All devices of one host's Timeline."""

    timeline: Timeline
    host: str
    facts: tuple[OpFacts, ...]
    devices: tuple[DeviceOps, ...]
    empty_devices: tuple[str, ...]
    lines_not_analysed: tuple[str, ...]
    sync_entries: int

    @cached_property
    def main(self) -> tuple[DeviceOps, ...]:
        """Those that steps are made of, in the order of a step series' rows: no sparse cores."""
        return tuple(device for device in self.devices if device.kind != SPARSECORE)

    def host_rows(self, rows: Int64s) -> Int64s:
        """Those of `rows` that are events of the host and not the work of CPU devices; a launch may
        name the HLO op that it launches."""
        timeline = self.timeline
        is_host_line = np.array(
            [plane_kind(timeline.planes[line.plane]) in ("", CPU) for line in timeline.lines],
            np.bool_,
        )
        rows = rows[is_host_line[timeline.line[rows]]]
        for device in self.devices:
            if device.kind == CPU:
                rows = np.setdiff1d(rows, device.rows, assume_unique=True)
        return rows

    @cached_property
    def name_ranks(self) -> Int64s:
        return name_ranks(self.facts)
