"""Which host events launched the work of a device, and which saw it end.

Contract
* TPU executions and host events meet by run id and device ordinal, GPU kernels and their launches
  by correlation id. Of several launches of one id the earliest counts.
* An event that waits for an execution carries its run id too, and is all that is left of a launch
  from before the capture. So launches are the events whose name comes first for most of the ids
  that it carries; `COMPLETIONS`, by name, see an end.
* What is ambiguous is left out: an id that one device ran twice, and events without an ordinal
  where devices have different ids.
* Times are the event clock's, in ps. CPU devices have none of this: they are on their host's clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.planes import CPU
from marin_profile.base.columns import counts_of, extent_by
from marin_profile.events.timeline import Int64s, Sparse, Timeline

# libtpu's host event after an execution has ended.
COMPLETIONS = frozenset({"CompleteCallbacks"})
_ANY_DEVICE = -1


@dataclass(frozen=True)
class Matched:
    """Work of one device beside the host events of its ids: `device_time` is when the work began
    (or ended), `host_time` when it was launched (or the host saw it end), `op` the host event's."""

    device: DeviceOps
    device_time: Int64s
    host_time: Int64s
    op: Int64s


@dataclass(frozen=True)
class Launches:
    """Per accelerator what launched its work and what saw it end."""

    begun: tuple[Matched, ...]
    ended: tuple[Matched, ...]


def find_launches(host: HostDevices) -> Launches:
    timeline = host.timeline
    devices = [device for device in host.devices if device.kind != CPU]
    if not devices:
        return Launches((), ())
    is_completion = np.array([op.name in COMPLETIONS for op in timeline.ops], np.bool_)
    run_rows = host.host_rows(timeline.run_id.rows)
    saw_end = is_completion[timeline.op[run_rows]]
    launched_runs = _HostEvents.of(timeline, timeline.run_id, run_rows[~saw_end]).launching()
    completed_runs = _HostEvents.of(timeline, timeline.run_id, run_rows[saw_end])
    launched_kernels = _HostEvents.of(
        timeline, timeline.correlation_id, host.host_rows(timeline.correlation_id.rows)
    )
    runs = {device.name: _Work.executions(device) for device in devices}
    same_ids = _have_same_ids([work for work in runs.values() if len(work.ids)])
    begun, ended = [], []
    for device in devices:
        work = runs[device.name]
        if len(work.ids):
            begun.append(launched_runs.matched(device, work.ids, work.begin, same_ids))
            ended.append(completed_runs.matched(device, work.ids, work.end, same_ids))
        else:
            work = _Work.kernels(device)
            begun.append(launched_kernels.matched(device, work.ids, work.begin, True))
    return Launches(
        tuple(found for found in begun if len(found.op)),
        tuple(found for found in ended if len(found.op)),
    )


@dataclass(frozen=True)
class _Work:
    """What a device ran, by id."""

    ids: Int64s
    begin: Int64s
    end: Int64s

    @staticmethod
    def executions(device: DeviceOps) -> _Work:
        """Executions whose run id is theirs alone, by their ops; without ops by their own times."""
        executions = device.executions
        if executions is None:
            nothing = np.zeros(0, np.int64)
            return _Work(nothing, nothing, nothing)
        size = len(executions.start)
        begin, end = extent_by(device.execution, device.event_start, device.event_end, size)
        has_ops = begin <= end
        begin = np.where(has_ops, begin, executions.start)
        end = np.where(has_ops, end, executions.end)
        _, inverse, counts = np.unique(executions.run_id, return_inverse=True, return_counts=True)
        alone = executions.has_run_id & (counts[inverse] == 1)
        return _Work(executions.run_id[alone], begin[alone], end[alone])

    @staticmethod
    def kernels(device: DeviceOps) -> _Work:
        found, ids = device.timeline.correlation_id.find(device.rows)
        return _Work(ids[found], device.event_start[found], device.event_end[found])


def _have_same_ids(works: list[_Work]) -> bool:
    return all(np.array_equal(np.sort(works[0].ids), np.sort(work.ids)) for work in works[1:])


@dataclass(frozen=True)
class _HostEvents:
    """Host events by (ordinal, id, start)."""

    ordinal: Int64s
    ids: Int64s
    start: Int64s
    op: Int64s

    @staticmethod
    def of(timeline: Timeline, column: Sparse, rows: Int64s) -> _HostEvents:
        _, ids = column.find(rows)
        has_ordinal, ordinal = timeline.device_ordinal.find(rows)
        ordinal = np.where(has_ordinal, ordinal, _ANY_DEVICE)
        start = timeline.start[rows]
        order = np.lexsort((start, ids, ordinal))
        return _HostEvents(
            ordinal[order], ids[order], start[order], timeline.op[rows[order]].astype(np.int64)
        )

    @property
    def is_first(self) -> NDArray[np.bool_]:
        first = np.ones(len(self.ids), np.bool_)
        first[1:] = (np.diff(self.ids) != 0) | (np.diff(self.ordinal) != 0)
        return first

    def _only(self, chosen: NDArray[np.bool_]) -> _HostEvents:
        return _HostEvents(
            self.ordinal[chosen], self.ids[chosen], self.start[chosen], self.op[chosen]
        )

    def launching(self) -> _HostEvents:
        """Without the events whose name seldom comes first for an id: they wait."""
        if not len(self.op):
            return self
        size = int(self.op.max()) + 1
        is_launch = 2 * counts_of(self.op[self.is_first], size) > counts_of(self.op, size)
        return self._only(is_launch[self.op])

    def matched(self, device: DeviceOps, ids: Int64s, times: Int64s, same_ids: bool) -> Matched:
        """The earliest event of each of the device's `ids`, which happened at `times`."""
        own = self._only(self.ordinal == device.ordinal)
        if not len(own.op) and same_ids:
            own = self._only(self.ordinal == _ANY_DEVICE)
        if not len(own.op) or not len(ids):
            nothing = np.zeros(0, np.int64)
            return Matched(device, nothing, nothing, nothing)
        at = np.minimum(np.searchsorted(own.ids, ids), len(own.ids) - 1)
        known = own.ids[at] == ids
        return Matched(device, times[known], own.start[at[known]], own.op[at[known]])
