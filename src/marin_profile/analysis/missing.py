"""What a file shows to be missing from it: devices, the ops of some executions, its own end.

Contract
* Only what the file itself contradicts is said: a device plane under no device's name, a gap in the
  numbers of devices, a device with far fewer ops of a program that all of them run together, a few
  executions or steps with fewer ops than all others, ops of two names. The file may be damaged, or
  cut. Ops in loops and branches do not count: devices and executions may differ in them.
* Where work is surely lost, `is_cut` says that totals are lower bounds.
* How many devices there should be is told by the programs that ran, `devices_told`; whether fewer
  in the file mean a loss is decided over all hosts (see `assemble.coverage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps, HostDevices
from marin_profile.analysis.executions import Program
from marin_profile.analysis.op_facts import OpFacts
from marin_profile.analysis.op_names import no_text, two_names
from marin_profile.analysis.planes import (
    CPU,
    GPU,
    OPS_LINE,
    SPARSECORE,
    SPARSECORE_LINES,
    plane_kind,
)
from marin_profile.analysis.steps.series import Bools, StepSeries
from marin_profile.base.columns import distinct
from marin_profile.base.text import plural
from marin_profile.events.classify import GROUP_COMMUNICATION
from marin_profile.events.timeline import Int64s, Line, Plane

# A device with less than this share of its siblings' ops has lost some.
FEW = 0.5
LEAST_OPS = 10
# A device of so few ops, among siblings of so many, is none.
STRAY, LEAST_OPS_OF_A_DEVICE = 2, 20
# Executions (steps) between the first and the last: so many, of which so many are alike.
LEAST_EXECUTIONS = 5
ALIKE = 0.7
# So few partial overlaps among so many ops each are odd.
FEW_OVERLAPS, LEAST_OPS_AROUND = 2, 50
FEW_LACKING = 0.02
_PS_PER_SECOND = 1e12
_LISTED = 4


@dataclass(frozen=True)
class Missing:
    doubts: tuple[str, ...] = ()
    is_cut: bool = False
    devices_told: int = 0


def find_missing(found: HostDevices, steps: StepSeries) -> Missing:
    unnamed = list(_op_lines_of_no_device(found))
    few = list(_devices_with_few_ops(found))
    told = _devices_told(found)
    return Missing(
        doubts=(
            *unnamed,
            *_names(found),
            *_without_ordinals(found, told),
            *_few_without_numbers(found),
            *few,
            *_few_overlaps(found),
            *_short_executions(found),
            *_absent_from_steps(found, steps),
            *_jumps_in_numbers(steps),
            *two_names(found),
            *no_text(found),
        ),
        is_cut=bool(unnamed or few),
        devices_told=told,
    )


# --- devices -----------------------------------------------------------------------------------


def _op_lines_of_no_device(found: HostDevices) -> Iterator[str]:
    timeline = found.timeline
    for index, plane in enumerate(timeline.planes):
        if plane_kind(plane):
            continue
        lines = [
            line
            for line in timeline.lines
            if line.plane == index and line.count and _is_device_line(plane, line)
        ]
        if lines:
            events = plural(sum(line.count for line in lines), "event")
            yield (
                f"Plane {plane.name!r} has the line {lines[0].name!r} of a device, but not the "
                f"name of one: its {events} are left out, the file may be damaged."
            )


def _is_device_line(plane: Plane, line: Line) -> bool:
    if line.name.startswith((OPS_LINE, SPARSECORE_LINES[OPS_LINE])):
        return True
    return line.name.startswith("Stream #") and not plane.name.startswith("/host:")


def _names(found: HostDevices) -> Iterator[str]:
    """What is odd about the devices' names: some twice, some not there."""
    names = [device.name for device in found.devices if device.kind != SPARSECORE]
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{times} devices are called {name}: the file may be damaged."
    numbers: dict[str, set[int]] = {}
    for name in (*names, *found.empty_devices):
        kind, _, number = name.rpartition(":")
        if number.isdecimal() and len(number) < 19:
            numbers.setdefault(kind, set()).add(int(number))
    for kind, known in sorted(numbers.items()):
        gaps = [
            str(one + 1) if other == one + 2 else f"{one + 1} to {other - 1}"
            for one, other in pairwise(sorted(known))
            if other > one + 1
        ]
        if gaps:
            yield (
                f"Of the devices {kind}:{min(known)} to {max(known)} the file lacks "
                f"{', '.join(gaps[:_LISTED])}: unless they took no part, it may be damaged."
            )


