"""A series of steps on the devices of one host, and what every source of steps is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.base.columns import extent_by, sum_by
from marin_profile.events.timeline import Int64s

DEVICE_STEPS, ANNOTATION, MODULE, NONE = "device_steps", "annotation", "module", "none"
_LOW = np.iinfo(np.int64).min


@dataclass(frozen=True)
class StepSeries:
    """n steps on d devices.

    numbers: n step numbers (None: the source has none). start, end: (d, n) device-clock times;
    `present` says where a device took part. Where `linked` is False, start holds the markers'
    starts and end the next marker's (the last step's end equals its start).
    """

    source: str
    annotation: str | None
    linked: bool
    numbers: tuple[int | None, ...]
    start: Int64s
    end: Int64s
    present: NDArray[np.bool_]
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.numbers)

    def only(self, positions: Sequence[int]) -> StepSeries:
        """The steps at `positions`."""
        at = list(positions)
        return replace(
            self,
            numbers=tuple(self.numbers[position] for position in at),
            start=self.start[:, at],
            end=self.end[:, at],
            present=self.present[:, at],
        )

    def window(self, first: int) -> tuple[int, int] | None:
        """From the earliest start of step `first` to the latest end of the last step."""
        if first >= self.count:
            return None
        present = self.present[:, first:]
        start, end = self.start[:, first:][present], self.end[:, first:][present]
        if not len(start) or int(end.max()) <= int(start.min()):
            return None
        return int(start.min()), int(end.max())

    def periods(self, first: int) -> tuple[list[tuple[int, int]], int]:
        """Per device the whole periods from step `first` on, and how many they are: from its start
        to the last step's start. A lone step counts by its duration."""
        last = self.count - 1
        whole = self.window(first)
        if whole is None:
            return [], 0
        if first == last:
            return [whole] * len(self.start), 1
        windows = []
        for start, present in zip(self.start, self.present, strict=True):
            begin = (
                start[first] if present[first] else self.start[self.present[:, first], first].min()
            )
            end = start[last] if present[last] else self.start[self.present[:, last], last].min()
            windows.append((int(begin), max(int(begin), int(end))))
        return windows, self._distance(first)

    def _distance(self, first: int) -> int:
        """Steps from `first` to the last one, missing numbers counted."""
        between = self.count - 1 - first
        numbers = [number for number in self.numbers[first:] if number is not None]
        if len(numbers) <= between:
            return between
        distances = np.diff(numbers)
        values, counts = np.unique(distances, return_counts=True)
        stride = int(values[np.argmax(counts)])
        total = numbers[-1] - numbers[0]
        is_regular = stride > 0 and (distances > 0).all() and total % stride == 0
        return total // stride if is_regular else between

    @property
    def has_successor(self) -> NDArray[np.bool_]:
        """(n,) whether the next step is the very next one, by the commonest distance of numbers."""
        known = np.zeros(self.count, np.bool_)
        numbers = [number for number in self.numbers if number is not None]
        if len(numbers) < self.count:
            known[:-1] = True
        elif self.count > 1:
            distances = np.diff(numbers)
            values, counts = np.unique(distances, return_counts=True)
            known[:-1] = distances == values[np.argmax(counts)]
        return known


def series_of(
    source: str,
    annotation: str | None,
    numbers: list[int | None],
    devices: list[DeviceOps],
    step_of_op: list[Int64s],
    notes: list[str],
) -> StepSeries:
    """Per device and step: first start to last end of the member ops, device clock."""
    n = len(numbers)
    extents = [
        extent_by(step, device.start, device.end, n)
        for device, step in zip(devices, step_of_op, strict=True)
    ]
    start = np.stack([first for first, _ in extents])
    end = np.stack([last for _, last in extents])
    present = end > _LOW
    used = present.any(axis=0)
    start = np.where(present, start, 0)[:, used]
    end = np.where(present, end, 0)[:, used]
    kept_numbers = tuple(numbers[index] for index in np.flatnonzero(used).tolist())
    if len(kept_numbers) < n:
        notes.append(f"{n - len(kept_numbers)} of {n} steps have no device work in the capture.")
    return StepSeries(
        source, annotation, True, kept_numbers, start, end, present[:, used], tuple(notes)
    )


def containing(points: Int64s, bounds: list[tuple[int, int, int]]) -> Int64s:
    """For each point the index of the (start, end, index) span that holds it, else -1."""
    if not bounds:
        return np.full(len(points), -1, np.int64)
    starts, ends, indexes = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    at = np.searchsorted(starts, points, side="right") - 1
    inside = (at >= 0) & (points < ends[np.maximum(at, 0)])
    return np.where(inside, indexes[np.maximum(at, 0)], -1)


def dominant_module(devices: list[DeviceOps]) -> str | None:
    """The module with the most self time over all devices; ties by name."""
    totals: dict[str, int] = {}
    for device in devices:
        if device.executions is None:
            continue
        inside = device.execution >= 0
        key = device.executions.key[device.execution[inside]]
        sums = sum_by(key, device.self_time[inside], len(device.executions.modules))
        for (name, _), total in zip(device.executions.modules, sums.tolist(), strict=True):
            totals[name] = totals.get(name, 0) + total
    totals = {name: total for name, total in totals.items() if total > 0}
    return min(totals, key=lambda name: (-totals[name], name)) if totals else None


def executions_of(device: DeviceOps, module: str) -> Int64s:
    if device.executions is None:
        return np.zeros(0, np.int64)
    keys = [i for i, (name, _) in enumerate(device.executions.modules) if name == module]
    return np.flatnonzero(np.isin(device.executions.key, keys))


def steps_of_executions(device: DeviceOps, members: Int64s) -> Int64s:
    """For each op the position of its execution among `members`, else -1."""
    size = len(device.executions.key) if device.executions is not None else 0
    step = np.full(size + 1, -1, np.int64)
    step[members] = np.arange(len(members))
    return step[device.execution]
