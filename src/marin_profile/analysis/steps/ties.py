"""Which device work is whose step marker's: by launches, else by order.

Contract, the surest way first
* By launch: work whose launch (run id on CPU and TPU, correlation id on GPU) is a marker's: inside
  it on its line, or joined to it by flow ids (see `flows`). Of several events with one run id the
  first counts: later ones may wait for the same execution from inside another marker.
* By order: executions of the dominant program, if as many lie between each marker and the next, or
  else if they are as many as the markers, or a multiple of it. Where they run between fewer than
  SELDOM of the markers and the next ones, as an evaluation does that outweighs the steps, they
  give way to the program with the most op time of which as many lie between each. All work up to
  the next such execution belongs to the step, except what launches tie to another one, and
  programs that fewer than SELDOM of the steps run, once their marker is over, and what follows
  those: that is hooks' own. Executions before the first marker were launched before the capture.
* By launch time: kernels launched from other threads count for the marker that started last, if
  every step but the first then has the same number, or if each launch lies in the time of a marker.

A surer way that ties little, because the step's program is launched out of the markers' sight,
gives way to one that ties much more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.executions import Executions, Program
from marin_profile.analysis.flows import steps_of_events
from marin_profile.analysis.steps.annotations import Markers
from marin_profile.analysis.steps.programs import dominant_program, executions_of
from marin_profile.analysis.steps.sequences import steps_from
from marin_profile.analysis.steps.series import NO_STEP
from marin_profile.base.columns import unique_pairs
from marin_profile.events.timeline import Int64s

# A less sure way is preferred if it ties more than this many times as much.
MUCH_MORE = 2

# The part of the steps below which a program that runs between their markers is none of theirs.
SELDOM = 0.5

StepOfOps = list[Int64s]  # per device the step of each op, NO_STEP for none


@dataclass(frozen=True)
class TiedWork:
    """The work of one annotation's steps. time: how much this way ties that no surer one does, ps.
    early: whether some of it was tied by order, yet starts before its marker."""

    markers: Markers
    step_of_op: StepOfOps
    time: int
    early: bool = False


def tied_work(host: HostDevices, devices: list[DeviceOps], found: list[Markers]) -> TiedWork | None:
    """Of the annotation with the most device work tied to it, by the surest way that ties enough;
    ties by the order of `found`."""
    whole = sum(int(device.self_time.sum()) for device in devices)
    by_run = [_by_run_id(host, devices, markers) for markers in found]
    best: TiedWork | None = None
    most = 0
    for way in (_by_launch, _by_order, _by_launch_time):
        tied = [way(host, devices, *one) for one in zip(found, by_run, strict=True)]
        times = [one.time if one is not None else 0 for one in tied]
        if max(times) > MUCH_MORE * most:
            most = max(times)
            best = tied[times.index(most)]
        if MUCH_MORE * most >= whole:
            break
    return best


def _by_launch(
    host: HostDevices, devices: list[DeviceOps], markers: Markers, by_run: StepOfOps | None
) -> TiedWork | None:
    if by_run is None:
        rows = host.host_rows(host.timeline.correlation_id.rows)
        step = steps_of_events(host.timeline, markers.spans, rows)
        by_run = _by_correlation(host, devices, rows, step)
    if by_run is None or (markers.is_lone and not _holds_all_executions(devices, by_run)):
        return None
    return TiedWork(markers, by_run, _time(devices, by_run))


def _time(devices: list[DeviceOps], step_of_op: StepOfOps) -> int:
    return sum(
        int(device.self_time[step >= 0].sum())
        for device, step in zip(devices, step_of_op, strict=True)
    )


def _holds_all_executions(devices: list[DeviceOps], step_of_op: StepOfOps) -> bool:
    """Whether no device repeated its dominant program outside a lone marker."""
    for device, step in zip(devices, step_of_op, strict=True):
        dominant = dominant_program([device])
        if dominant is None:
            continue
        members = executions_of(device.executions, dominant.programs)
        tied = np.unique(device.execution[step >= 0])
        if len(members) > 1 and len(np.setdiff1d(members, tied)):
            return False
    return True


def _by_run_id(host: HostDevices, devices: list[DeviceOps], markers: Markers) -> StepOfOps | None:
    timeline = host.timeline
    rows = host.host_rows(timeline.run_id.rows)
    step = steps_of_events(timeline, markers.spans, rows)
    _, run_ids = timeline.run_id.find(rows)
    has_ordinal, ordinals = timeline.device_ordinal.find(rows)
    order = np.lexsort((timeline.start[rows], run_ids))
    run_ids, step, has_ordinal = run_ids[order], step[order], has_ordinal[order]
    ordinals = ordinals[order]
    step_of_op = []
    for device in devices:
        executions = device.executions
        if executions is None:
            return None
        own = ~has_ordinal | (ordinals == device.ordinal)
        launch = _find_first(run_ids[own], executions.run_id)
        step_of_launch = np.append(step[own], NO_STEP)[launch]
        step_of = np.where(executions.has_run_id, step_of_launch, NO_STEP)
        step_of_op.append(np.append(step_of, NO_STEP)[device.execution])
    return step_of_op if any((step >= 0).any() for step in step_of_op) else None


def _by_correlation(
    host: HostDevices, devices: list[DeviceOps], rows: Int64s, step: Int64s
) -> StepOfOps | None:
    """Kernels by the correlation id of their launch; `rows` are launches and `step` their steps."""
    timeline = host.timeline
    chosen = step >= 0
    _, ids = timeline.correlation_id.find(rows)
    order = np.argsort(ids[chosen], kind="stable")
    known, step_of_id = ids[chosen][order], np.append(step[chosen][order], NO_STEP)
    step_of_op = []
    for device in devices:
        found, own = timeline.correlation_id.find(device.rows)
        launch = _find_first(known, own)
        step_of_op.append(np.where(found, step_of_id[launch], NO_STEP))
    return step_of_op if any((step >= 0).any() for step in step_of_op) else None


def _find_first(known: Int64s, wanted: Int64s) -> Int64s:
    """Where ascending `known` first holds each of `wanted`, else behind its last."""
    at = np.searchsorted(known, wanted)
    is_known = at < np.searchsorted(known, wanted, side="right")
    return np.where(is_known, at, len(known))


def _by_order(
    host: HostDevices, devices: list[DeviceOps], markers: Markers, by_run: StepOfOps | None
) -> TiedWork | None:
    dominant = dominant_program(devices)
    if dominant is None or markers.is_lone:
        return None
    launched = by_run or [np.array(NO_STEP)] * len(devices)
    if _is_seldom(devices, markers, dominant.programs):
        for program in dominant.lasting:
            tied = _in_order(devices, markers, (program,), launched, _between_markers)
            if tied is not None:
                return tied
    return _in_order(devices, markers, dominant.programs, launched, _executions_per_marker)


def _is_seldom(devices: list[DeviceOps], markers: Markers, programs: Sequence[Program]) -> bool:
    """Whether on some device the programs run between few markers and the next ones."""
    for device in devices:
        if device.executions is None:
            continue
        start = device.executions.start[executions_of(device.executions, programs)]
        of_marker = np.searchsorted(markers.start, start, side="right") - 1
        if len(np.unique(of_marker[of_marker >= 0])) < SELDOM * markers.count:
            return True
    return False


def _in_order(
    devices: list[DeviceOps],
    markers: Markers,
    programs: Sequence[Program],
    launched: StepOfOps,
    each_marker: Callable[[Int64s, Int64s], tuple[int, int]],
) -> TiedWork | None:
    step_of_op = []
    time = 0
    early = False
    for device, known in zip(devices, launched, strict=True):
        executions = device.executions
        members = executions_of(executions, programs)
        if executions is None or not len(members):
            return None
        start = executions.start[members]
        first, each = each_marker(start, markers.start)
        if not each:
            return None
        members, start = members[first::each], start[first::each]
        early |= bool((start < markers.start[: len(start)]).any())
        in_order = _without_hooks(device, executions, markers, steps_from(device, members))
        step = np.where(known >= 0, known, in_order)
        time += int(device.self_time[(step >= 0) & (known < 0)].sum())
        step_of_op.append(step)
    return TiedWork(markers, step_of_op, time, early)


def _without_hooks(
    device: DeviceOps, executions: Executions, markers: Markers, step: Int64s
) -> Int64s:
    """Without what few steps run once their markers are over, and what follows it: no step's."""
    until = np.zeros(markers.count, np.int64)
    np.maximum.at(until, markers.spans.step, markers.spans.end)
    inside = device.execution >= 0
    step_of = np.full(len(executions.key), NO_STEP, np.int64)
    step_of[device.execution[inside]] = step[inside]
    has_step = step_of >= 0
    programs, _, _ = unique_pairs(executions.key[has_step], step_of[has_step])
    steps = np.bincount(programs, minlength=len(executions.modules))
    is_seldom = steps[executions.key] < SELDOM * markers.count
    is_hooks = has_step & is_seldom & (executions.start >= until[step_of])
    hooks_start = np.full(markers.count, np.iinfo(np.int64).max)
    np.minimum.at(hooks_start, step_of[is_hooks], executions.start[is_hooks])
    between = has_step & (executions.start >= hooks_start[step_of])
    return np.where(inside & between[device.execution], NO_STEP, step)


