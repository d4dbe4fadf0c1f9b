"""The steps of a capture from the steps of its hosts.

Contract: steps meet by step number where every host has them, else by position. Duration and
period are medians over all devices. Processes of one machine share its clock: the critical path is
from the earliest start to the latest end over all their devices. Clocks of different machines are
not compared: of several the longest path counts. The mean period of a device is the time of
its whole periods divided by their number, that of the capture the median over all devices. Times
are picoseconds (medians may be halves).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.host import HostPart
from marin_profile.analysis.steps.outliers import Cause
from marin_profile.analysis.steps.series import NONE, Bools, LongOp, SharedSteps, known_medians
from marin_profile.base.times import PS_PER_NS
from marin_profile.events.timeline import Int64s

_HIGH = np.iinfo(np.int64).max
_LOW = np.iinfo(np.int64).min
# Values of steps and devices that are looked at together.
_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class MergedStep:
    """terms: ledger terms summed over all devices ("window" included); empty if not linked. cause:
    why the step is slow, where a host has looked into it."""

    number: int | None
    start: int
    duration: float | None
    critical_path: int | None
    period: float | None
    boundary: int
    kept: bool
    cut: bool
    terms: dict[str, int]
    cause: Cause | None = None


@dataclass(frozen=True)
class MergedSteps:
    """without_work, long_op: see StepSeries; the most and the longest of any host. mean_period:
    over `whole_periods` periods, with steps missing from the capture counted; None where no
    boundary follows the first kept step's."""

    source: str
    annotation: str | None
    linked: bool
    warmup_ignored: int
    steps: tuple[MergedStep, ...]
    notes: tuple[str, ...]
    mean_period: float | None = None
    whole_periods: int = 0
    without_work: int = 0
    long_op: LongOp | None = None


def shared_steps(parts: Sequence[HostPart]) -> list[SharedSteps | None]:
    """For each host the steps that all hosts with steps have; None where that is all of its steps,
    with the same ones cut, or it has none. What is cut at the edge of one host's steps is cut."""
    with_steps = [part for part in parts if part.steps.count]
    keys = {part.host: own for part, own in zip(with_steps, _keys(with_steps), strict=True)}
    shared = _in_all(list(keys.values()))
    cut = {
        key
        for part in with_steps
        for key, is_cut in zip(keys[part.host], part.steps.cut.tolist(), strict=True)
        if is_cut and key in shared
    }
    selections: list[SharedSteps | None] = []
    for part in parts:
        own = keys.get(part.host, [])
        chosen = tuple(position for position, key in enumerate(own) if key in shared)
        selection = SharedSteps(chosen, tuple(own[position] in cut for position in chosen))
        is_whole = selection.cut == tuple(part.steps.cut.tolist())
        selections.append(None if is_whole else selection)
    return selections


def _in_all(keys: Sequence[Sequence[int]]) -> set[int]:
    return set(keys[0]).intersection(*keys[1:]) if keys else set()


def merge_steps(parts: Sequence[HostPart]) -> MergedSteps:
    with_steps = [part for part in parts if part.steps.count]
    if not with_steps:
        return MergedSteps(NONE, None, False, 0, (), ())
    notes = [
        f"Host {part.host} has no steps: figures cover the whole capture."
        for part in parts
        if part.devices and not part.steps.count
    ]
    first = with_steps[0]
    if len({part.steps.source for part in with_steps}) > 1:
        notes.append("Hosts name their steps in different ways: steps are matched by position.")
    keys = _keys(with_steps)
    shared = _in_all(keys)
    if any(set(key) != shared for key in keys):
        notes.append(
            f"Hosts have different steps: only the {len(shared)} that all of them have are used."
        )
    linked = all(part.steps.linked for part in with_steps)
    chosen: list[Sequence[int]] = [
        [own.index(key) for key in keys[0] if key in shared]
        if set(own) != shared or own != keys[0]
        else range(part.steps.count)
        for part, own in zip(with_steps, keys, strict=True)
    ]
    columns = [_columns(part, at) for part, at in zip(with_steps, chosen, strict=True)]
    clocks = _clocks(with_steps, columns)
    notes += _without_a_common_clock(with_steps, clocks)
    path = _critical_path(with_steps, columns, clocks)
    steps = _merge_columns(columns, path, linked)
    kept = [step.kept for step in steps]
    mean, periods = _mean_period(with_steps, chosen, kept)
    return MergedSteps(
        source=first.steps.source,
        annotation=first.steps.annotation,
        linked=linked,
        warmup_ignored=sum(not step.kept and not step.cut for step in steps) if any(kept) else 0,
        steps=tuple(steps),
        notes=tuple(notes),
        mean_period=mean,
        whole_periods=periods,
        without_work=max(part.steps.without_work for part in with_steps),
        long_op=max(
            (part.steps.long_op for part in with_steps if part.steps.long_op),
            key=lambda op: (op.time, op.name),
            default=None,
        ),
    )


