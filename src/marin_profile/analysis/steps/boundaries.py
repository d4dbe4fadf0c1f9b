"""When the steps began and ended on each device, which of them are cut, and what is odd about them.

Contract
* A step lasts from the first start to the last end of its ops. Its boundary is its first op's
  start, except where the device was idle before it, it has a marker, and the clocks of host and
  device agree: then the later of the marker's start and the end of the last op before, of any
  program.
  So idle time inside a marker is its step's, and idle time between markers is the step's before.
* A gap of NOISE or less is none: event times are whole nanoseconds.
* The first step is cut if it lacks ops that every step between the first and the last has, and
  begins with an op with which none of those begins (the last: ends). So it is, too, if each of at
  least two steps between ran more executions of a program. Of two steps each is held to the other.
* A step without device work among steps with it is left out; its number is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.steps.series import Bools, StepSeries
from marin_profile.base.columns import counts_of, distinct, extent_by, unique_pairs
from marin_profile.base.text import plural
from marin_profile.base.times import PS_PER_NS
from marin_profile.events.timeline import Int64s

NOISE = PS_PER_NS
_PS_PER_MS = 1_000_000_000
_LOW = np.iinfo(np.int64).min
_LISTED = 8


@dataclass(frozen=True)
class Membership:
    """numbers: of the n steps, None where the source has none. step_of_op: per device the step of
    each op, -1 for none. marker_start: when the markers that name the steps start, event clock;
    None where none does, or where the clocks of host and devices do not agree."""

    numbers: tuple[int | None, ...]
    step_of_op: list[Int64s]
    marker_start: Int64s | None = None


@dataclass
class Remarks:
    """What people must know: doubts change the reading of the numbers, notes do not."""

    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def series_of(
    source: str,
    annotation: str | None,
    devices: Sequence[DeviceOps],
    members: Membership,
    remarks: Remarks,
) -> StepSeries | None:
    """None if no step has device work."""
    n = len(members.numbers)
    pairs = list(zip(devices, members.step_of_op, strict=True))
    extents = [extent_by(step, device.start, device.end, n) for device, step in pairs]
    start, end = (np.stack(columns) for columns in zip(*extents, strict=True))
    present = end > _LOW
    start, end = np.where(present, start, 0), np.where(present, end, 0)
    boundary = start
    if members.marker_start is not None:
        rows = zip(devices, start, present, strict=True)
        boundary = np.stack([_boundaries(*row, members.marker_start) for row in rows])
    used = np.asarray(present.any(axis=0))
    if not used.any():
        return None
    _tell_steps_without_work(members.numbers, used, remarks)
    series = StepSeries(
        source=source,
        annotation=annotation,
        linked=True,
        numbers=tuple(members.numbers[index] for index in np.flatnonzero(used).tolist()),
        start=start[:, used],
        end=end[:, used],
        boundary=boundary[:, used],
        present=present[:, used],
        cut=_cut_steps(pairs, used, remarks),
    )
    _tell_long_ops(series, devices, remarks)
    return series


def _boundaries(device: DeviceOps, start: Int64s, present: Bools, marker_start: Int64s) -> Int64s:
    """(n,) of one device whose steps' first ops start at `start`."""
    first = np.searchsorted(device.start, start, side="left")
    at = np.minimum(first, len(device.start) - 1)
    # The op's own two times say by how much its clock differs from the markers'.
    shift = device.start[at] - device.timeline.start[device.rows[at]]
    marker = np.minimum(marker_start + shift, start)
    busy_until = np.maximum.accumulate(device.end)
    before = np.where(first > 0, busy_until[np.maximum(first - 1, 0)], _LOW)
    is_idle = present & (np.maximum(marker, before) < start - NOISE)
    return np.where(is_idle, np.maximum(marker, before), start)


def _tell_steps_without_work(
    numbers: tuple[int | None, ...], used: Bools, remarks: Remarks
) -> None:
    idle = np.flatnonzero(~used).tolist()
    if not idle:
        return
    named = [str(index if numbers[index] is None else numbers[index]) for index in idle[:_LISTED]]
    more = f" and {len(idle) - _LISTED} more" if len(idle) > _LISTED else ""
    if 2 * len(idle) > len(used):
        remarks.doubts.append(
            f"Only {len(used) - len(idle)} of {len(used)} steps have device work in the capture: "
            "they do not speak for the others, which are left out."
        )
    else:
        remarks.doubts.append(
            f"{len(idle)} of {len(used)} steps have no device work in the capture and are left "
            f"out: {', '.join(named)}{more}."
        )


