"""Which program's executions are the steps, where no marker says so.

Contract
* A program is its id: two programs of one name are two. Files without ids go by name.
* The dominant program has the most op time over all devices; ties by name and id.
* Variants are one function compiled for several shapes: programs of one name with a part of the op
  time that counts, at least LEAST_OPS ops each, and at least LEAST_SHARED of the names of these in
  common. Where the programs, taken by id, follow no repeating sequence, variants are one program:
  in a loop that runs one or the other each of them is the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.executions import Executions, Program
from marin_profile.base.columns import sum_by, unique_pairs
from marin_profile.events.timeline import Int64s

# Programs with less of the op time are no part of a sequence.
MINOR = 0.01
LEAST_OPS = 4
LEAST_SHARED = 0.5
# What is seen fewer times does not repeat; longer sequences are not looked for.
LEAST_CYCLES = 3
LONGEST_CYCLE = 256
_LISTED = 3


@dataclass(frozen=True)
class Dominant:
    """The dominant program, or its variants, the one with the most op time first; `op_time` of all
    programs over all devices, ps, the largest first."""

    programs: tuple[Program, ...]
    op_time: dict[Program, int]

    @property
    def name(self) -> str:
        return self.programs[0][0]

    @property
    def label(self) -> str:
        return self.name if len(self.programs) > 1 else self.label_of(self.programs[0])

    @cached_property
    def lasting(self) -> list[Program]:
        """The programs with a part of the op time that counts."""
        return [program for program in self.op_time if self.share_of([program]) >= MINOR]

    @property
    def others(self) -> list[Program]:
        return [program for program in self.op_time if program not in self.programs]

    def share_of(self, programs: Sequence[Program]) -> float:
        """Of the op time of all programs."""
        return sum(self.op_time[program] for program in programs) / self._whole

    @cached_property
    def _whole(self) -> int:
        return sum(self.op_time.values())

    def label_of(self, program: Program) -> str:
        """The name, with the id where several programs have that name."""
        name, program_id = program
        is_shared = sum(1 for other, _ in self.op_time if other == name) > 1
        return f"{name}({program_id})" if is_shared else name

    def listed(self, programs: Sequence[Program]) -> str:
        """The first few with their shares."""
        named = [
            f"{self.label_of(program)} {100 * self.share_of([program]):.0f} %"
            for program in programs[:_LISTED]
        ]
        more = len(programs) - len(named)
        return ", ".join(named) + (f" and {more} more" if more else "")


def dominant_program(devices: Sequence[DeviceOps]) -> Dominant | None:
    """None where nothing is known of executions."""
    op_time = _op_time(devices)
    if not op_time:
        return None
    by_id = Dominant(tuple(op_time)[:1], op_time)
    names = [name for name, _ in by_id.lasting]
    if len(set(names)) == len(names) or _repeats_by_id(devices, by_id):
        return by_id
    grouped = [Dominant(programs, op_time) for programs in _variants(devices, by_id)]
    # Ties go to the group of the program that comes first.
    return max(grouped, key=lambda one: one.share_of(one.programs))


def _op_time(devices: Sequence[DeviceOps]) -> dict[Program, int]:
    totals: dict[Program, int] = {}
    for device in devices:
        if device.executions is None:
            continue
        inside = device.execution >= 0
        key = device.executions.key[device.execution[inside]]
        sums = sum_by(key, device.self_time[inside], len(device.executions.modules))
        for program, total in zip(device.executions.modules, sums.tolist(), strict=True):
            totals[program] = totals.get(program, 0) + total
    ordered = sorted(
        (program for program, total in totals.items() if total > 0),
        key=lambda program: (-totals[program], program[0], program[1] is not None, program[1]),
    )
    return {program: totals[program] for program in ordered}


def _repeats_by_id(devices: Sequence[DeviceOps], dominant: Dominant) -> bool:
    for device in devices:
        executions = device.executions
        if executions is not None:
            key = executions.key[executions_of(executions, dominant.lasting)]
            if len(key) and shortest_cycle(key) is None:
                return False
    return True


def _variants(devices: Sequence[DeviceOps], dominant: Dominant) -> list[tuple[Program, ...]]:
    """The lasting programs, those together that are variants of the first of their name."""
    ops = _op_names(devices, dominant.lasting)
    groups: list[list[Program]] = []
    for program in dominant.lasting:
        own = ops[program]
        for group in groups:
            first = ops[group[0]]
            is_alike = len(own & first) >= LEAST_SHARED * len(own | first)
            if group[0][0] == program[0] and min(len(own), len(first)) >= LEAST_OPS and is_alike:
                group.append(program)
                break
        else:
            groups.append([program])
    return [tuple(group) for group in groups]


def _op_names(devices: Sequence[DeviceOps], programs: Sequence[Program]) -> dict[Program, set[str]]:
    names: dict[Program, set[str]] = {program: set() for program in programs}
    for device in devices:
        if device.executions is None:
            continue
        inside = device.execution >= 0
        key = device.executions.key[device.execution[inside]]
        keys, ops, _ = unique_pairs(key, device.op[inside])
        for index, op in zip(keys.tolist(), ops.tolist(), strict=True):
            program = device.executions.modules[index]
            if program in names:
                names[program].add(device.timeline.ops[op].name)
    return names


def executions_of(executions: Executions | None, programs: Sequence[Program]) -> Int64s:
    """The executions of these programs, in order of their start."""
    if executions is None:
        return np.zeros(0, np.int64)
    keys = [i for i, program in enumerate(executions.modules) if program in programs]
    return np.flatnonzero(np.isin(executions.key, keys))


def shortest_cycle(key: Int64s) -> int | None:
    """The length of the shortest sequence that repeats over the whole of `key`."""
    for length in range(1, min(LONGEST_CYCLE, len(key) // LEAST_CYCLES) + 1):
        if (key[length:] == key[:-length]).all():
            return length
    return None
