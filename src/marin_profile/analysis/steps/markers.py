"""Steps named by host StepTraceAnnotations, and how they are tied to device work.

A host marker only names a step: it covers the dispatch, not the work. Markers are tied to device
work by the launches inside them (run id on CPU and TPU, correlation id on GPU); else by order of
execution; on GPU else by launches from other threads. A surer way that ties little, because the
step's program is launched from another thread, gives way to one that ties much more. Of several
annotations the one with the most device work tied to it counts. Without any tie the dominant
module's executions are the better source; where a file has none, the markers' starts are the
boundaries (only the period is known), if the markers last about as long as the devices worked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.steps.series import (
    ANNOTATION,
    StepSeries,
    containing,
    dominant_module,
    executions_of,
    series_of,
    steps_of_executions,
)
from marin_profile.events.timeline import Int64s, Timeline

# Of the time in which devices worked, how much untied markers must span to be its steps.
LEAST_SPAN = 0.5
# Of the markers, how many must have an execution to be tied by order.
LEAST_EXECUTED = 0.5

# A way that ties this share of the device work is good enough; else a less sure one that ties this
# many times as much is preferred.
ENOUGH = 0.5
MUCH_MORE = 2

Link = list[Int64s]


@dataclass(frozen=True)
class Markers:
    """One annotation: n steps in order of their start, and the marker events they consist of
    (`span_step` indexes the steps; several events may carry one number). Event clock."""

    name: str
    numbers: Int64s
    start: Int64s
    span_start: Int64s
    span_end: Int64s
    span_line: Int64s
    span_step: Int64s

    @property
    def count(self) -> int:
        return len(self.numbers)


Way = Callable[[HostDevices, list[DeviceOps], Markers], Link | None]


def from_annotations(
    host: HostDevices, devices: list[DeviceOps], notes: list[str]
) -> StepSeries | None:
    found = _annotations(host.timeline)
    if not found:
        return None
    chosen = _choose(host, devices, found)
    if chosen is not None:
        markers, link = chosen
        _note_others(markers, found, notes)
        numbers: list[int | None] = [int(number) for number in markers.numbers]
        return series_of(ANNOTATION, markers.name, numbers, devices, link, notes)
    notes += [
        f"The annotation {markers.name!r} occurs once and does not hold the devices' work (it was "
        "probably set while tracing, inside jit): it is no step series."
        for markers in found
        if markers.count == 1
    ]
    found = [markers for markers in found if markers.count > 1]
    if not found:
        return None
    if dominant_module(devices) is not None:
        notes.append(
            f"The markers {found[0].name!r} cannot be tied to device work: executions are the "
            "steps instead."
        )
        return None
    return _unlinked(devices, found, notes)


def _note_others(markers: Markers, found: list[Markers], notes: list[str]) -> None:
    others = sorted(repr(other.name) for other in found if other.name != markers.name)
    if others:
        notes.append(
            f"Steps come from the annotation {markers.name!r}; also present: {', '.join(others)}."
        )
    if len(set(markers.numbers.tolist())) < markers.count:
        notes.append(f"The step numbers of {markers.name!r} start again in the capture.")


def _annotations(timeline: Timeline) -> list[Markers]:
    """All annotations, those with the most steps first, ties by name."""
    rows = timeline.step_num.rows
    if not len(rows):
        return []
    by_name: dict[str, list[tuple[int, int, int, int]]] = {}
    for row, number in zip(rows.tolist(), timeline.step_num.values.tolist(), strict=True):
        begin = int(timeline.start[row])
        event = (begin, number, begin + int(timeline.duration[row]), int(timeline.line[row]))
        by_name.setdefault(timeline.ops[timeline.op[row]].name, []).append(event)
    found = [_markers(name, events) for name, events in by_name.items()]
    return sorted(found, key=lambda markers: (-markers.count, markers.name))


def _markers(name: str, events: list[tuple[int, int, int, int]]) -> Markers:
    """Events of one number that follow each other on a thread, and those of other threads, are one
    step; a number that comes back later begins a new round."""
    events = sorted(events)
    rounds: dict[int, int] = {}
    last: dict[int, int] = {}
    seen: set[tuple[int, int, int]] = set()
    keys = []
    for _, number, _, line in events:
        if last.get(line) != number and (line, rounds.get(line, 0), number) in seen:
            rounds[line] = rounds.get(line, 0) + 1
        last[line] = number
        seen.add((line, rounds.get(line, 0), number))
        keys.append((rounds.get(line, 0), number))
    step_of = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    starts: dict[int, int] = {}
    for event, key in zip(events, keys, strict=True):
        starts.setdefault(step_of[key], event[0])
    return Markers(
        name=name,
        numbers=np.array([number for _, number in step_of], np.int64),
        start=np.array([starts[index] for index in range(len(step_of))], np.int64),
        span_start=np.array([event[0] for event in events], np.int64),
        span_end=np.array([event[2] for event in events], np.int64),
        span_line=np.array([event[3] for event in events], np.int64),
        span_step=np.array([step_of[key] for key in keys], np.int64),
    )


def _choose(
    host: HostDevices, devices: list[DeviceOps], found: list[Markers]
) -> tuple[Markers, Link] | None:
    """The annotation with the most device work tied to it, by the surest way that ties enough."""
    ways: tuple[Way, ...] = (_link_by_launch, _link_by_order, _link_by_launch_time)
    whole = sum(int(device.self_time.sum()) for device in devices)
    best: tuple[int, Markers, Link] | None = None
    for way in ways:
        tied = _most_tied(way, host, devices, found)
        if tied is not None and (best is None or tied[0] > MUCH_MORE * best[0]):
            best = tied
        if best is not None and best[0] >= ENOUGH * whole:
            break
    return best and best[1:]


def _most_tied(
    way: Way, host: HostDevices, devices: list[DeviceOps], found: list[Markers]
) -> tuple[int, Markers, Link] | None:
    """The annotation that this way ties the most work to; the work in ps."""
    best: tuple[int, Markers, Link] | None = None
    for markers in found:
        link = way(host, devices, markers)
        if link is None or (markers.count == 1 and not _holds_all_executions(devices, link)):
            continue
        work = sum(
            int(device.self_time[step >= 0].sum())
            for device, step in zip(devices, link, strict=True)
        )
        if best is None or work > best[0]:
            best = (work, markers, link)
    return best


def _holds_all_executions(devices: list[DeviceOps], link: Link) -> bool:
    """Whether no device repeated its dominant module outside a lone marker."""
    for device, step in zip(devices, link, strict=True):
        dominant = dominant_module([device])
        if dominant is None:
            continue
        members = executions_of(device, dominant)
        linked = np.unique(device.execution[step >= 0])
        if len(members) > 1 and len(np.setdiff1d(members, linked)):
            return False
    return True


def _unlinked(
    devices: list[DeviceOps], found: list[Markers], notes: list[str]
) -> StepSeries | None:
    """Boundaries at the markers' starts, for the annotation with the most steps."""
    worked = max(int(device.event_end.max()) for device in devices) - min(
        int(device.event_start.min()) for device in devices
    )
    markers = found[0]
    span = int(markers.start[-1] - markers.start[0])
    if span + span // (markers.count - 1) < LEAST_SPAN * worked:
        notes.append(
            f"The markers {markers.name!r} cannot be tied to device work and are over long before "
            "it: they are no steps."
        )
        return None
    _note_others(markers, found, notes)
    notes.append(
        f"The markers {markers.name!r} cannot be tied to device work: step boundaries are the "
        "markers' starts, so only the period is known."
    )
    start = np.stack([device.to_device_clock(markers.start) for device in devices])
    end = np.concatenate((start[:, 1:], start[:, -1:]), axis=1)
    numbers = tuple(int(number) for number in markers.numbers)
    present = np.ones(start.shape, np.bool_)
    return StepSeries(ANNOTATION, markers.name, False, numbers, start, end, present, tuple(notes))


