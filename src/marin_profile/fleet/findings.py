"""What a fleet shows: groups of captures that can be compared, who is slow in them, and how each
developed.

Contract
* Captures are compared within a group: the same hardware, numbers of devices and hosts, config (by
  its hash, or by a label for all), largest program and measure of a step. Figures never cross
  groups.
* Of a group of at least LEAST captures one is slow (or fast) whose typical step stands out by a
  modified z = 0.6745 x (log step - median) / max(MAD, 1 %) of more than 3.5 in size.
* A host is told of if it was a straggler in a capture, or the one host of a slow one, with the
  number of captures that it is in: it is no verdict.
* Development (levels and drift) is that of groups whose config is known, in order of time, by the
  rules of histories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from marin_profile.fleet.row import FleetRow
from marin_profile.history.development import Development, development

LEAST = 3
STANDS_OUT = 3.5
FLOOR = 0.01


@dataclass(frozen=True)
class Outlier:
    """A capture whose typical step is `ratio` times the median of its group."""

    row: FleetRow
    ratio: float
    z: float

    @property
    def is_slow(self) -> bool:
        return self.ratio > 1


@dataclass(frozen=True)
class Group:
    """Captures that can be compared, in order of time. `development` indexes into `timed`, those
    whose time is known."""

    hardware: str | None
    devices: int | None
    hosts: int | None
    config: str | None
    program: str | None
    measure: str | None
    rows: tuple[FleetRow, ...]
    timed: tuple[FleetRow, ...]
    outliers: tuple[Outlier, ...]
    development: Development

    @property
    def lengths(self) -> list[float]:
        return [row.step_typical for row in self.rows if row.step_typical]


@dataclass(frozen=True)
class HostFinding:
    """In how many captures a host is, in how many it was a straggler, and how many of those of
    which it is the one host are slow."""

    host: str
    captures: int
    straggler_in: int
    slow: int


@dataclass(frozen=True)
class AdviceFinding:
    """Captures whose first advice it is, and the median of what it saves at most."""

    advice: str
    captures: int
    saves_share: float | None


@dataclass(frozen=True)
class Fleet:
    """`broken`: what could not be summarised."""

    rows: tuple[FleetRow, ...]
    broken: tuple[FleetRow, ...]
    groups: tuple[Group, ...]
    hosts: tuple[HostFinding, ...]
    advice: tuple[AdviceFinding, ...]

    @property
    def outliers(self) -> list[Outlier]:
        """The slowest first."""
        found = [one for group in self.groups for one in group.outliers]
        return sorted(found, key=lambda one: (-one.ratio, one.row.name))


def fleet_of(rows: Sequence[FleetRow], *, label: str | None = None) -> Fleet:
    """`label`: what all captures repeat, in place of their configs."""
    sound = tuple(row for row in rows if not row.problem)
    groups = tuple(_groups(sound, label))
    return Fleet(
        rows=sound,
        broken=tuple(row for row in rows if row.problem),
        groups=groups,
        hosts=tuple(_hosts(sound, groups)),
        advice=tuple(_advice(sound)),
    )


Key = tuple[str | None, int | None, int | None, str | None, str | None, str | None]


def _groups(rows: Sequence[FleetRow], label: str | None) -> Iterator[Group]:
    """The largest first."""
    members: dict[Key, list[FleetRow]] = {}
    for row in rows:
        config = row.config_hash if label is None else label
        key = (row.hardware, row.devices, row.num_hosts, config, row.program, row.measure)
        members.setdefault(key, []).append(row)

    def order(item: tuple[Key, list[FleetRow]]) -> tuple[int, list[str]]:
        return -len(item[1]), [str(part) for part in item[0]]

    for key, own in sorted(members.items(), key=order):
        own.sort(key=lambda row: (not row.time, row.time, row.name))
        timed = tuple(row for row in own if row.time and row.step_typical)
        logs = [math.log(row.step_typical) for row in timed if row.step_typical]
        yield Group(
            *key,
            rows=tuple(own),
            timed=timed,
            outliers=tuple(_outliers(own)),
            development=development(logs) if key[3] is not None else Development(),
        )


def _outliers(rows: Sequence[FleetRow]) -> Iterator[Outlier]:
    known = [(row, math.log(row.step_typical)) for row in rows if row.step_typical]
    if len(known) < LEAST:
        return
    middle = median(log for _, log in known)
    scale = max(median(abs(log - middle) for _, log in known), FLOOR)
    for row, log in known:
        z = 0.6745 * (log - middle) / scale
        if abs(z) > STANDS_OUT:
            yield Outlier(row, math.exp(log - middle), z)


def _hosts(rows: Sequence[FleetRow], groups: Sequence[Group]) -> list[HostFinding]:
    """Those of which there is something to tell, the most conspicuous first."""
    slow = {one.row.name for group in groups for one in group.outliers if one.is_slow}
    captures, straggler_in, slow_alone = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        captures.update({*row.hosts, *row.stragglers})
        straggler_in.update({*row.stragglers})
        if len(row.hosts) == 1 and row.name in slow:
            slow_alone.update(row.hosts)
    told = [
        HostFinding(host, captures[host], straggler_in[host], slow_alone[host])
        for host in straggler_in | slow_alone
    ]
    return sorted(told, key=lambda one: (-one.straggler_in - one.slow, one.captures, one.host))


def _advice(rows: Sequence[FleetRow]) -> list[AdviceFinding]:
    """What most captures are advised first."""
    saved: dict[str, list[float]] = {}
    count: dict[str, int] = {}
    for row in rows:
        if row.advice is not None:
            count[row.advice] = count.get(row.advice, 0) + 1
            if row.advice_saves_share is not None:
                saved.setdefault(row.advice, []).append(row.advice_saves_share)
    return [
        AdviceFinding(advice, count[advice], median(saved[advice]) if advice in saved else None)
        for advice in sorted(count, key=lambda one: (-count[one], one))
    ]