def _mean_period(
    parts: Sequence[HostPart], chosen: Sequence[Sequence[int]], kept: Sequence[bool]
) -> tuple[float | None, int]:
    """Over the whole periods of the kept steps: the median of the devices' means, and how many
    periods they are."""
    means: list[float] = []
    counts: list[int] = []
    if True in kept[:-1]:
        first = kept.index(True)
        for part, positions in zip(parts, chosen, strict=True):
            cut = tuple(part.steps.cut[list(positions)].tolist())
            windows, count = part.steps.only(SharedSteps(tuple(positions), cut)).periods(first)
            if windows:
                means += [(end - start) / count for start, end in windows]
                counts.append(count)
    return float(np.median(means)) if means else None, min(counts, default=0)


def _keys(parts: Sequence[HostPart]) -> list[Sequence[int]]:
    """What the steps of each host meet by."""
    numbers = [[number for number in part.steps.numbers if number is not None] for part in parts]
    is_numbered = len({part.steps.source for part in parts}) == 1 and all(
        len(own) == len(set(own)) == part.steps.count
        for own, part in zip(numbers, parts, strict=True)
    )
    if is_numbered:
        return list[Sequence[int]](numbers)
    return [range(part.steps.count) for part in parts]


@dataclass(frozen=True)
class _Columns:
    """The chosen steps of one host; (devices, steps) arrays are NaN where a device took no part.
    begin, end: of the host's devices together, event clock. causes: of slow steps, by their place
    here."""

    numbers: Sequence[int | None]
    start: Int64s
    duration: NDArray[np.float64]
    period: NDArray[np.float64]
    path: Int64s
    begin: Int64s
    end: Int64s
    boundary: Int64s
    kept: Bools
    cut: Bools
    terms: dict[str, Int64s]
    causes: Mapping[int, Cause]


def _columns(part: HostPart, positions: Sequence[int]) -> _Columns:
    series = part.steps
    is_all = positions == range(series.count)
    at = slice(None) if is_all else np.array(positions, np.int64)
    present, start, end = series.present[:, at], series.start[:, at], series.end[:, at]
    begin = part.step_begin[:, at]
    boundary = np.where(present, series.boundary[:, at], _HIGH).min(axis=0)
    kept = np.zeros(series.count, np.bool_)
    kept[part.first_kept : series.whole.stop] = True
    first = np.where(present, start, _HIGH).min(axis=0)
    return _Columns(
        numbers=series.numbers if is_all else [series.numbers[one] for one in positions],
        start=first - part.first_op,
        duration=np.where(present, end - start, np.nan),
        period=series.period()[:, at],
        path=np.where(present, end, _LOW).max(axis=0) - first,
        begin=np.where(present, begin, _HIGH).min(axis=0),
        end=np.where(present, begin + (end - start), _LOW).max(axis=0),
        boundary=boundary - part.first_op,
        kept=kept[at],
        cut=series.cut[at],
        terms={name: values[at] for name, values in part.step_terms.items()},
        causes={
            place: part.slow_steps[position]
            for place, position in enumerate(positions)
            if position in part.slow_steps
        },
    )


def _clocks(parts: Sequence[HostPart], columns: Sequence[_Columns]) -> list[int]:
    """For each part the first one that is on the same clock: a process of the same machine, where
    both files state when they began, no device contradicts its host, and steps of one position are
    not a step apart."""
    clocks: list[int] = []
    for index, part in enumerate(parts):
        same = (
            earlier
            for earlier in range(index)
            if _share_a_clock(parts[earlier], part)
            and _meet(columns[earlier], columns[index], _between(parts[earlier], part))
        )
        clocks.append(next(same, index))
    return clocks