# --- cut steps ---------------------------------------------------------------------------------


def _cut_steps(pairs: list[tuple[DeviceOps, Int64s]], used: Bools, remarks: Remarks) -> Bools:
    count = int(used.sum())
    cut = np.zeros(count, np.bool_)
    if count < 2:
        return cut
    position = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    for device, step_of_op in pairs:
        cut[[0, -1]] |= _cut_edges(device, position[step_of_op], count)
    for edge, where, what in ((0, "first", "begins in"), (-1, "last", "ends in")):
        if cut[edge]:
            remarks.notes.append(
                f"The {where} step is cut: the capture {what} the middle of it. It is in no "
                "statistic and no window."
            )
    return cut


def _cut_edges(device: DeviceOps, step: Int64s, count: int) -> tuple[bool, bool]:
    """Whether the first and the last step of a device are cut. `step`: of each op, -1 for none."""
    rows = np.flatnonzero(step >= 0)
    if not len(rows):
        return False, False
    step, op = step[rows], device.op[rows]
    first = _first_ops(step, op, count)
    last = _first_ops(step[::-1], op[::-1], count)
    edges = (0, count - 1)
    between = [np.arange(1, count - 1)] * 2 if count > 2 else [np.array([1]), np.array([0])]
    lacks_ops = _lacks(_counts(step, op, count) > 0, edges, between)
    lacks_executions = [False, False]
    if count >= 4 and device.executions is not None:
        lacks_executions = _lacks(_executions(device, rows, step, count), edges, between)
    return (
        lacks_executions[0] or (lacks_ops[0] and first[0] not in first[between[0]]),
        lacks_executions[1] or (lacks_ops[1] and last[-1] not in last[between[1]]),
    )


def _first_ops(step: Int64s, op: Int64s, count: int) -> Int64s:
    """The first op of each step; -1 where it has none."""
    found = np.full(count, -1, np.int64)
    found[step[::-1]] = op[::-1]
    return found


def _counts(step: Int64s, what: Int64s, count: int) -> NDArray[np.int64]:
    """(steps, distinct values of `what`) how often each step has each."""
    kinds = distinct(what, int(what.max()) + 1)
    rank = np.empty(int(kinds[-1]) + 1, np.int64)
    rank[kinds] = np.arange(len(kinds))
    cells: NDArray[np.int64] = counts_of(step * len(kinds) + rank[what], count * len(kinds))
    return cells.reshape(count, len(kinds))


def _executions(device: DeviceOps, rows: Int64s, step: Int64s, count: int) -> NDArray[np.int64]:
    """(steps, programs) how often each step executed each."""
    executions = device.executions
    assert executions is not None
    execution = device.execution[rows]
    inside = execution >= 0
    steps, distinct_executions, _ = unique_pairs(step[inside], execution[inside])
    if not len(steps):
        return np.zeros((count, 0), np.int64)
    return _counts(steps, executions.key[distinct_executions], count)


def _lacks(
    counts: NDArray[np.generic], edges: tuple[int, int], between: list[Int64s]
) -> list[bool]:
    """For each edge whether it has fewer of something than every step between."""
    return [
        bool((counts[edge] < counts[others].min(axis=0)).any())
        for edge, others in zip(edges, between, strict=True)
    ]


# --- ops longer than a step --------------------------------------------------------------------


def _tell_long_ops(series: StepSeries, devices: Sequence[DeviceOps], remarks: Remarks) -> None:
    period = series.period()
    known = period[~np.isnan(period)]
    typical = int(np.median(known)) if len(known) else 0
    if not typical:
        return
    longest: tuple[int, str, str] | None = None
    count = 0
    for device in devices:
        long = np.flatnonzero(device.self_time > typical)
        count += len(long)
        for row in long.tolist():
            name = device.timeline.ops[int(device.op[row])].name
            found = (int(device.self_time[row]), name, device.name)
            longest = max(longest or found, found)
    if longest is None:
        return
    time, name, device_name = longest
    others = f" (the longest of {count} such ops)" if count > 1 else ""
    remarks.doubts.append(
        f"{name} on {device_name} runs {time / _PS_PER_MS:,.2f} ms{others}, longer than "
        f"{plural(time // typical, 'typical step')} of {typical / _PS_PER_MS:,.2f} ms."
    )
