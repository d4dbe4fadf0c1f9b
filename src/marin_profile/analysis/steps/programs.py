"""Which executions of programs are the steps, where no marker says so.

Contract
* A program is its id: two programs of one name are two. Files without ids go by name.
* The dominant program has the most op time. Its executions start the steps, and all work between
  two such starts belongs to the step; the last one has what every other has. Where the program runs
  several times in the shortest sequence of programs that repeats over the whole capture
  (micro-batches), that sequence is one step, and begins where a run of the dominant program begins.
  Programs with less than MINOR of the op time are no part of a sequence, and what is seen fewer
  than LEAST_CYCLES times does not repeat.
* What is in doubt is said: a dominant program with less than half of the op time, programs without
  a repeating sequence, others of the same name, executions of one name that differ in their ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.executions import Executions, Program
from marin_profile.base.columns import sum_by, unique_pairs
from marin_profile.events.timeline import Int64s

MINOR = 0.01
LEAST_CYCLES = 3
LONGEST_CYCLE = 256
_LISTED = 3


@dataclass(frozen=True)
class Dominant:
    """The dominant program; `op_time` of all programs over all devices, ps, the largest first."""

    program: Program
    op_time: dict[Program, int]

    @property
    def share(self) -> float:
        return self._share(self.program)

    @property
    def label(self) -> str:
        return label(self.program, self.op_time)

    @property
    def lasting(self) -> list[Program]:
        """The programs with a part of the op time that counts."""
        return [program for program in self.op_time if self._share(program) >= MINOR]

    def _share(self, program: Program) -> float:
        return self.op_time[program] / sum(self.op_time.values())

    def listed(self, programs: Sequence[Program]) -> str:
        """The first few with their shares."""
        named = [
            f"{label(program, self.op_time)} {100 * self._share(program):.0f} %"
            for program in programs[:_LISTED]
        ]
        more = len(programs) - len(named)
        return ", ".join(named) + (f" and {more} more" if more else "")


def label(program: Program, known: dict[Program, int]) -> str:
    """The name, with the id where several programs have that name."""
    name, program_id = program
    shared = sum(1 for other, _ in known if other == name) > 1
    return f"{name}({program_id})" if shared else name


def dominant_program(devices: Sequence[DeviceOps]) -> Dominant | None:
    """Of all devices; ties by name and id. None where nothing is known of executions."""
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
        key=lambda program: (-totals[program], program[0], program[1] or 0),
    )
    if not ordered:
        return None
    return Dominant(ordered[0], {program: totals[program] for program in ordered})


def executions_of(executions: Executions | None, programs: Sequence[Program]) -> Int64s:
    """The executions of these programs, in order of their start."""
    if executions is None:
        return np.zeros(0, np.int64)
    keys = [i for i, program in enumerate(executions.modules) if program in programs]
    return np.flatnonzero(np.isin(executions.key, keys))


def steps_from(device: DeviceOps, starts: Int64s) -> Int64s:
    """For each op its step, where the executions `starts` begin the steps and all work up to the
    next one belongs to them; -1 before the first. Nothing ends the last step: it has what every
    step before it has (the first apart, which may be cut)."""
    executions = device.executions
    if executions is None or not len(starts):
        return np.full(len(device.op), -1, np.int64)
    step_of: Int64s = np.searchsorted(starts, np.arange(len(executions.key)), side="right") - 1
    last = _last_step(executions.key, step_of, len(starts))
    step_of[starts[-1] :] = -1
    step_of[last] = len(starts) - 1
    step: Int64s = np.append(step_of, -1)[device.execution]
    outside = np.flatnonzero(device.execution < 0)
    if len(outside):
        at = device.timeline.start[device.rows[outside]]
        own = np.searchsorted(executions.start[starts], at, side="right") - 1
        step[outside] = np.where(at < executions.end[last].max(), own, -1)
    return step


def _last_step(key: Int64s, step_of: Int64s, count: int) -> Int64s:
    """The executions of the last step: of each program as many as every step before it has."""
    programs = int(key.max()) + 1
    inside = step_of >= 0
    cells = np.bincount(step_of[inside] * programs + key[inside], minlength=count * programs)
    before = cells.reshape(count, programs)[1 if count > 2 else 0 : count - 1]
    allowed = before.min(axis=0) if len(before) else np.zeros(programs, np.int64)
    tail = np.flatnonzero(step_of == count - 1)
    kept = tail[:1].tolist()
    allowed[key[tail[0]]] -= 1
    for execution in tail[1:].tolist():
        if allowed[key[execution]] > 0:
            kept.append(execution)
        allowed[key[execution]] -= 1
    return np.array(kept, np.int64)


def step_starts(
    devices: Sequence[DeviceOps], dominant: Dominant, doubts: list[str]
) -> list[Int64s]:
    """Per device the executions that begin a step, in order."""
    own = [executions_of(device.executions, [dominant.program]) for device in devices]
    _doubt_shares(dominant, doubts)
    others = [program for program in dominant.lasting if program != dominant.program]
    if not others:
        return own
    found = [
        _cycle_starts(device.executions, dominant)
        for device, members in zip(devices, own, strict=True)
        if device.executions is not None and len(members)
    ]
    sequences = {None if one is None else one[0] for one in found}
    if None in sequences or len(sequences) > 1:
        doubts.append(
            f"Programs follow no repeating sequence: each execution of {dominant.label} counts as "
            f"a step, and what runs between ({dominant.listed(others)} of the op time) belongs to "
            "the step before; step markers would tell."
        )
        return own
    cycle = next(iter(sequences)) or ()
    if cycle.count(dominant.program) == 1:
        return own
    doubts.append(
        f"A step is taken to be the shortest repeating sequence of programs: "
        f"{_described(cycle, dominant)}; step markers would tell for sure."
    )
    starts = iter([one[1] for one in found if one is not None])
    return [next(starts) if len(members) else members for members in own]


def _doubt_shares(dominant: Dominant, doubts: list[str]) -> None:
    others = [program for program in dominant.op_time if program != dominant.program]
    if 2 * dominant.op_time[dominant.program] < sum(dominant.op_time.values()):
        doubts.append(
            f"{dominant.label}, whose executions are the steps, has {100 * dominant.share:.0f} % "
            f"of the op time; the others have {dominant.listed(others)}."
        )
    same = [program for program in others if program[0] == dominant.program[0]]
    if same:
        doubts.append(
            f"{len(same) + 1} programs are called {dominant.program[0]}: the steps are the "
            f"executions of {dominant.label}, and those of the others "
            f"({dominant.listed(same)} of the op time) belong to the step before."
        )


def doubt_names(devices: Sequence[DeviceOps], dominant: Dominant, doubts: list[str]) -> None:
    """Say which programs without an id executed different ops under one name."""
    for program in dominant.lasting:
        if program[1] is None and any(_ops_differ(device, program) for device in devices):
            doubts.append(
                f"Executions of {program[0]} differ in their ops, and the file has no program ids: "
                "two programs may go by this name, so that a step may be several of its executions."
            )


def _ops_differ(device: DeviceOps, program: Program) -> bool:
    """Whether two executions, the first and the last of the capture apart, ran different ops."""
    members = executions_of(device.executions, [program])[1:-1]
    if len(members) < 2:
        return False
    rank = np.full(int(device.execution.max()) + 2, -1, np.int64)
    rank[members] = np.arange(len(members))
    own = rank[device.execution]
    chosen = own >= 0
    executions, ops, _ = unique_pairs(own[chosen], device.op[chosen])
    sizes = np.bincount(executions, minlength=len(members))
    return bool((sizes < len(np.unique(ops))).any())


def _described(cycle: tuple[Program, ...], dominant: Dominant) -> str:
    return ", ".join(
        f"{cycle.count(program)} x {label(program, dominant.op_time)}"
        for program in dict.fromkeys(cycle)
    )


def _cycle_starts(
    executions: Executions, dominant: Dominant
) -> tuple[tuple[Program, ...], Int64s] | None:
    """The shortest repeating sequence, from the start of a run of the dominant program, and the
    executions that begin one. A part of one at the capture's start is a step too if the dominant
    program is in it."""
    members = executions_of(executions, dominant.lasting)
    key = executions.key[members]
    length = _shortest_cycle(key)
    if length is None:
        return None
    is_dominant = np.array(
        [program == dominant.program for program in executions.modules], np.bool_
    )[key]
    run_starts = np.flatnonzero(is_dominant[1:] & ~is_dominant[:-1]) + 1
    first = _first_in_cycle(run_starts, length, executions.start[members], executions.end[members])
    at = np.arange(first, len(members), length)
    if is_dominant[:first].any():
        at = np.append(0, at)
    cycle = tuple(executions.modules[index] for index in key[first : first + length].tolist())
    return cycle, members[at]


def _shortest_cycle(key: Int64s) -> int | None:
    for length in range(1, min(LONGEST_CYCLE, len(key) // LEAST_CYCLES) + 1):
        if (key[length:] == key[:-length]).all():
            return length
    return None


def _first_in_cycle(run_starts: Int64s, length: int, start: Int64s, end: Int64s) -> int:
    """Where the first whole sequence begins: at that start of a run (one for each place in the
    sequence) before which devices were idle longest; 0 if there is just one program."""
    if not len(run_starts):
        return 0
    idle = start[run_starts] - end[run_starts - 1]
    total = sum_by(run_starts % length, idle, length)
    places = sorted(set((run_starts % length).tolist()), key=lambda place: (-total[place], place))
    return int(run_starts[run_starts % length == places[0]][0])
