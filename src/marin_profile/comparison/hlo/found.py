"""The parts of two matched programs that differ -> differences: of what kind, where, how long.

Contract: times are those of whole ops, each in one difference at most. What is of one kind in one
place of layers that are alike is one difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from marin_profile.comparison.hlo.components import COSTLESS, Part
from marin_profile.comparison.hlo.donation import donations
from marin_profile.comparison.hlo.matching import Matched
from marin_profile.comparison.hlo.opened import Opened
from marin_profile.comparison.hlo.places import placed
from marin_profile.comparison.hlo.rules import kind_of
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import weight
from marin_profile.comparison.hlo.sides import SideProgram
from marin_profile.comparison.noise import RowTimes, mean
from marin_profile.events.scopes import parse_scope

Scope = tuple[str, str]  # path and pass
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Found:
    """A difference before its time is written. `likeness`: those of layers that are alike share
    it. `scopes`: of all its steps, for the memory that is theirs."""

    kind: Kind
    program: str
    times: RowTimes
    scope: str | None = None
    pass_: str | None = None
    source: str | None = None
    before_ops: tuple[str, ...] = ()
    after_ops: tuple[str, ...] = ()
    places: int = 1
    scopes: frozenset[Scope] = frozenset()

    @property
    def likeness(self) -> tuple[str, str, str, str]:
        return (
            self.kind.name,
            self.program,
            _DIGITS.sub("", self.scope or ""),
            self.pass_ or "",
        )


def without_partner(left: SideProgram | None, right: SideProgram | None) -> Found:
    one = left or right
    assert one is not None
    is_new = left is None
    kind = Kind(
        "program_added" if is_new else "program_removed",
        f"The program {one.name} runs only {'after' if is_new else 'before'}.",
    )
    times = RowTimes(None, one.total) if is_new else RowTimes(one.total, None)
    names = tuple(sorted(one.times))
    return Found(
        kind,
        one.name,
        times,
        before_ops=() if is_new else names,
        after_ops=names if is_new else (),
    )


def differences(
    left: SideProgram, right: SideProgram, matched: Matched, parts: Sequence[Part]
) -> list[Found]:
    moved = donations(matched)
    found = []
    for part in parts:
        asked = Asked(part, left.opened, right.opened, moved)
        kind = kind_of(asked)
        found.append(
            Found(
                kind,
                right.name,
                RowTimes(left.of(part.before_units), right.of(part.after_units)),
                **_where(part, left.opened, right.opened),
                before_ops=_longest_first(part.before_units, left),
                after_ops=_longest_first(part.after_units, right),
            )
        )
    if (unclaimed := moved.unclaimed({one.kind.name for one in found})) is not None:
        nothing = (Fraction(0),)
        found.append(
            Found(
                Kind(*unclaimed),
                right.name,
                RowTimes(nothing * left.number, nothing * right.number),
            )
        )
    return _together(found)


def _longest_first(units: Sequence[str], side: SideProgram) -> tuple[str, ...]:
    return tuple(sorted(units, key=lambda unit: (-mean(side.of([unit])), unit)))


def _where(part: Part, left: Opened, right: Opened) -> dict[str, Any]:
    """Scope, pass and source line of the heaviest step that is different, or is in another op where
    none is; the scopes of all."""
    different = [
        *((right, step) for step in part.added),
        *((right, two) for _, two in part.changed),
        *((left, step) for step in part.removed),
    ]
    regrouped = [(right, two) for _, two in part.regrouped]
    scopes = {parse_scope(step.node.op_name) for _, step in (*different, *regrouped)}
    scopes |= {parse_scope(one.node.op_name) for one, _ in part.changed}
    paid = [pair for pair in different if pair[1].opcode not in COSTLESS] or regrouped or different
    named = [pair for pair in paid if parse_scope(pair[1].node.op_name)]
    opened, heaviest = max(named or paid, key=lambda pair: (weight(pair[1]), -pair[1].at))
    node = heaviest.node if named else placed(opened, heaviest)
    parsed = parse_scope(node.op_name)
    return {
        "scope": "/".join(parsed[0]) if parsed else None,
        "pass_": parsed[1] if parsed else None,
        "source": node.source or None,
        "scopes": frozenset(("/".join(path), pass_) for path, pass_ in filter(None, scopes)),
    }


def _together(found: Sequence[Found]) -> list[Found]:
    """Differences of one kind in one place of layers that are alike are one difference."""
    kept: dict[tuple[str, ...], Found] = {}
    for one in found:
        known = kept.get(one.likeness)
        if known is None:
            kept[one.likeness] = one
            continue
        larger = max((known, one), key=lambda each: abs(each.times.delta))
        kept[one.likeness] = replace(
            larger,
            times=known.times + one.times,
            before_ops=(*known.before_ops, *one.before_ops),
            after_ops=(*known.after_ops, *one.after_ops),
            places=known.places + one.places,
            scopes=known.scopes | one.scopes,
        )
    return list(kept.values())
