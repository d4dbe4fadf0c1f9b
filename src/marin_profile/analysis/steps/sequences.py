"""Which executions begin a step, and which work belongs to it, where no marker says so.

Contract
* Executions of the dominant program begin the steps, and all work between two such starts belongs
  to the step; the last one has what every other has.
* Where that program runs several times in the shortest sequence of programs that repeats over the
  whole capture (micro-batches), and each other program once, that sequence is one step, and begins
  where a run of the dominant program begins.
* Warnings name what is in doubt: a dominant program with less than half of the op time, programs
  without such a sequence, others of the same name, executions of one name that differ in ops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.executions import Executions, Program
from marin_profile.analysis.steps.programs import Dominant, executions_of, shortest_cycle
from marin_profile.analysis.steps.series import NO_STEP
from marin_profile.base.columns import sum_by, unique_pairs
from marin_profile.events.timeline import Int64s


def step_starts(
    devices: Sequence[DeviceOps], dominant: Dominant, doubts: list[str]
) -> list[Int64s]:
    """Per device the executions that begin a step, in order."""
    own = [executions_of(device.executions, dominant.programs) for device in devices]
    _doubt_dominance(dominant, doubts)
    _doubt_names(devices, dominant, doubts)
    others = [program for program in dominant.lasting if program not in dominant.programs]
    if not others:
        return own
    found = [
        _cycle_starts(device.executions, dominant)
        for device, members in zip(devices, own, strict=True)
        if device.executions is not None and len(members)
    ]
    cycles = {None if one is None else one[0] for one in found}
    cycle = cycles.pop()
    if cycle is None or cycles:
        doubts.append(
            f"Nothing shows which programs make up a step: each execution of {dominant.label} "
            f"counts as one, and what runs between ({dominant.listed(others)} of the op time) "
            "belongs to the step before; step markers would show it."
        )
        return own
    if cycle.count(dominant.programs[0]) == 1:
        return own
    described = ", ".join(
        f"{cycle.count(program)} x {dominant.label_of(program)}" for program in dict.fromkeys(cycle)
    )
    doubts.append(
        f"A step is taken to be the shortest repeating sequence of programs: {described}; step "
        "markers would make it certain."
    )
    starts = iter([one[1] for one in found if one is not None])
    return [next(starts) if len(members) else members for members in own]


def _doubt_dominance(dominant: Dominant, doubts: list[str]) -> None:
    share = dominant.share_of(dominant.programs)
    if share < 0.5:
        doubts.append(
            f"{dominant.label}, whose executions are the steps, has {100 * share:.0f} % of the op "
            f"time; the others have {dominant.listed(dominant.others)}."
        )
    if len(dominant.programs) > 1:
        doubts.append(
            f"{len(dominant.programs)} programs are called {dominant.name} and run like ops in no "
            "repeating order: they are taken for one function compiled for several shapes, so that "
            "each execution of one of them is a step; step markers would make it certain."
        )
    same = [program for program in dominant.others if program[0] == dominant.name]
    if same:
        doubts.append(
            f"Other programs are called {dominant.name} too: the steps are the executions of "
            f"{dominant.label_of(dominant.programs[0])}, and those of the others "
            f"({dominant.listed(same)} of the op time) belong to the step before."
        )


def _doubt_names(devices: Sequence[DeviceOps], dominant: Dominant, doubts: list[str]) -> None:
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
    chosen = np.isin(device.execution, members)
    executions, ops, _ = unique_pairs(device.execution[chosen], device.op[chosen])
    _, sizes = np.unique(executions, return_counts=True)
    return bool((sizes < len(np.unique(ops))).any())


def _cycle_starts(
    executions: Executions, dominant: Dominant
) -> tuple[tuple[Program, ...], Int64s] | None:
    """The shortest repeating sequence, from the start of a run of the dominant program, and the
    executions that begin one. A part of one at the capture's start is a step too if the dominant
    program is in it."""
    members = executions_of(executions, dominant.lasting)
    first_of = dominant.programs[0]
    # Variants are one program here.
    program_of = [first_of if one in dominant.programs else one for one in executions.modules]
    index_of = {program: index for index, program in enumerate(program_of)}
    key = np.array([index_of[program] for program in program_of], np.int64)[executions.key[members]]
    length = shortest_cycle(key)
    if length is None:
        return None
    is_dominant = key == index_of[first_of]
    run_starts = np.flatnonzero(is_dominant[1:] > is_dominant[:-1]) + 1
    first = _first_in_cycle(run_starts, length, executions.start[members], executions.end[members])
    cycle = tuple(program_of[index] for index in key[first : first + length].tolist())
    repeated = {program for program in cycle if cycle.count(program) > 1}
    if first_of in repeated and len(repeated) > 1:
        return None
    at = np.arange(first, len(members), length)
    if is_dominant[:first].any():
        at = np.append(0, at)
    return cycle, members[at]


def _first_in_cycle(run_starts: Int64s, length: int, start: Int64s, end: Int64s) -> int:
    """Where the first whole sequence begins: at that start of a run (one for each place in the
    sequence) before which devices were idle longest; 0 if there is just one program."""
    if not len(run_starts):
        return 0
    idle = start[run_starts] - end[run_starts - 1]
    total = sum_by(run_starts % length, idle, length)
    places = np.unique(run_starts % length)
    longest = places[np.argmax(total[places])]
    return int(run_starts[run_starts % length == longest][0])


def steps_from(device: DeviceOps, starts: Int64s) -> Int64s:
    """For each op its step, where the executions `starts` begin the steps and all work up to the
    next one belongs to them; NO_STEP before the first. Nothing ends the last step: it has what
    every step before it has (the first apart, which may be cut)."""
    executions = device.executions
    if executions is None or not len(starts):
        return np.full(len(device.op), NO_STEP, np.int64)
    step_of: Int64s = np.searchsorted(starts, np.arange(len(executions.key)), side="right") - 1
    last = _last_step(executions.key, step_of, len(starts))
    step_of[starts[-1] :] = NO_STEP
    step_of[last] = len(starts) - 1
    step: Int64s = step_of[device.execution]
    outside = np.flatnonzero(device.execution < 0)
    if len(outside):
        at = device.timeline.start[device.rows[outside]]
        own = np.searchsorted(executions.start[starts], at, side="right") - 1
        step[outside] = np.where(at < executions.end[last].max(), own, NO_STEP)
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