def _executions_per_marker(start: Int64s, markers: Int64s) -> tuple[int, int]:
    """The first execution that a marker names, and how many each marker does (0: not constant)."""
    first, each = _between_markers(start, markers)
    if each:
        return first, each
    return 0, 0 if len(start) % len(markers) else len(start) // len(markers)


def _between_markers(start: Int64s, markers: Int64s) -> tuple[int, int]:
    """The same, of executions between each marker and the next. What runs first after the first
    marker may be left of what was launched before the capture."""
    before = int(np.searchsorted(start, markers[0]))
    counts = np.diff(np.searchsorted(start, markers))
    if len(counts) > 2 and counts[0] > counts[1]:
        before += int(counts[0] - counts[1])
        counts[0] = counts[1]
    each = int(counts.min())
    after = len(start) - before - int(counts.sum())
    if each and not np.ptp(counts) and after <= each:
        return before, each
    return 0, 0


def _by_launch_time(
    host: HostDevices, devices: list[DeviceOps], markers: Markers, by_run: StepOfOps | None
) -> TiedWork | None:
    if markers.is_lone:
        return None
    timeline = host.timeline
    rows = host.host_rows(timeline.correlation_id.rows)
    start = timeline.start[rows]
    step = np.searchsorted(markers.start, start, side="right") - 1
    until = np.zeros(markers.count, np.int64)
    np.maximum.at(until, markers.spans.step, markers.spans.end)
    step_of_op = _by_correlation(host, devices, rows, step)
    if step_of_op is None:
        return None
    if (step >= 0).all() and (start < until[step]).all():
        return TiedWork(markers, step_of_op, _time(devices, step_of_op))
    for own in step_of_op:
        per_step = np.bincount(own[own >= 0], minlength=markers.count)[1:]
        if np.ptp(per_step):
            return None
    return TiedWork(markers, step_of_op, _time(devices, step_of_op))
