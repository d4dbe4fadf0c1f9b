"""When the steps began and ended on each device, which of them are cut, and what is odd about them.

Contract
* A step lasts from the first start to the last end of its ops. Its boundary is its first op's
  start, except where the device was idle before it, it has a marker, and the clocks of host and
  device agree: then the later of the marker's start and the end of the last op before, of any
  program.
  So idle time inside a marker is its step's, and idle time between markers is the step's before.
* A gap of ROUNDING or less does not count: event times are whole nanoseconds.
* The first step is cut if it lacks ops that every step between the first and the last has, and
  begins with an op with which none of those begins (the last: ends). It is also cut if each of
  at least two steps between ran more executions of a program. Two steps are held to each other.
* A step without device work among steps with work is left out and named. Where most steps have
  none, and fewer than LEAST_STEPS_WITH_WORK have some, no step is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.steps.series import NO_STEP, Bools, LongOp, StepSeries
from marin_profile.base.columns import extent_by, is_sorted, run_starts
from marin_profile.base.text import plural
from marin_profile.base.times import PS_PER_NS
from marin_profile.events.timeline import Int64s

ROUNDING = PS_PER_NS
LEAST_STEPS_WITH_WORK = 3
_PS_PER_MS = 1_000_000_000
_LOW = np.iinfo(np.int64).min
_LISTED = 8
# Of a table of steps by ops that is in memory at once.
_MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class Membership:
    """numbers: of the n steps, None where the source has none. step_of_op: per device the step of
    each op, NO_STEP for none. marker_start: when the markers that name the steps start, event
    clock; None where none does, or where the clocks of host and devices do not agree."""

    numbers: tuple[int | None, ...]
    step_of_op: list[Int64s]
    marker_start: Int64s | None = None


@dataclass(frozen=True)
class FoundSteps:
    """A series, and per device the position in it of each op's step, NO_STEP for none; of a series
    that is not linked no op is known to be a step's, and there is nothing."""

    series: StepSeries
    step_of_op: tuple[Int64s, ...] = ()


@dataclass
class Remarks:
    """What people must know: doubts change the reading of the numbers, notes do not. without_work
    and long_op: see StepSeries."""

    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    without_work: int = 0
    long_op: LongOp | None = None


def series_of(
    source: str,
    annotation: str | None,
    devices: Sequence[DeviceOps],
    members: Membership,
    remarks: Remarks,
) -> FoundSteps | None:
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
    _note_steps_without_work(members.numbers, used, remarks)
    step_of_op = _positions(members.step_of_op, used)
    series = StepSeries(
        source=source,
        annotation=annotation,
        linked=True,
        numbers=tuple(members.numbers[index] for index in np.flatnonzero(used).tolist()),
        start=start[:, used],
        end=end[:, used],
        boundary=boundary[:, used],
        present=present[:, used],
        cut=_cut_steps(devices, step_of_op, int(used.sum()), remarks),
        too_few=_are_too_few(used),
    )
    note_long_ops(series, members.marker_start, devices, remarks)
    return FoundSteps(series, step_of_op)


def _positions(step_of_op: Sequence[Int64s], used: Bools) -> tuple[Int64s, ...]:
    """Of each op's step among those that are used."""
    if used.all():
        return tuple(step_of_op)
    position = np.append(np.cumsum(used) - 1, NO_STEP)
    return tuple(position[step] for step in step_of_op)


def _boundaries(device: DeviceOps, start: Int64s, present: Bools, marker_start: Int64s) -> Int64s:
    """(n,) of one device whose steps' first ops start at `start`."""
    first = np.searchsorted(device.start, start, side="left")
    # The op's own two times say by how much its clock differs from the markers'.
    shift = device.start[first] - device.timeline.start[device.rows[first]]
    marker = np.minimum(marker_start + shift, start)
    before = np.append(np.maximum.accumulate(device.end), _LOW)[first - 1]
    is_idle = present & (np.maximum(marker, before) < start - ROUNDING)
    return np.where(is_idle, np.maximum(marker, before), start)


def _note_steps_without_work(
    numbers: tuple[int | None, ...], used: Bools, remarks: Remarks
) -> None:
    idle = np.flatnonzero(~used).tolist()
    if not idle:
        return
    remarks.without_work = len(idle)
    named = [str(index if numbers[index] is None else numbers[index]) for index in idle[:_LISTED]]
    more = f" and {len(idle) - _LISTED} more" if len(idle) > _LISTED else ""
    if _are_too_few(used):
        remarks.doubts.append(
            f"Only {len(used) - len(idle)} of {len(used)} steps have device work in the capture: "
            "they do not represent the others, so no step is kept."
        )
    else:
        remarks.doubts.append(
            f"{len(idle)} of {len(used)} steps have no device work in the capture and are left "
            f"out: {', '.join(named)}{more}."
        )


def _are_too_few(used: Bools) -> bool:
    count = int(used.sum())
    return count < LEAST_STEPS_WITH_WORK and 2 * count < len(used)


# --- cut steps ---------------------------------------------------------------------------------