def _without_a_common_clock(parts: Sequence[HostPart], clocks: Sequence[int]) -> list[str]:
    notes = []
    for machine in sorted({part.machine for part in parts}):
        members = [at for at, part in enumerate(parts) if part.machine == machine]
        if len({clocks[at] for at in members}) > 1:
            silent = any(parts[at].origin is None for at in members)
            hint = " Only an xplane.pb states when it began: summarize that." if silent else ""
            notes.append(
                f"The processes of {machine} have no clock that is known to be common: the "
                f"critical path is the longest of any one process.{hint}"
            )
    return notes


def _share_a_clock(one: HostPart, two: HostPart) -> bool:
    return one.machine == two.machine and all(
        part.origin is not None and part.clock.agrees for part in (one, two)
    )


def _meet(one: _Columns, two: _Columns, shift: int) -> bool:
    """Whether steps without numbers are the same ones: they begin less than a period apart."""
    if None not in one.numbers or len(one.begin) < 2:
        return True
    apart = abs(float(np.median(two.begin + shift - one.begin)))
    return apart < float(np.median(np.diff(one.begin)))


def _between(one: HostPart, two: HostPart) -> int:
    """From the one's first event to the other's, in ps; 0 where the files do not show it."""
    if one.origin is None or two.origin is None:
        return 0
    nanoseconds, picoseconds = np.subtract(two.origin, one.origin).tolist()
    return int(nanoseconds * PS_PER_NS + picoseconds)


def _critical_path(
    parts: Sequence[HostPart], columns: Sequence[_Columns], clocks: Sequence[int]
) -> list[int]:
    paths = []
    for clock in sorted(set(clocks)):
        members = [index for index, own in enumerate(clocks) if own == clock]
        if len(members) == 1:
            paths.append(columns[clock].path)
            continue
        shifts = [_between(parts[clock], parts[index]) for index in members]
        begin = [columns[at].begin + shift for at, shift in zip(members, shifts, strict=True)]
        end = [columns[at].end + shift for at, shift in zip(members, shifts, strict=True)]
        paths.append(np.max(end, axis=0) - np.min(begin, axis=0))
    longest: list[int] = np.max(paths, axis=0).tolist()
    return longest


def _merge_columns(
    columns: Sequence[_Columns], path: Sequence[int], linked: bool
) -> list[MergedStep]:
    duration = _medians([one.duration for one in columns])
    period = _medians([one.period for one in columns])
    terms = _summed_terms(columns)
    kept = np.all([one.kept for one in columns], axis=0).tolist()
    cut = np.any([one.cut for one in columns], axis=0).tolist()
    slow = {index for one in columns for index in one.causes}
    causes = {index: _surest([one.causes.get(index) for one in columns]) for index in slow}
    first = columns[0]
    start, boundary = first.start.tolist(), first.boundary.tolist()
    return [
        MergedStep(
            number=number,
            start=start[index],
            duration=duration[index] if linked else None,
            critical_path=path[index] if linked else None,
            period=period[index],
            boundary=boundary[index],
            kept=kept[index],
            cut=cut[index],
            terms={name: values[index] for name, values in terms.items()},
            cause=causes.get(index),
        )
        for index, number in enumerate(first.numbers)
    ]


def _medians(of_hosts: Sequence[NDArray[np.float64]]) -> list[float | None]:
    """Of each step over all devices; some steps at a time, since of many hosts each takes room."""
    steps = of_hosts[0].shape[1]
    at_once = max(1, _AT_ONCE // sum(len(values) for values in of_hosts))
    return [
        median
        for first in range(0, steps, at_once)
        for median in known_medians(
            np.concatenate([values[:, first : first + at_once] for values in of_hosts])
        )
    ]


def _summed_terms(columns: Sequence[_Columns]) -> dict[str, list[int]]:
    """Ledger terms per step, summed over the hosts that have them."""
    names = sorted({name for one in columns for name in one.terms})
    return {
        name: np.sum([one.terms[name] for one in columns if name in one.terms], axis=0).tolist()
        for name in names
    }


def _surest(causes: Sequence[Cause | None]) -> Cause | None:
    """Of the hosts' causes that of the host which waited least for others; ties: the first."""
    known = [cause for cause in causes if cause is not None]
    return min(known, key=lambda cause: cause.communication, default=None)
