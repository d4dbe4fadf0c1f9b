"""Where in a trace JSON a step or an op is, on the clock that Perfetto shows.

Contract: times are the file's own (`ts`, the event clock), read from the very file that Perfetto
opens. Lengths on a device's own clock, which the summary uses and by which an execution is the
longest, may differ from what is seen there.
Steps and ops are those that the file alone shows; it lacks what an xplane.pb tells beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.devices import find_devices
from marin_profile.analysis.steps.boundaries import FoundSteps
from marin_profile.analysis.steps.find import find_members
from marin_profile.analysis.steps.series import Bools
from marin_profile.base.errors import CannotAnswerError, NotFoundError, UsageError
from marin_profile.base.text import plural, visible
from marin_profile.base.times import PS_PER_NS
from marin_profile.capture.formats import TRACE_JSON
from marin_profile.capture.sources import Capture, HostFile, open_file
from marin_profile.events.timeline import Timeline
from marin_profile.readers import read_timeline

MOST_COMPARED = 10_000  # names, which take milliseconds each thousand


@dataclass(frozen=True)
class Place:
    """Nanoseconds of the trace, none of it cut off; `what` is there, in words."""

    start_ns: int
    end_ns: int
    what: str


def trace_file(capture: Capture, host: str | None = None) -> HostFile:
    """A host's trace JSON; of several hosts the first one's, unless one is named. Raises
    NotFoundError for a host that there is not, CannotAnswerError where the host has none."""
    hosts = [one for one in capture.hosts if host is None or one.host == host]
    if not hosts:
        known = ", ".join(visible(one.host) for one in capture.hosts)
        raise NotFoundError(f"The capture has no host {host!r}; its hosts are: {known}.")
    for file in (hosts[0], *hosts[0].fallbacks):
        if file.format == TRACE_JSON:
            return file
    raise CannotAnswerError(
        f"{hosts[0].name} has no trace JSON beside it, and Perfetto opens no xplane.pb: copy the "
        f"{visible(hosts[0].host)}.trace.json.gz that JAX wrote there too, or open the xplane.pb "
        "in XProf."
    )


def place_of(file: HostFile, *, step: int | None = None, op: str | None = None) -> Place:
    """Where a step is, on all devices of the host together, or the longest execution of an op (in
    that step). Raises BrokenInputError, or CannotAnswerError if it is not there."""
    if step is None and op is None:
        raise UsageError("Name a step or an op.")
    with open_file(file.path) as stream:
        timeline = read_timeline(stream, path=file.path, source_format=file.format)
    host = find_devices(timeline, file.host)
    if not host.devices:
        raise CannotAnswerError(f"{file.name} shows no device work, so no steps or ops.")
    within = [np.ones(len(device.op), np.bool_) for device in host.devices]
    if step is not None:
        within = list(_in_step(host, find_members(host), step))
    if op is not None:
        return _longest(host, within, op, step)
    starts, ends = zip(*_extents(host.devices, within), strict=True)
    devices = plural(len(starts), "device")
    return _place(timeline, min(starts), max(ends), f"step {step} on {devices}")


def _in_step(host: HostDevices, found: FoundSteps, step: int) -> Iterator[Bools]:
    """Per device which ops are the step's."""
    series = found.series
    names = [at if number is None else number for at, number in enumerate(series.numbers)]
    if not found.step_of_op:
        why = "their markers cannot be tied to device work" if names else "none was found"
        raise CannotAnswerError(f"The trace does not show where steps are: {why}.")
    if step not in names:
        raise CannotAnswerError(
            f"There is no step {step}; there are {plural(len(names), 'step')}, {names[0]} to "
            f"{names[-1]}."
        )
    position = names.index(step)
    members = dict(zip((device.name for device in host.main), found.step_of_op, strict=True))
    for device in host.devices:
        own = members.get(device.name)
        yield np.zeros(len(device.op), np.bool_) if own is None else own == position


def _extents(devices: Sequence[DeviceOps], within: Sequence[Bools]) -> Iterator[tuple[int, int]]:
    for device, chosen in zip(devices, within, strict=True):
        if chosen.any():
            yield int(device.event_start[chosen].min()), int(device.event_end[chosen].max())


def _longest(host: HostDevices, within: Sequence[Bools], op: str, step: int | None) -> Place:
    """By the device's own clock, as everywhere; the first of equals."""
    named = np.array([op in (fact.name, fact.hlo_op) for fact in host.facts], np.bool_)
    if not named.any():
        raise CannotAnswerError(f"There is no op {visible(op)!r} in the trace{_near(host, op)}.")
    count = 0
    best: tuple[int, int, DeviceOps] | None = None
    for device, chosen in zip(host.devices, within, strict=True):
        rows = np.flatnonzero(named[device.op] & chosen)
        count += len(rows)
        if not len(rows):
            continue
        lengths = (device.end - device.start)[rows]
        at = int(np.argmax(lengths))
        if best is None or lengths[at] > best[0]:
            best = int(lengths[at]), int(rows[at]), device
    inside = "" if step is None else f" in step {step}"
    if best is None:
        raise CannotAnswerError(f"{visible(op)} did not run{inside}.")
    _, row, device = best
    which = f"the longest of {count:,} executions" if count > 1 else "its one execution"
    what = f"{visible(op)} on {device.name}, {which}{inside}"
    start, end = int(device.event_start[row]), int(device.event_end[row])
    return _place(host.timeline, start, end, what)


def _near(host: HostDevices, op: str) -> str:
    names = sorted({fact.name for fact in host.facts if fact.has_hlo})
    if len(names) > MOST_COMPARED:
        return ""
    near = get_close_matches(op, names, n=3)
    return f"; did you mean {' or '.join(map(visible, near))}?" if near else ""


def _place(timeline: Timeline, start: int, end: int, what: str) -> Place:
    assert timeline.first_ts is not None
    first = (timeline.first_ts + start) // PS_PER_NS
    last = -((timeline.first_ts + end) // -PS_PER_NS)
    return Place(first, max(last, first + 1), what)