def _without_ordinals(found: HostDevices, told: int) -> Iterator[str]:
    if [device.kind for device in found.devices] != [CPU] or told < 2:
        return
    device = found.devices[0]
    if not found.timeline.device_ordinal.find(device.rows)[0].any():
        yield (
            f"No op says which of the {told} devices it ran on: all are booked on {device.name}, "
            "the file may be damaged."
        )


def _few_without_numbers(found: HostDevices) -> Iterator[str]:
    """Ops of a CPU all tell their device and their execution, or none does."""
    rows = [device.rows for device in found.devices if device.kind == CPU]
    if not rows:
        return
    timeline, ops = found.timeline, np.sort(np.concatenate(rows))
    for column, what in (
        (timeline.device_ordinal, "which device they ran on"),
        (timeline.run_id, "which execution they are part of"),
    ):
        lacking = int((~column.find(ops)[0]).sum())
        if 0 < lacking <= FEW_LACKING * len(ops):
            do = "1 op of a CPU does" if lacking == 1 else f"{lacking:,} ops of a CPU do"
            yield f"{do} not say {what}, the others do: the file may be damaged there."


def _devices_told(found: HostDevices) -> int:
    """The most devices that a program which ran here names: in its collectives, or as those that it
    is compiled for."""
    told = 0
    for device in found.devices:
        for op in distinct(device.op, len(found.facts)).tolist():
            fact = found.facts[op]
            ends = [end for pair in fact.source_target_pairs for end in pair]
            told = max(
                told,
                sum(map(len, fact.replica_groups)),
                max(ends, default=-1) + 1,
                _compiled_for(found, fact),
            )
    return told


def _compiled_for(found: HostDevices, fact: OpFacts) -> int:
    return found.timeline.hlo_devices.get(fact.program_id, 0) if fact.program_id is not None else 0


def _devices_with_few_ops(found: HostDevices) -> Iterator[str]:
    for kind in sorted({device.kind for device in found.main}):
        devices = [device for device in found.main if device.kind == kind]
        if len(devices) < 2:
            continue
        counts = np.stack(
            [np.bincount(device.op, minlength=len(found.facts)) for device in devices]
        )
        programs = _shared_ops(found, np.flatnonzero(counts.sum(axis=0)).tolist())
        totals = counts.sum(axis=1)
        for index, device in enumerate(devices):
            usual = int(np.median(np.delete(totals, index)))
            if totals[index] <= STRAY and usual >= LEAST_OPS_OF_A_DEVICE:
                yield _few(device, int(totals[index]), "", usual)
                continue
            for module, ops in programs:
                own = counts[:, ops].sum(axis=1)
                others = np.delete(own, index)
                usual = int(np.median(others[others > 0])) if others.any() else 0
                if 0 < own[index] < FEW * usual and usual >= LEAST_OPS:
                    of_module = f" of {module}" if module else ""
                    which = f"{of_module} that devices run together"
                    yield _few(device, int(own[index]), which, usual)


