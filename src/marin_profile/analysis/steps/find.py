"""The steps of one host: which source names them and when each ran on each device.

Sources, in this order: the device's "Steps" line; host StepTraceAnnotations (see `markers`);
executions of the dominant module (most device time, program hash stripped); none.
"""

from __future__ import annotations

import re

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.planes import SPARSECORE
from marin_profile.analysis.steps.markers import from_annotations
from marin_profile.analysis.steps.series import (
    DEVICE_STEPS,
    MODULE,
    NONE,
    StepSeries,
    containing,
    dominant_module,
    executions_of,
    series_of,
    steps_of_executions,
)
from marin_profile.events.timeline import Timeline

_STEP_NUMBER = re.compile(r"-?[0-9]+")


def find_steps(host: HostDevices) -> StepSeries:
    devices = [device for device in host.devices if device.kind != SPARSECORE]
    if not devices:
        return _no_steps(())
    notes: list[str] = []
    return (
        _from_steps_line(host.timeline, devices)
        or from_annotations(host, devices, notes)
        or _from_modules(devices, notes)
        or _no_steps(tuple(notes))
    )


def _no_steps(notes: tuple[str, ...]) -> StepSeries:
    nothing = np.zeros((0, 0), np.int64)
    return StepSeries(NONE, None, False, (), nothing, nothing, nothing.astype(np.bool_), notes)


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
        step_of_op.append(containing(device.event_start, bounds))
    return series_of(DEVICE_STEPS, None, list(ordered), devices, step_of_op, [])


def _from_modules(devices: list[DeviceOps], notes: list[str]) -> StepSeries | None:
    dominant = dominant_module(devices)
    if dominant is None:
        return None
    members = [executions_of(device, dominant) for device in devices]
    counts = sorted({len(member) for member in members})
    if len(counts) > 1:
        notes.append(
            f"Devices ran {dominant} between {counts[0]} and {counts[-1]} times: steps are matched "
            "in order of execution."
        )
    step_of_op = [
        steps_of_executions(device, member) for device, member in zip(devices, members, strict=True)
    ]
    return series_of(MODULE, dominant, [None] * counts[-1], devices, step_of_op, notes)