# --- ties --------------------------------------------------------------------------------------


def _link_by_launch(host: HostDevices, devices: list[DeviceOps], markers: Markers) -> Link | None:
    """By launches inside a marker, on its thread."""
    return _link_by_run_id(host, devices, markers) or _link_by_correlation(
        host, devices, _marker_of(host, markers, host.timeline.correlation_id.rows)
    )


def _marker_of(host: HostDevices, markers: Markers, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Host rows among `rows`, and for each the step whose marker on the same thread it starts in,
    else -1."""
    timeline = host.timeline
    rows = host.host_rows(rows)
    result = np.full(len(rows), -1, np.int64)
    lines = timeline.line[rows]
    for line in np.unique(markers.span_line).tolist():
        own = np.flatnonzero(markers.span_line == line)
        spans = (markers.span_start[own], markers.span_end[own], markers.span_step[own])
        bounds = sorted(zip(*(column.tolist() for column in spans), strict=True))
        here = lines == line
        result[here] = containing(timeline.start[rows[here]], bounds)
    return rows, result


def _link_by_run_id(host: HostDevices, devices: list[DeviceOps], markers: Markers) -> Link | None:
    """The first event with a run id counts: later ones may wait for the same execution from inside
    another marker."""
    timeline = host.timeline
    rows, marker = _marker_of(host, markers, timeline.run_id.rows)
    inside = np.flatnonzero(marker >= 0)
    if not len(inside):
        return None
    inside = inside[np.argsort(timeline.start[rows[inside]], kind="stable")]
    launched = rows[inside]
    _, run_ids = timeline.run_id.find(launched)
    has_ordinal, ordinals = timeline.device_ordinal.find(launched)
    links: dict[tuple[int, int | None], int] = {}
    columns = (run_ids, has_ordinal, ordinals, marker[inside])
    for run_id, has, ordinal, step in zip(*(c.tolist() for c in columns), strict=True):
        links.setdefault((run_id, ordinal if has else None), step)
    step_of_op = []
    for device in devices:
        executions = device.executions
        if executions is None:
            return None
        ordinal = device.ordinal
        step_of = np.full(len(executions.key) + 1, -1, np.int64)
        for index, run_id in enumerate(executions.run_id.tolist()):
            if executions.has_run_id[index]:
                step_of[index] = links.get((run_id, ordinal), links.get((run_id, None), -1))
        step_of_op.append(step_of[device.execution])
    return step_of_op if any((step >= 0).any() for step in step_of_op) else None


def _link_by_correlation(
    host: HostDevices, devices: list[DeviceOps], launches: tuple[Int64s, Int64s]
) -> Link | None:
    """Kernels by the correlation id of their launch; `launches` are host rows and their steps."""
    timeline = host.timeline
    rows, step = launches
    chosen = step >= 0
    if not chosen.any():
        return None
    _, ids = timeline.correlation_id.find(rows)
    order = np.argsort(ids[chosen], kind="stable")
    known, step_of_id = ids[chosen][order], step[chosen][order]
    step_of_op = []
    for device in devices:
        found, own = timeline.correlation_id.find(device.rows)
        at = np.minimum(np.searchsorted(known, own), len(known) - 1)
        step_of_op.append(np.where(found & (known[at] == own), step_of_id[at], -1))
    return step_of_op if any((step >= 0).any() for step in step_of_op) else None


def _link_by_launch_time(
    host: HostDevices, devices: list[DeviceOps], markers: Markers
) -> Link | None:
    """Launches from other threads count for the marker that started last, if every step but the
    first then has the same number of kernels."""
    if markers.count == 1:
        return None
    rows = host.host_rows(host.timeline.correlation_id.rows)
    step = np.searchsorted(markers.start, host.timeline.start[rows], side="right") - 1
    link = _link_by_correlation(host, devices, (rows, step))
    if link is None:
        return None
    for step in link:
        per_step = np.bincount(step[step >= 0], minlength=markers.count)[1:]
        if not (per_step == per_step[0]).all():
            return None
    return link


def _link_by_order(host: HostDevices, devices: list[DeviceOps], markers: Markers) -> Link | None:
    """The k-th execution of the dominant module belongs to the k-th marker. Executions before the
    first marker were launched before the capture; the last markers may have none in it."""
    dominant = dominant_module(devices)
    if dominant is None or markers.count == 1:
        return None
    step_of_op = []
    for device in devices:
        members = executions_of(device, dominant)
        if device.executions is None:
            return None
        start = device.executions.start[members]
        members, start = members[start >= markers.start[0]], start[start >= markers.start[0]]
        if not LEAST_EXECUTED * markers.count <= len(members) <= markers.count:
            return None
        if (start < markers.start[: len(start)]).any():
            return None
        step_of_op.append(steps_of_executions(device, members))
    return step_of_op