def _shared_ops(found: HostDevices, used: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Module, and its ops that devices run together, once an execution: collectives, and all ops of
    a program that is compiled for several."""
    members: dict[Program, list[int]] = {}
    for op in used:
        fact = found.facts[op]
        together = fact.group == GROUP_COMMUNICATION or _compiled_for(found, fact) > 1
        if together and not fact.in_loop and not fact.in_branch:
            members.setdefault((fact.module, fact.program_id), []).append(op)
    return sorted((module, ops) for (module, _), ops in members.items())


def _few(device: DeviceOps, count: int, which: str, others: int) -> str:
    return (
        f"{device.name} shows {plural(count, 'op')}{which}, where devices beside it show "
        f"{others:,}: its events are lost, or those of others are booked on it; the file may be "
        "damaged."
    )


# --- ops of executions -------------------------------------------------------------------------


def _few_overlaps(found: HostDevices) -> Iterator[str]:
    """Ops that partly overlap the next one of their line, where no other op does. Kernels of a
    GPU's stream may."""
    devices = [device for device in found.devices if device.kind != GPU]
    count = sum(device.overlapping for device in devices)
    ops = sum(len(device.op) for device in devices)
    if 0 < count <= FEW_OVERLAPS and ops >= LEAST_OPS_AROUND * count:
        where = next(device.name for device in devices if device.overlapping)
        overlap = "overlaps" if count == 1 else "overlap"
        yield (
            f"{plural(count, 'op')} of {ops:,} partly {overlap} the next one of the same line (on "
            f"{where}), the others do not: times there may be damaged."
        )


def _short_executions(found: HostDevices) -> Iterator[str]:
    """Executions with fewer ops than nearly all others of their program on their device."""
    short: dict[str, list[tuple[float, str, int]]] = {}
    total: Counter[str] = Counter()
    for device in found.main:
        executions = device.executions
        if executions is None:
            continue
        counts = np.array([not fact.in_loop and not fact.in_branch for fact in found.facts])
        ops = device.execution[counts[device.op]]
        size = np.bincount(ops + 1, minlength=len(executions.key) + 1)[1:]
        for key in np.unique(executions.key).tolist():
            name = executions.modules[key][0]
            own = np.flatnonzero(executions.key == key)
            total[name] += len(own)
            inner = own[1:-1]
            usual, odd = _unusually_few(size[inner])
            for at in inner[odd].tolist():
                begin = float(executions.start[at]) / _PS_PER_SECOND
                short.setdefault(name, []).append((begin, device.name, usual - int(size[at])))
    for name, rows in sorted(short.items()):
        begin, device_name, _ = min(rows)
        ops = plural(sum(lacking for _, _, lacking in rows), "op")
        yield (
            f"{len(rows)} of {plural(total[name], 'execution')} of {name or 'a program'} "
            f"{'has' if len(rows) == 1 else 'have'} fewer ops than the others on their device "
            f"({ops} in all, the first on {device_name} at {begin:,.6f} s): events may be lost."
        )


def _unusually_few(size: Int64s) -> tuple[int, Bools]:
    """What nearly all have, and which have less: one, or some in a row, as a loss leaves them."""
    none = np.zeros(len(size), np.bool_)
    if len(size) < LEAST_EXECUTIONS:
        return 0, none
    values, times = np.unique(size, return_counts=True)
    usual = int(values[np.argmax(times)])
    odd = size < usual
    where = np.flatnonzero(odd)
    if times.max() < ALIKE * len(size) or not len(where):
        return usual, none
    in_a_row = where[-1] - where[0] + 1 == len(where)
    return usual, odd if in_a_row else none


def _absent_from_steps(found: HostDevices, steps: StepSeries) -> Iterator[str]:
    """Devices that take part in nearly every step, but not in one, or some in a row."""
    if not steps.linked or len(found.main) != len(steps.present):
        return
    for device, present in zip(found.main, steps.present, strict=True):
        _, odd = _unusually_few(present[1:-1].astype(np.int64))
        if odd.any():
            at = np.flatnonzero(odd) + 1
            numbers = [steps.numbers[i] if steps.numbers[i] is not None else i for i in at.tolist()]
            listed = ", ".join(map(str, numbers[:_LISTED])) + (" ..." if len(at) > _LISTED else "")
            yield (
                f"{device.name} shows no work in {plural(len(at), 'step')} ({listed}), other "
                "devices do: events may be lost."
            )


def _jumps_in_numbers(steps: StepSeries) -> Iterator[str]:
    """Step numbers that are not there, where nearly all follow one upon the other."""
    numbers = [number for number in steps.numbers if number is not None]
    if len(numbers) < LEAST_EXECUTIONS or steps.without_work:
        return
    jump = np.diff(np.array(numbers, np.int64))
    where = np.flatnonzero(jump > 1).tolist()
    if where and (jump == 1).mean() >= ALIKE:
        listed = ", ".join(f"{numbers[at]} to {numbers[at + 1]}" for at in where[:_LISTED])
        more = " ..." if len(where) > _LISTED else ""
        yield f"The step numbers jump from {listed}{more}: the steps between may be lost."
