"""How long the executions of each program take, and how often a step calls it.

Contract
* An execution lasts from the first to the last of its ops, on each device, on the device clock;
  what is idle meanwhile belongs to it. Executions without ops are none.
* Distances are from start to start of the next execution of the program on the device.
* Calls of steps are the executions that begin in the device's whole periods.
* GPU files show no executions: they have no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.executions import Program
from marin_profile.analysis.ledger import DeviceIntervals
from marin_profile.base.columns import distinct, extent_by
from marin_profile.base.intervals import Window
from marin_profile.events.timeline import Int64s


@dataclass(frozen=True)
class ProgramCalls:
    """One program on `devices` devices; picoseconds. lengths: of its executions; distances: see
    the module docstring; idle: inside executions; in_periods: how many begin in the whole
    `periods`; steps_with: in how many of the `steps` that begin in these. Sums over devices."""

    name: str
    program_id: int | None
    devices: int
    lengths: Int64s
    distances: Int64s
    idle: int
    in_periods: int
    periods: int
    steps_with: int
    steps: int

    @property
    def program(self) -> Program:
        return self.name, self.program_id


def program_calls(
    device: DeviceOps,
    time: DeviceIntervals,
    window: Window | None,
    periods: int,
    boundaries: Int64s,
) -> list[ProgramCalls]:
    """Of one device, in no particular order. `window`: of its whole periods, if there are any;
    `boundaries`: where its steps begin, ascending."""
    executions = device.executions
    if executions is None or not len(executions.key):
        return []
    first, last = extent_by(device.execution, device.start, device.end, len(executions.key))
    idle = np.zeros(len(first), np.int64)
    used = np.flatnonzero(first <= last)
    idle[used] = time.step_terms(first[used], last[used])["idle"]
    low, high = window or (0, 0)
    boundaries = boundaries[(boundaries >= low) & (boundaries < high)]
    rows = []
    for key in distinct(executions.key[used], len(executions.modules)).tolist():
        own = used[executions.key[used] == key]
        starts = np.sort(first[own])
        within = starts[(starts >= low) & (starts < high)]
        steps = np.unique(np.searchsorted(boundaries, within, side="right"))
        name, program_id = executions.modules[key]
        rows.append(
            ProgramCalls(
                name=name,
                program_id=program_id,
                devices=1,
                lengths=last[own] - first[own],
                distances=np.diff(starts),
                idle=int(idle[own].sum()),
                in_periods=len(within),
                periods=periods if window else 0,
                steps_with=int(np.count_nonzero(steps)),
                steps=len(boundaries),
            )
        )
    return rows


def merge_calls(parts: Iterable[ProgramCalls]) -> list[ProgramCalls]:
    """Over devices, or hosts; by name and id."""
    members: dict[tuple[str, int], list[ProgramCalls]] = {}
    for part in parts:
        known_id = -1 if part.program_id is None else part.program_id
        members.setdefault((part.name, known_id), []).append(part)
    return [_merged(members[key]) for key in sorted(members)]


def _merged(rows: Sequence[ProgramCalls]) -> ProgramCalls:
    return ProgramCalls(
        name=rows[0].name,
        program_id=rows[0].program_id,
        devices=sum(row.devices for row in rows),
        lengths=np.concatenate([row.lengths for row in rows]),
        distances=np.concatenate([row.distances for row in rows]),
        idle=sum(row.idle for row in rows),
        in_periods=sum(row.in_periods for row in rows),
        periods=sum(row.periods for row in rows),
        steps_with=sum(row.steps_with for row in rows),
        steps=sum(row.steps for row in rows),
    )


# A program repeats where so many distances, and the middle half of them, are near their median.
LEAST_DISTANCES = 3
NEAR = 0.25


def period_of(distances: Int64s) -> float | None:
    """The median distance, ps, of a program that repeats; None where it does not."""
    if len(distances) < LEAST_DISTANCES:
        return None
    low, median, high = np.quantile(distances, (0.25, 0.5, 0.75), method="linear").tolist()
    return median if median and high - median <= NEAR * median >= median - low else None
