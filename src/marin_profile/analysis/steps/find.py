"""The steps of one host: which source names them and when each ran on each device.

Sources, in this order: the device's "Steps" line; host StepTraceAnnotations (see `markers`);
executions of the dominant program (see `sequences`); none.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from marin_profile.analysis.clocks import ClockCheck
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.steps.boundaries import FoundSteps, Membership, Remarks, series_of
from marin_profile.analysis.steps.markers import from_annotations
from marin_profile.analysis.steps.programs import dominant_program
from marin_profile.analysis.steps.sequences import step_starts, steps_from
from marin_profile.analysis.steps.series import DEVICE_STEPS, MODULE, NO_STEP, StepSeries
from marin_profile.events.timeline import Int64s, Timeline

_STEP_NUMBER = re.compile(r"-?[0-9]+")


def find_steps(host: HostDevices, clock: ClockCheck | None = None) -> StepSeries:
    """`clock` is the host's `host_clock`, if that is known already."""
    return find_members(host, clock).series


def find_members(host: HostDevices, clock: ClockCheck | None = None) -> FoundSteps:
    """The steps, and which ops of `host.main` they are made of."""
    devices = list(host.main)
    if not devices:
        return FoundSteps(StepSeries.none())
    remarks = Remarks()
    found = (
        _from_steps_line(host.timeline, devices, remarks)
        or from_annotations(host, devices, clock, remarks)
        or _from_programs(devices, remarks)
        or FoundSteps(StepSeries.none())
    )
    series = replace(
        found.series,
        notes=tuple(remarks.notes),
        doubts=tuple(remarks.doubts),
        without_work=remarks.without_work,
        long_op=remarks.long_op,
    )
    return FoundSteps(series, found.step_of_op)


def _from_steps_line(
    timeline: Timeline, devices: list[DeviceOps], remarks: Remarks
) -> FoundSteps | None:
    spans = [_numbered_spans(timeline, device.steps_line) for device in devices]
    numbers = sorted({number for found in spans for number in found})
    if not numbers:
        return None
    step_of_op = [
        _step_inside(
            device.event_start,
            sorted((*found[number], i) for i, number in enumerate(numbers) if number in found),
        )
        for device, found in zip(devices, spans, strict=True)
    ]
    return series_of(DEVICE_STEPS, None, devices, Membership(tuple(numbers), step_of_op), remarks)


def _numbered_spans(timeline: Timeline, rows: Int64s | None) -> dict[int, tuple[int, int]]:
    """Of a number that stands twice, the first in time."""
    found: dict[int, tuple[int, int]] = {}
    if rows is None:
        return found
    for row in rows[np.argsort(timeline.start[rows], kind="stable")].tolist():
        text = timeline.ops[timeline.op[row]].name.strip()
        if _STEP_NUMBER.fullmatch(text):
            begin = int(timeline.start[row])
            found.setdefault(int(text), (begin, begin + int(timeline.duration[row])))
    return found


def _step_inside(points: Int64s, bounds: list[tuple[int, int, int]]) -> Int64s:
    """For each point the index of the (start, end, index) span that holds it, else NO_STEP."""
    if not bounds:
        return np.full(len(points), NO_STEP, np.int64)
    starts, ends, indexes = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    at = np.searchsorted(starts, points, side="right") - 1
    # Before the first span `at` is that of the entry appended.
    return np.where(points < ends[at], np.append(indexes, NO_STEP)[at], NO_STEP)


def _from_programs(devices: list[DeviceOps], remarks: Remarks) -> FoundSteps | None:
    dominant = dominant_program(devices)
    if dominant is None:
        return None
    starts = step_starts(devices, dominant, remarks.doubts)
    counts = sorted({len(own) for own in starts})
    if len(counts) > 1:
        remarks.notes.append(
            f"Devices ran {dominant.label} between {counts[0]} and {counts[-1]} times: steps are "
            "matched in order of execution."
        )
    step_of_op = [steps_from(device, own) for device, own in zip(devices, starts, strict=True)]
    members = Membership((None,) * counts[-1], step_of_op)
    return series_of(MODULE, dominant.name, devices, members, remarks)
