"""The host_activity section: one account a host, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from marin_profile import schema
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.host_account import HostAccount, HostCause
from marin_profile.analysis.steps.classes import periodicity
from marin_profile.assemble.context import Context, us

# A step counts as one that a cause costs from this part of the mean cost on.
LEAST_OF_MEAN = 0.1
MOST_STEPS = 64
MOST_LAUNCHED = 20

NO_CLOCK = "host and devices do not share a clock, so idle time cannot be laid beside host events"
NO_THREAD = "no thread of the host launched work or holds step markers"


def host_activity(context: Context) -> list[schema.HostActivity]:
    return [_host(part) for part in context.parts]


def _host(part: HostPart) -> schema.HostActivity:
    account = part.account_of_idle
    if account is None:
        reason = NO_THREAD if part.clock.agrees else NO_CLOCK
        return schema.HostActivity(host=part.host, reason=reason)
    periods = len(account.steps)
    return schema.HostActivity(
        host=part.host,
        window_duration=us(account.length),
        whole_periods=periods or None,
        idle_duration=us(account.idle),
        partly_idle_duration=us(account.some_idle / max(1, part.main_devices)),
        causes=[_cause(part, account, row) for row in account.causes],
        compilations=[
            schema.Compilation(
                function=one.function or None,
                duration=us(one.duration),
                step=None if one.step is None else step_name(part, one.step),
            )
            for one in account.compiles
        ],
        device_reads=account.reads,
        rounds_per_step=median_low(account.rounds) if account.rounds else None,
        launches=[
            schema.Launched(
                function=function, count=count, per_step=count / periods if periods else None
            )
            for function, count in account.launches[:MOST_LAUNCHED]
        ],
    )


def _cause(part: HostPart, account: HostAccount, row: HostCause) -> schema.HostCause:
    periods = len(account.steps)
    found = occurrence(part, account, [row])
    return schema.HostCause(
        cause=row.kind,
        name=row.name or None,
        place=None if row.inside is None else "inside" if row.inside else "between",
        idle_duration=us(row.idle),
        idle_per_step=us(row.idle) / periods if periods else None,
        share_of_window=row.idle / account.length,
        count=row.count,
        step_count=found.count if periods else None,
        steps=[*found.steps[:MOST_STEPS]],
        periodicity=found.every,
    )


@dataclass(frozen=True)
class Occurrence:
    """How many steps a cause costs; unless it is all of them, also which, by number or else by
    index, and after how many steps it comes back (None: not seen)."""

    count: int
    steps: tuple[int, ...]
    every: int | None


def occurrence(part: HostPart, account: HostAccount, rows: Sequence[HostCause]) -> Occurrence:
    """Of the rows of one cause: the steps that they cost more than LEAST_OF_MEAN of what they cost
    a step on average."""
    steps = len(account.steps)
    per_step = sum((row.per_step(steps) for row in rows), np.zeros(steps, np.int64))
    least = LEAST_OF_MEAN * int(per_step.sum()) / max(1, steps)
    places = np.flatnonzero(per_step > least).tolist()
    if len(places) == steps:
        return Occurrence(len(places), (), None)
    named = tuple(step_name(part, account.steps[at]) for at in places)
    return Occurrence(len(places), named, periodicity(places, steps))


def step_name(part: HostPart, position: int) -> int:
    """What people call a step: its number, else its index."""
    number = part.steps.numbers[position]
    return position if number is None else number
