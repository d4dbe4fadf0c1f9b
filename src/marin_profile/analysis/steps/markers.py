"""Steps named by host StepTraceAnnotations.

A host marker only names a step: it covers the dispatch, not the work; `ties` finds which work
is a marker's. Of several annotations the one with the most device work counts. Where no work can be
tied to markers, the dominant program's executions are the better source; where a file shows no
executions, the markers' starts are the boundaries (only the period is known), if the markers last
about as long as the devices worked.
"""

from __future__ import annotations

import numpy as np

from marin_profile.analysis.clocks import ClockCheck, host_clock
from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.steps.annotations import Markers, find_markers
from marin_profile.analysis.steps.boundaries import (
    FoundSteps,
    Membership,
    Remarks,
    note_long_ops,
    series_of,
)
from marin_profile.analysis.steps.programs import dominant_program
from marin_profile.analysis.steps.series import ANNOTATION, StepSeries
from marin_profile.analysis.steps.ties import TiedWork, tied_work

# Of the time in which devices worked, how much untied markers must span to be its steps.
LEAST_SPAN = 0.5


def from_annotations(
    host: HostDevices, devices: list[DeviceOps], clock: ClockCheck | None, remarks: Remarks
) -> FoundSteps | None:
    found = find_markers(host.timeline)
    if not found:
        return None
    tied = tied_work(host, devices, found)
    if tied is None:
        return _without_ties(devices, found, remarks)
    markers = tied.markers
    clocks_agree = _clocks_agree(clock or host_clock(host), tied, remarks)
    _note_others(markers, found, remarks)
    members = Membership(
        numbers=tuple(markers.numbers.tolist()),
        step_of_op=tied.step_of_op,
        marker_start=markers.start if clocks_agree else None,
    )
    return series_of(ANNOTATION, markers.name, devices, members, remarks)


def _clocks_agree(clock: ClockCheck, tied: TiedWork, remarks: Remarks) -> bool:
    """Say where they do not: then no time of the host is compared with one of a device."""
    instead = "so step boundaries are the starts of the steps' first ops"
    if not clock.agrees:
        remarks.doubts.append(f"The clocks of host and device do not agree, {instead}.")
    elif tied.early:
        remarks.doubts.append(
            f"The clocks of host and device do not agree, or the step numbers are shifted: "
            f"executions, tied to the markers {tied.markers.name!r} by order alone, begin before "
            f"their markers, {instead}."
        )
    return clock.agrees and not tied.early


def _note_others(markers: Markers, found: list[Markers], remarks: Remarks) -> None:
    others = sorted(repr(other.name) for other in found if other.name != markers.name)
    if others:
        remarks.notes.append(
            f"Steps come from the annotation {markers.name!r}; also present: {', '.join(others)}."
        )
    if len(set(markers.numbers.tolist())) < markers.count:
        remarks.notes.append(f"The step numbers of {markers.name!r} restart within the capture.")


def _without_ties(
    devices: list[DeviceOps], found: list[Markers], remarks: Remarks
) -> FoundSteps | None:
    """Boundaries at the markers' starts, if there is nothing better."""
    remarks.notes += [
        f"The annotation {markers.name!r} occurs once and does not contain the devices' work (it "
        "was probably set while tracing, inside jit): it marks no steps."
        for markers in found
        if markers.is_lone
    ]
    found = [markers for markers in found if not markers.is_lone]
    if not found:
        return None
    if dominant_program(devices) is not None:
        remarks.doubts.append(
            f"The markers {found[0].name!r} cannot be tied to device work: executions are "
            "used as the steps instead."
        )
        return None
    return _unlinked(devices, found, remarks)


def _unlinked(
    devices: list[DeviceOps], found: list[Markers], remarks: Remarks
) -> FoundSteps | None:
    """Boundaries at the markers' starts, for the annotation with the most steps."""
    worked = max(int(device.event_end.max()) for device in devices) - min(
        int(device.event_start.min()) for device in devices
    )
    markers = found[0]
    span = int(markers.start[-1] - markers.start[0])
    if span + span // (markers.count - 1) < LEAST_SPAN * worked:
        remarks.doubts.append(
            f"The markers {markers.name!r} cannot be tied to device work and end long before it "
            "does: they are not used as steps."
        )
        return None
    _note_others(markers, found, remarks)
    remarks.doubts.insert(
        0,
        f"The markers {markers.name!r} cannot be tied to device work: step boundaries are the "
        "markers' starts, so only the period is known.",
    )
    start = np.stack([device.to_device_clock(markers.start) for device in devices])
    series = StepSeries(
        source=ANNOTATION,
        annotation=markers.name,
        linked=False,
        numbers=tuple(markers.numbers.tolist()),
        start=start,
        end=np.concatenate((start[:, 1:], start[:, -1:]), axis=1),
        boundary=start,
        present=np.ones(start.shape, np.bool_),
        cut=np.zeros(markers.count, np.bool_),
    )
    note_long_ops(series, None, devices, remarks)
    return FoundSteps(series)
