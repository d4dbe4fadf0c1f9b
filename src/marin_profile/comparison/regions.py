"""Owned time by region, and the fewest regions that account for the change.

Contract
* Regions after stand under their names before. An op's region is its scope path without its leaf,
  see `matching.own_region`.
* Gross before net: `Gross` says what came, went, grew and shrank in a region; an op that moved to
  another region went from the one and came to the other.
* The fewest regions: from the program down, a region gives way to its children where at most
  MOST_CHILDREN of them, each with LEAST_OF_IT or more, hold MOST_OF_IT of all that moved in it, up
  or down, its own ops included; of those it gives way to the fewest. Where more of what is below it
  moves, the region itself is named. The program as a whole says nothing: it gives way to up to
  MOST_OF_A_PROGRAM, of which its own ops ("(itself)") may be one. What is noise has not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from marin_profile.comparison.matching import (
    REPLACED,
    OpMatch,
    OpTime,
    Path,
    known_regions,
    own_region,
    prefixes,
)
from marin_profile.comparison.noise import RowTimes

MOST_CHILDREN = 3
MOST_OF_A_PROGRAM = 5
ITSELF = "(itself)"
MOST_OF_IT, LEAST_OF_IT = Fraction(4, 5), Fraction(1, 10)
NOTHING = Fraction(0)


@dataclass
class Gross:
    """Picoseconds per step and device; added and grown are not negative, the others not positive:
    together they are the change."""

    added: Fraction = NOTHING
    removed: Fraction = NOTHING
    grown: Fraction = NOTHING
    shrunk: Fraction = NOTHING

    def count(self, match: OpMatch, *, before: bool, after: bool) -> None:
        """One match in a region that has its op before, after, or both."""
        if before and after and match.how != REPLACED and match.before and match.after:
            delta = match.times.delta
            self.grown += max(delta, NOTHING)
            self.shrunk += min(delta, NOTHING)
            return
        if before and match.before:
            self.removed -= match.before.time
        if after and match.after:
            self.added += match.after.time

    def add(self, other: Gross) -> None:
        self.added += other.added
        self.removed += other.removed
        self.grown += other.grown
        self.shrunk += other.shrunk


@dataclass
class RegionTime:
    """`by_pass`: the change by pass; "" of ops without one."""

    times: RowTimes = field(default_factory=RowTimes)
    by_pass: dict[str, Fraction] = field(default_factory=dict)
    gross: Gross = field(default_factory=Gross)

    @property
    def delta(self) -> Fraction:
        return self.times.delta

    def add(self, other: RegionTime) -> None:
        self.times += other.times
        self.gross.add(other.gross)
        for name, delta in other.by_pass.items():
            self.by_pass[name] = self.by_pass.get(name, NOTHING) + delta


def own_times(matches: Iterable[OpMatch]) -> dict[Path, RegionTime]:
    """By the region that each op stands in; () holds ops without a scope."""
    return _times(matches, lambda path: [path])


def inclusive_times(matches: Iterable[OpMatch]) -> dict[Path, RegionTime]:
    """Every region with all below it."""
    return _times(matches, prefixes)


def _times(
    matches: Iterable[OpMatch], regions: Callable[[Path], list[Path]]
) -> dict[Path, RegionTime]:
    matches = list(matches)
    known = known_regions(side for one in matches for side in (one.before, one.after) if side)
    found: dict[Path, RegionTime] = {}
    for match in matches:
        places = [
            regions(own_region(side, known)) if side else [] for side in (match.before, match.after)
        ]
        for path in dict.fromkeys([*places[0], *places[1]]):
            before, after = (path in one for one in places)
            row = found.setdefault(path, RegionTime())
            if before and match.before:
                row.add(_of(match.before, is_after=False))
            if after and match.after:
                row.add(_of(match.after, is_after=True))
            row.gross.count(match, before=before, after=after)
    return found


def _of(side: OpTime, *, is_after: bool) -> RegionTime:
    times = RowTimes(after=side.times) if is_after else RowTimes(before=side.times)
    return RegionTime(times, {side.group.pass_ or "": side.time if is_after else -side.time})


def fewest_regions(
    own: Mapping[Path, RegionTime], inclusive: Mapping[Path, RegionTime], noise: frozenset[Path]
) -> dict[Path, RegionTime]:
    """Disjoint regions that account for the change; `noise`: those whose change is noise, with all
    below them or, with ITSELF at the end, of their own ops."""
    below: dict[Path, list[Path]] = {}
    for path in sorted(inclusive):
        below.setdefault(path[:-1], []).append(path)
    found: dict[Path, RegionTime] = {}
    waiting = list(below.get((), []))
    while waiting:
        path = waiting.pop()
        moved = {
            child: abs(inclusive[child].delta)
            for child in below.get(path, [])
            if child not in noise and inclusive[child].delta
        }
        itself = (*path, ITSELF)
        if path in own and own[path].delta and itself not in noise:
            moved[itself] = abs(own[path].delta)
        carriers = _carriers(moved, MOST_OF_A_PROGRAM if len(path) == 1 else MOST_CHILDREN)
        if itself in carriers and len(path) > 1:
            carriers = []
        if itself in carriers and len(carriers) > 1:
            found[itself] = own[path]
        if carriers and carriers != [itself]:
            waiting += [child for child in carriers if child != itself]
        elif inclusive[path].delta:
            found[path] = inclusive[path]
    return found


def _carriers(moved: Mapping[Path, Fraction], most: int) -> list[Path]:
    """The fewest that hold most of what moved, or none."""
    largest = sorted(moved, key=lambda path: (-moved[path], path))
    whole, held = sum(moved.values(), NOTHING), NOTHING
    for count, path in enumerate(largest[:most], start=1):
        if moved[path] < LEAST_OF_IT * whole:
            break
        held += moved[path]
        if held >= MOST_OF_IT * whole:
            return largest[:count]
    return []


def elsewhere(own: Mapping[Path, RegionTime], found: Iterable[Path]) -> RegionTime:
    """What stands in no region that is found, of what has a scope."""
    whole, rest = list(found), RegionTime()
    for path, time in own.items():
        inside = any(path[: len(above)] == above or above == (*path, ITSELF) for above in whole)
        if path and not inside:
            rest.add(time)
    return rest
