"""The steps of one host: which source names them and when each ran on each device.

Sources, in this order: the device's "Steps" line; host StepTraceAnnotations; executions of the
dominant module (most device time, program hash stripped); none.

A host marker only names a step: it covers the dispatch, not the work. Markers are tied to device
work by run id (CPU, TPU) or correlation id (GPU), else by execution order when each device ran the
dominant module once per marker. Without such a tie the marker starts are the boundaries: the
period is known, the duration is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.devices import CPU, SPARSECORE, DeviceOps, HostDevices, plane_kind
from marin_profile.columns import extent_by, sum_by
from marin_profile.timeline import Int64s, Timeline

DEVICE_STEPS, ANNOTATION, MODULE, NONE = "device_steps", "annotation", "module", "none"
_STEP_NUMBER = re.compile(r"-?[0-9]+")
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


@dataclass(frozen=True)
class _Markers:
    """Host step markers of one annotation, by start (event clock)."""

    name: str
    numbers: Int64s
    rows: Int64s
    start: Int64s
    end: Int64s
    line: Int64s


def find_steps(host: HostDevices) -> StepSeries:
    devices = [device for device in host.devices if device.kind != SPARSECORE]
    if not devices:
        return _no_steps(())
    from_line = _from_steps_line(host.timeline, devices)
    if from_line:
        return from_line
    notes: list[str] = []
    markers = _find_markers(host, notes)
    if markers is not None:
        series = _from_markers(host, devices, markers, notes)
        if series:
            return series
    return _from_modules(devices, notes) or _no_steps(tuple(notes))


def _no_steps(notes: tuple[str, ...]) -> StepSeries:
    nothing = np.zeros((0, 0), np.int64)
    return StepSeries(NONE, None, False, (), nothing, nothing, nothing.astype(np.bool_), notes)


def _series(
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


# --- device "Steps" line -----------------------------------------------------------------------


def _from_steps_line(timeline: Timeline, devices: list[DeviceOps]) -> StepSeries | None:
    named = [device for device in devices if device.steps_line is not None]
    if not named:
        return None
    numbers: set[int] = set()
    spans: list[dict[int, tuple[int, int]]] = []
    for device in devices:
        found: dict[int, tuple[int, int]] = {}
        rows = device.steps_line if device.steps_line is not None else np.zeros(0, np.int64)
        for row in rows.tolist():
            text = timeline.ops[timeline.op[row]].name
            if _STEP_NUMBER.fullmatch(text.strip()):
                begin = int(timeline.start[row])
                found[int(text)] = (begin, begin + int(timeline.duration[row]))
        spans.append(found)
        numbers |= set(found)
    if not numbers:
        return None
    ordered = sorted(numbers)
    step_of_op = []
    for device, found in zip(devices, spans, strict=True):
        bounds = sorted(
            (*found[number], index) for index, number in enumerate(ordered) if number in found
        )
        step_of_op.append(_containing(device.event_start, bounds))
    return _series(DEVICE_STEPS, None, list(ordered), devices, step_of_op, [])


def _containing(points: Int64s, bounds: list[tuple[int, int, int]]) -> Int64s:
    """For each point the index of the (start, end, index) span that holds it, else -1."""
    if not bounds:
        return np.full(len(points), -1, np.int64)
    starts, ends, indexes = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    at = np.searchsorted(starts, points, side="right") - 1
    inside = (at >= 0) & (points < ends[np.maximum(at, 0)])
    return np.where(inside, indexes[np.maximum(at, 0)], -1)


# --- host annotations --------------------------------------------------------------------------


def _find_markers(host: HostDevices, notes: list[str]) -> _Markers | None:
    """The annotation with the most step numbers (ties: by name), one marker per number."""
    timeline = host.timeline
    rows = timeline.step_num.rows
    if not len(rows):
        return None
    numbers = timeline.step_num.values
    names = [timeline.ops[i].name for i in timeline.op[rows].tolist()]
    by_name: dict[str, dict[int, int]] = {}
    for row, number, name in zip(rows.tolist(), numbers.tolist(), names, strict=True):
        known = by_name.setdefault(name, {})
        earlier = known.get(number)
        if earlier is None or timeline.start[row] < timeline.start[earlier]:
            known[number] = row
    name = min(by_name, key=lambda candidate: (-len(by_name[candidate]), candidate))
    if len(by_name) > 1:
        others = ", ".join(sorted(repr(other) for other in by_name if other != name))
        notes.append(f"Steps come from the annotation {name!r}; also present: {others}.")
    chosen = by_name[name]
    ordered = sorted(chosen, key=lambda number: (int(timeline.start[chosen[number]]), number))
    picked = np.array([chosen[number] for number in ordered], np.int64)
    start = timeline.start[picked]
    return _Markers(
        name=name,
        numbers=np.array(ordered, np.int64),
        rows=picked,
        start=start,
        end=start + timeline.duration[picked],
        line=timeline.line[picked].astype(np.int64),
    )


def _from_markers(
    host: HostDevices, devices: list[DeviceOps], markers: _Markers, notes: list[str]
) -> StepSeries | None:
    numbers: list[int | None] = [int(number) for number in markers.numbers]
    step_of_op = (
        _link_by_run_id(host, devices, markers)
        or _link_by_correlation(host, devices, markers)
        or _link_by_order(devices, markers)
    )
    if len(numbers) == 1 and not _one_marker_is_a_step(devices, step_of_op):
        notes.append(
            f"The annotation {markers.name!r} occurs once and does not hold the devices' work (it "
            "was probably set while tracing, inside jit): it is no step series."
        )
        return None
    if step_of_op is not None:
        return _series(ANNOTATION, markers.name, numbers, devices, step_of_op, notes)
    notes.append(
        f"The markers {markers.name!r} cannot be tied to device work: step boundaries are the "
        "markers' starts, so only the period is known."
    )
    start = np.stack([device.to_device_clock(markers.start) for device in devices])
    end = np.concatenate((start[:, 1:], start[:, -1:]), axis=1)
    present = np.ones(start.shape, np.bool_)
    return StepSeries(
        ANNOTATION, markers.name, False, tuple(numbers), start, end, present, tuple(notes)
    )


def _one_marker_is_a_step(devices: list[DeviceOps], step_of_op: list[Int64s] | None) -> bool:
    """A lone marker is a step if device work is tied to it and no device repeated its dominant
    module outside it."""
    if step_of_op is None:
        return False
    for index, device in enumerate(devices):
        if device.executions is None:
            continue
        dominant = _dominant_module([device])
        members = _executions_of(device, dominant) if dominant else np.zeros(0, np.int64)
        linked = np.unique(device.execution[step_of_op[index] >= 0])
        if len(members) > 1 and len(np.setdiff1d(members, linked)):
            return False
    return True


def _host_rows(host: HostDevices, rows: Int64s) -> Int64s:
    """Rows on host planes that are no device work; launches may name the HLO op they launch."""
    timeline = host.timeline
    is_host_line = np.array(
        [plane_kind(timeline.planes[line.plane]) in ("", CPU) for line in timeline.lines], np.bool_
    )
    rows = rows[is_host_line[timeline.line[rows]]]
    for device in host.devices:
        if device.kind == CPU:
            rows = np.setdiff1d(rows, device.rows, assume_unique=True)
    return rows


def _marker_of(markers: _Markers, timeline: Timeline, rows: Int64s) -> Int64s:
    """For each host event the marker on the same thread that it starts in, else -1."""
    result = np.full(len(rows), -1, np.int64)
    lines = timeline.line[rows]
    for line in np.unique(markers.line).tolist():
        own = np.flatnonzero(markers.line == line)
        bounds = [(int(markers.start[i]), int(markers.end[i]), int(i)) for i in own.tolist()]
        here = lines == line
        result[here] = _containing(timeline.start[rows[here]], bounds)
    return result


def _link_by_run_id(
    host: HostDevices, devices: list[DeviceOps], markers: _Markers
) -> list[Int64s] | None:
    """Executions whose run id was launched by an event inside a marker, on its thread. The first
    event counts: later ones may wait for the same execution from inside another marker."""
    timeline = host.timeline
    rows = _host_rows(host, timeline.run_id.rows)
    marker = _marker_of(markers, timeline, rows)
    inside = np.flatnonzero(marker >= 0)
    if not len(inside):
        return None
    inside = inside[np.argsort(timeline.start[rows[inside]], kind="stable")]
    launched = rows[inside]
    _, run_ids = timeline.run_id.find(launched)
    has_ordinal, ordinals = timeline.device_ordinal.find(launched)
    links: dict[tuple[int, int | None], int] = {}
    for run_id, has, ordinal, step in zip(
        run_ids.tolist(),
        has_ordinal.tolist(),
        ordinals.tolist(),
        marker[inside].tolist(),
        strict=True,
    ):
        links.setdefault((run_id, ordinal if has else None), step)
    step_of_op = []
    for device in devices:
        executions = device.executions
        if executions is None:
            return None
        ordinal = int(device.name.rsplit(":", 1)[1])
        step = np.full(len(executions.key) + 1, -1, np.int64)
        for index, run_id in enumerate(executions.run_id.tolist()):
            if executions.has_run_id[index]:
                found = links.get((run_id, ordinal), links.get((run_id, None), -1))
                step[index] = found
        step_of_op.append(step[device.execution])
    return step_of_op if any((step >= 0).any() for step in step_of_op) else None


def _link_by_correlation(
    host: HostDevices, devices: list[DeviceOps], markers: _Markers
) -> list[Int64s] | None:
    """Kernels whose launch (same correlation id, host side) started inside a marker; launches from
    other threads count for the marker that started last, if every step then has the same work."""
    timeline = host.timeline
    rows = _host_rows(host, timeline.correlation_id.rows)
    if not len(rows) or not any(timeline.correlation_id.find(d.rows)[0].any() for d in devices):
        return None
    marker = _marker_of(markers, timeline, rows)
    exact = bool((marker >= 0).any())
    if not exact and len(markers.numbers) == 1:
        return None
    if not exact:
        marker = np.searchsorted(markers.start, timeline.start[rows], side="right") - 1
    _, ids = timeline.correlation_id.find(rows)
    chosen = marker >= 0
    order = np.argsort(ids[chosen], kind="stable")
    known, step_of_id = ids[chosen][order], marker[chosen][order]
    if not len(known):
        return None
    step_of_op = []
    for device in devices:
        found, own = timeline.correlation_id.find(device.rows)
        at = np.minimum(np.searchsorted(known, own), len(known) - 1)
        hit = found & (known[at] == own)
        step_of_op.append(np.where(hit, step_of_id[at], -1))
    if not any((step >= 0).any() for step in step_of_op):
        return None
    if not exact and not all(_same_work(step, len(markers.numbers)) for step in step_of_op):
        return None
    return step_of_op


def _same_work(step: Int64s, count: int) -> bool:
    """Whether every step but the first holds the same number of kernels."""
    member = step[step >= 0]
    per_step = np.bincount(member, minlength=count)[1:]
    return len(per_step) == 0 or bool((per_step == per_step[0]).all())


def _link_by_order(devices: list[DeviceOps], markers: _Markers) -> list[Int64s] | None:
    """The k-th execution of the dominant module belongs to the k-th marker, if the counts agree
    and none ran before its marker began."""
    dominant = _dominant_module(devices)
    if dominant is None:
        return None
    step_of_op = []
    for device in devices:
        members = _executions_of(device, dominant)
        if device.executions is None or len(members) != len(markers.numbers):
            return None
        if (device.executions.start[members] < markers.start).any():
            return None
        step_of_op.append(_steps_of_executions(device, members))
    return step_of_op


# --- executions of the dominant module ---------------------------------------------------------


def _from_modules(devices: list[DeviceOps], notes: list[str]) -> StepSeries | None:
    dominant = _dominant_module(devices)
    if dominant is None:
        return None
    members = [_executions_of(device, dominant) for device in devices]
    counts = sorted({len(member) for member in members})
    if len(counts) > 1:
        notes.append(
            f"Devices ran {dominant} between {counts[0]} and {counts[-1]} times: steps are matched "
            "in order of execution."
        )
    step_of_op = [
        _steps_of_executions(device, member)
        for device, member in zip(devices, members, strict=True)
    ]
    return _series(MODULE, dominant, [None] * counts[-1], devices, step_of_op, notes)


def _dominant_module(devices: list[DeviceOps]) -> str | None:
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


def _executions_of(device: DeviceOps, module: str) -> Int64s:
    if device.executions is None:
        return np.zeros(0, np.int64)
    keys = [i for i, (name, _) in enumerate(device.executions.modules) if name == module]
    return np.flatnonzero(np.isin(device.executions.key, keys))


def _steps_of_executions(device: DeviceOps, members: Int64s) -> Int64s:
    """For each op the position of its execution among `members`, else -1."""
    size = len(device.executions.key) if device.executions is not None else 0
    step = np.full(size + 1, -1, np.int64)
    step[members] = np.arange(len(members))
    return step[device.execution]