def _cut_steps(
    devices: Sequence[DeviceOps], step_of_op: Sequence[Int64s], count: int, remarks: Remarks
) -> Bools:
    cut = np.zeros(count, np.bool_)
    for device, step in zip(devices, step_of_op, strict=True):
        cut[[0, -1]] |= _cut_edges(device, step, count)
    for edge, where, what in ((0, "first", "begins in"), (-1, "last", "ends in")):
        if cut[edge]:
            remarks.notes.append(
                f"The {where} step is cut: the capture {what} the middle of it. It is left out of "
                "all statistics and windows."
            )
    return cut


def _cut_edges(device: DeviceOps, step: Int64s, count: int) -> tuple[bool, bool]:
    """Whether the first and the last step of a device are cut. `step`: of each op."""
    first, last, steps_with, in_first, in_last = _ops_of_steps(
        _by_step(step), step, device.op, count, int(device.op.max()) + 1
    )
    if count == 2:
        # Each is held to the other.
        return (
            bool((in_last & ~in_first).any()) and first[0] != first[1],
            bool((in_first & ~in_last).any()) and last[1] != last[0],
        )
    in_all = steps_with == count - 2
    lacks = _lack_executions(device, step, count) if count > 3 else (False, False)
    return (
        lacks[0] or (bool((in_all & ~in_first).any()) and first[0] not in first[1:-1]),
        lacks[1] or (bool((in_all & ~in_last).any()) and last[-1] not in last[1:-1]),
    )


def _by_step(step: Int64s) -> Int64s:
    """The ops that belong to steps, step by step, in order of time in each."""
    rows = np.flatnonzero(step >= 0)
    own = step[rows]
    return rows if is_sorted(own) else rows[np.argsort(own, kind="stable")]


def _ops_of_steps(
    rows: Int64s, step: Int64s, op: Int64s, count: int, ops: int
) -> tuple[Int64s, Int64s, Int64s, Bools, Bools]:
    """Of each step the first and the last op (`ops`: none); of each op in how many of the steps
    between the first and the last it is, and whether it is in those. `rows`: step by step."""
    own, what = step[rows], op[rows]
    first, last = np.full(count, ops, np.int64), np.full(count, ops, np.int64)
    begins = run_starts(own)
    first[own[begins]] = what[begins]
    last[own[begins]] = what[np.append(begins, len(own))[1:] - 1]
    steps_with = np.zeros(ops, np.int64)
    at_once = max(1, _MOST_CELLS // ops)
    for begin in range(1, count - 1, at_once):
        end = min(begin + at_once, count - 1)
        some = slice(*np.searchsorted(own, (begin, end)).tolist())
        has_op = np.zeros((end - begin, ops), np.bool_)
        has_op[own[some] - begin, what[some]] = True
        steps_with += has_op.sum(axis=0)
    in_first, in_last = np.zeros(ops, np.bool_), np.zeros(ops, np.bool_)
    in_first[what[own == 0]] = True
    if count > 1:
        in_last[what[own == count - 1]] = True
    return first, last, steps_with, in_first, in_last


def _lack_executions(device: DeviceOps, step: Int64s, count: int) -> tuple[bool, bool]:
    """Whether each step between ran more executions of some program than the first (the last)."""
    executions = device.executions
    if executions is None:
        return False, False
    size = len(executions.key)
    step_of = np.full(size, NO_STEP, np.int64)
    executed = device.execution >= 0
    step_of[device.execution[executed]] = step[executed]
    inside = step_of >= 0
    programs = len(executions.modules)
    cells = np.bincount(
        step_of[inside] * programs + executions.key[inside], minlength=count * programs
    ).reshape(count, programs)
    least = cells[1:-1].min(axis=0)
    return bool((cells[0] < least).any()), bool((cells[-1] < least).any())


# --- ops longer than a step --------------------------------------------------------------------


def note_long_ops(
    series: StepSeries, markers: Int64s | None, devices: Sequence[DeviceOps], remarks: Remarks
) -> None:
    """Name the longest op that outlasts a typical step. `markers` (their starts) serve where the
    series has no period: few of many steps have work."""
    period = series.period()
    known = period[~np.isnan(period)]
    if not len(known) and markers is not None:
        known = np.diff(markers)
    typical = int(np.median(known)) if len(known) else 0
    if not typical:
        return
    count = sum(int((device.self_time > typical).sum()) for device in devices)
    if not count:
        return
    device = max(devices, key=lambda one: int(one.self_time.max()))
    row = int(np.argmax(device.self_time))
    time, name = int(device.self_time[row]), device.timeline.ops[int(device.op[row])].name
    remarks.long_op = LongOp(name, device.name, time, time // typical)
    others = f" (the longest of {count} such ops)" if count > 1 else ""
    remarks.doubts.append(
        f"{name} on {device.name} runs for {time / _PS_PER_MS:,.2f} ms{others}, longer than "
        f"{plural(time // typical, 'typical step')} of {typical / _PS_PER_MS:,.2f} ms."
    )
