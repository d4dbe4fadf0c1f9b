"""What differs between two matched programs, in parts that hang together.

Contract
* A part holds whole ops of the trace (units) on both sides: those of steps that came, went or
  changed, and of steps that another fusion does now. Ops are in one part at most; those in none
  have a partner that computes the same, and only their times may differ.
* Steps that differ and take values from each other are in one part; so is a loop that turns another
  number of times, with all that it does. What costs nothing (constants,
  arguments, what a loop carries) makes no part by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marin_profile.comparison.hlo.matching import MOVERS, UNMATCHED, Matched, is_alike
from marin_profile.comparison.hlo.opened import (
    BRANCH_RESULT,
    CONSTANT,
    LOOP,
    LOOP_RESULT,
    LOOP_VALUE,
    PARAMETER,
    Step,
)

BEFORE, AFTER = 0, 1
COSTLESS = frozenset({CONSTANT, PARAMETER, LOOP_VALUE, LOOP_RESULT, BRANCH_RESULT})
# Fusions hold copies of these where they need them.
COPIED = COSTLESS | MOVERS | {"iota"}

Unit = tuple[int, str]  # the side, and the op of its trace


@dataclass(frozen=True)
class Part:
    """removed, added: steps without a partner; changed: pairs that are not alike; regrouped: pairs
    of alike steps whose fusion now holds others. Units in the order of their names."""

    removed: tuple[Step, ...]
    added: tuple[Step, ...]
    changed: tuple[tuple[Step, Step], ...]
    regrouped: tuple[tuple[Step, Step], ...]
    before_units: tuple[str, ...]
    after_units: tuple[str, ...]


def find_parts(matched: Matched) -> list[Part]:
    """In the order of their first steps."""
    return _Parts(matched).found()


class _Parts:
    def __init__(self, matched: Matched) -> None:
        self._sides = (matched.before, matched.after)
        self._partner = (matched.after_of, matched.before_of)
        self._pairs = list(matched.pairs())
        self._root: dict[Unit, Unit] = {}
        self._differs = tuple(
            [other == UNMATCHED for other in partners] for partners in self._partner
        )
        for one, two in self._pairs:
            if not is_alike(one, two):
                self._differs[BEFORE][one.at] = self._differs[AFTER][two.at] = True

    def found(self) -> list[Part]:
        regrouped = self._regrouped()
        touched = {
            (side, step.unit)
            for side in (BEFORE, AFTER)
            for step in self._sides[side].steps
            if self._differs[side][step.at] and step.opcode not in COSTLESS
        }
        touched |= {unit for pair in regrouped for unit in _units(*pair)}
        turned = self._turned_otherwise()
        touched |= {unit for pair in turned for unit in pair}
        for unit in sorted(touched):
            self._find(unit)
        for pair in turned:
            self._join(*pair)
        self._join_partners(touched)
        self._join_neighbours(regrouped)
        self._join_replaced()
        return self._collected(regrouped)

    def _regrouped(self) -> list[tuple[Step, Step]]:
        """Alike pairs whose units hold steps of several units of the other side."""
        others: dict[Unit, set[str]] = {}
        for one, two in self._pairs:
            if one.opcode not in COPIED:
                before, after = _units(one, two)
                others.setdefault(before, set()).add(two.unit)
                others.setdefault(after, set()).add(one.unit)
        torn = {unit for unit, found in others.items() if len(found) > 1}
        return [
            (one, two)
            for one, two in self._pairs
            if one.opcode not in COPIED and not torn.isdisjoint(_units(one, two))
        ]

    def _turned_otherwise(self) -> list[tuple[Unit, Unit]]:
        """Each op in a loop that came, went or turns more or less often, with that loop: it is
        computed another number of times."""
        found: dict[tuple[Unit, Unit], None] = {}
        for side in (BEFORE, AFTER):
            loops = {
                step.node.name: (side, step.unit)
                for step in self._sides[side].steps
                if step.opcode == LOOP and self._differs[side][step.at]
            }
            for step in self._sides[side].steps:
                if step.opcode not in COSTLESS:
                    for name in step.loops:
                        if name in loops:
                            found[(side, step.unit), loops[name]] = None
        return list(found)

    def _join_partners(self, touched: set[Unit]) -> None:
        """What holds the partner of a part's step is in the part."""
        own = self._by_unit()
        waiting = sorted(touched)
        while waiting:
            unit = waiting.pop()
            for other in own.get(unit, ()):
                if other not in touched:
                    touched.add(other)
                    waiting.append(other)
                self._join(unit, other)

    def _by_unit(self) -> dict[Unit, list[Unit]]:
        """By what it computes; what only moves values counts where a unit does nothing else."""
        computing: dict[Unit, dict[Unit, None]] = {}
        moving: dict[Unit, dict[Unit, None]] = {}
        for one, two in self._pairs:
            if one.opcode in COSTLESS:
                continue
            kept = moving if one.opcode in COPIED else computing
            before, after = _units(one, two)
            kept.setdefault(before, {})[after] = None
            kept.setdefault(after, {})[before] = None
        found = {unit: list(others) for unit, others in computing.items()}
        for unit, others in moving.items():
            if unit not in computing:
                found[unit] = [other for other in others if other not in computing]
        return found

    def _join_neighbours(self, regrouped: list[tuple[Step, Step]]) -> None:
        """What differs with what it takes values from, or gives them to, if that differs too or is
        in other fusions now."""
        torn = ({one.at for one, _ in regrouped}, {two.at for _, two in regrouped})
        for side in (BEFORE, AFTER):
            steps, differs = self._sides[side].steps, self._differs[side]
            for step in steps:
                for operand in step.operands:
                    if (differs[step.at] and (differs[operand] or operand in torn[side])) or (
                        differs[operand] and step.at in torn[side]
                    ):
                        self._join_known((side, steps[operand].unit), (side, step.unit))

    def _join_replaced(self) -> None:
        """What went and what came instead: made from the same value that nothing else is made
        from anew, or taken by the same step in the same place."""
        for one, two in self._pairs:
            gone, new = (
                [
                    self._sides[side].steps[user].unit
                    for user in self._sides[side].users[step.at]
                    if self._partner[side][user] == UNMATCHED
                ]
                for side, step in ((BEFORE, one), (AFTER, two))
            )
            if one.opcode not in COSTLESS and len(gone) == len(new) == 1:
                self._join_known((BEFORE, gone[0]), (AFTER, new[0]))
            if len(one.operands) == len(two.operands):
                for a, b in zip(one.operands, two.operands, strict=True):
                    if self._partner[BEFORE][a] == self._partner[AFTER][b] == UNMATCHED:
                        self._join_known(
                            (BEFORE, self._sides[BEFORE].steps[a].unit),
                            (AFTER, self._sides[AFTER].steps[b].unit),
                        )

    def _join_known(self, one: Unit, two: Unit) -> None:
        if one in self._root and two in self._root:
            self._join(one, two)

    def _collected(self, regrouped: list[tuple[Step, Step]]) -> list[Part]:
        members: dict[Unit, dict[str, list[Any]]] = {}

        def part_of(side: int, step: Step) -> dict[str, list[Any]] | None:
            unit = (side, step.unit)
            if unit not in self._root:
                return None
            return members.setdefault(
                self._find(unit),
                {name: [] for name in ("removed", "added", "changed", "regrouped")},
            )

        for side, name in ((BEFORE, "removed"), (AFTER, "added")):
            for step in self._sides[side].steps:
                if self._partner[side][step.at] == UNMATCHED:
                    part = part_of(side, step)
                    if part is not None:
                        part[name].append(step)
        for name, pairs in (
            ("changed", [pair for pair in self._pairs if self._differs[BEFORE][pair[0].at]]),
            ("regrouped", regrouped),
        ):
            for pair in pairs:
                part = part_of(BEFORE, pair[0]) or part_of(AFTER, pair[1])
                if part is not None:
                    part[name].append(pair)
        units: dict[Unit, tuple[set[str], set[str]]] = {}
        for side, name in self._root:
            units.setdefault(self._find((side, name)), (set(), set()))[side].add(name)
        return [
            Part(
                **{name: tuple(found) for name, found in part.items()},
                before_units=tuple(sorted(units[root][BEFORE])),
                after_units=tuple(sorted(units[root][AFTER])),
            )
            for root, part in members.items()
        ]

    # --- sets of units that are joined ---

    def _find(self, unit: Unit) -> Unit:
        root = self._root.setdefault(unit, unit)
        while root != self._root[root]:
            root = self._root[root]
        self._root[unit] = root
        return root

    def _join(self, one: Unit, two: Unit) -> None:
        first, second = sorted((self._find(one), self._find(two)))
        self._root[second] = first


def _units(one: Step, two: Step) -> tuple[Unit, Unit]:
    return (BEFORE, one.unit), (AFTER, two.unit)


def significant(steps: Iterable[Step]) -> list[Step]:
    """Those that cost something."""
    return [step for step in steps if step.opcode not in COSTLESS]
