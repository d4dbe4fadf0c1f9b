"""Compiled programs before and after, with what their ops took -> what XLA did differently.

Contract
* Pure: same programs and times, same rows. Rows, the ops that compute the same, and what runs
  elsewhere sum to the change of the target, exactly.
* A difference is claimed where programs differ in what they compute or in which op computes it;
  names, ids and the order of parameters are none. Whether its time is more than noise is judged as
  all rows of a comparison are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from marin_profile.base.text import plural
from marin_profile.comparison.attribution import Sides, sum_of_rows
from marin_profile.comparison.exact import apportion, change_fields, rounded_ratio
from marin_profile.comparison.hlo.components import COSTLESS, Part, find_parts
from marin_profile.comparison.hlo.donation import donations
from marin_profile.comparison.hlo.matching import Matched, is_alike, match
from marin_profile.comparison.hlo.opened import Opened
from marin_profile.comparison.hlo.order import in_order
from marin_profile.comparison.hlo.pairs import pair_programs
from marin_profile.comparison.hlo.places import placed
from marin_profile.comparison.hlo.rules import kind_of
from marin_profile.comparison.hlo.rules.asked import Asked, Kind
from marin_profile.comparison.hlo.rules.words import weight
from marin_profile.comparison.hlo.sides import Side, SideProgram, read_side
from marin_profile.comparison.memory import memory_change
from marin_profile.comparison.model import (
    Basis,
    HloChanges,
    HloDifference,
    HloProgramPair,
    SplitRow,
)
from marin_profile.comparison.noise import RowTimes, Times, mean
from marin_profile.events.scopes import parse_scope
from marin_profile.pipeline.programs import CapturedPrograms

UNCHANGED_ROW, ELSEWHERE_ROW, OTHERS_ROW = "(same program)", "(no program)", "(others)"
MOST_NAMES = 5
Scope = tuple[str, str]  # path and pass
_DIGITS = re.compile(r"\d+")
ONLY_SUMMARIES = (
    "A summary holds no compiled programs; name the profiles themselves to see what XLA did "
    "differently."
)
NO_PROTOS = (
    "no HLO protos, which tell what XLA compiled: capture an xplane with enable_hlo_proto of "
    "jax.profiler.ProfileOptions set to True"
)


def hlo_changes(
    sides: Sides,
    basis: Basis | None,
    before: Sequence[CapturedPrograms | None],
    after: Sequence[CapturedPrograms | None],
    top_k: int,
) -> HloChanges:
    """`before` and `after`: of each capture of the sides, in their order."""
    known = [[one for one in side if one is not None] for side in (before, after)]
    if len(known[0]) < len(before) or len(known[1]) < len(after):
        return HloChanges(cannot_answer=ONLY_SUMMARIES)
    without = [
        name for name, side in zip(("before", "after"), known, strict=True) if not side[0].programs
    ]
    if without:
        where = "Captures on both sides" if len(without) == 2 else f"The capture {without[0]}"
        holds = "hold" if len(without) == 2 else "holds"
        return HloChanges(cannot_answer=f"{where} {holds} {NO_PROTOS}.")
    one = read_side(sides.before, known[0], basis)
    two = read_side(sides.after, known[1], basis)
    found: list[_Found] = []
    programs: list[HloProgramPair] = []
    for left, right in pair_programs(one.programs, two.programs):
        if left is None or right is None:
            found.append(_without_partner(left, right))
        else:
            matched = match(left.opened, right.opened)
            parts = find_parts(matched)
            found += _differences(left, right, matched, parts)
            programs.append(_pair(left, right, matched, parts))
    return _summed(found, programs, one, two, sides, top_k)


@dataclass(frozen=True)
class _Found:
    """A difference before its time is written; `place` tells those that are alike, `size` their
    steps."""

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


def _without_partner(left: SideProgram | None, right: SideProgram | None) -> _Found:
    one = left or right
    assert one is not None
    is_new = left is None
    kind = Kind(
        "program_added" if is_new else "program_removed",
        f"The program {one.name} runs only {'after' if is_new else 'before'}.",
    )
    times = RowTimes(None, one.total) if is_new else RowTimes(one.total, None)
    names = tuple(sorted(one.times))
    return _Found(
        kind,
        one.name,
        times,
        before_ops=() if is_new else names,
        after_ops=names if is_new else (),
    )


def _differences(
    left: SideProgram, right: SideProgram, matched: Matched, parts: Sequence[Part]
) -> list[_Found]:
    moved = donations(matched)
    found = []
    for part in parts:
        asked = Asked(part, left.opened, right.opened, moved)
        kind = kind_of(asked)
        found.append(
            _Found(
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
            _Found(
                Kind(*unclaimed),
                right.name,
                RowTimes(nothing * left.number, nothing * right.number),
            )
        )
    return _together(found)


def _longest_first(units: Sequence[str], side: SideProgram) -> tuple[str, ...]:
    return tuple(sorted(units, key=lambda unit: (-mean(side.of([unit])), unit)))


def _where(part: Part, left: Opened, right: Opened) -> dict[str, Any]:
    """Scope, pass and source line of the heaviest step that is different; the scopes of all."""
    steps = [
        *((right, step) for step in part.added),
        *((right, two) for _, two in part.changed),
        *((left, step) for step in part.removed),
        *((right, two) for _, two in part.regrouped),
    ]
    scopes = {parse_scope(step.node.op_name) for _, step in steps}
    scopes |= {parse_scope(one.node.op_name) for one, _ in part.changed}
    paid = [pair for pair in steps if pair[1].opcode not in COSTLESS] or steps
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


def _together(found: Sequence[_Found]) -> list[_Found]:
    """Differences of one kind in one place of layers that are alike are one difference."""
    kept: dict[tuple[str, ...], _Found] = {}
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


def _pair(
    left: SideProgram, right: SideProgram, matched: Matched, parts: Iterable[Part]
) -> HloProgramPair:
    regrouped = {one.node.name for part in parts for one, _ in part.regrouped}
    alike = {one.at for one, two in matched.pairs() if is_alike(one, two)}
    differs = regrouped | {step.node.name for step in matched.before.steps if step.at not in alike}
    instructions = left.opened.program.nodes
    return HloProgramPair(
        before=left.name,
        after=right.name,
        before_instructions=len(instructions),
        after_instructions=len(right.opened.program.nodes),
        matched_instructions=len(instructions) - len(differs & instructions.keys()),
        same_names=len(instructions.keys() & right.opened.program.nodes.keys()),
    )


# --- rows ----------------------------------------------------------------------------------------


def _summed(
    found: Sequence[_Found],
    programs: list[HloProgramPair],
    one: Side,
    two: Side,
    sides: Sides,
    top_k: int,
) -> HloChanges:
    everything = RowTimes(_ops(one), _ops(two))
    outside = RowTimes(one.elsewhere, two.elsewhere)
    unchanged = _without(_without(everything, outside), [each.times for each in found])
    left = _without(sides.total, [everything])
    rest = outside + left
    parts = [*(each.times for each in found), unchanged, rest]
    rounded = apportion([part.delta for part in parts], sides.delta)
    judged = sides.judged(parts)
    fields = [
        {
            "share_of_target": rounded_ratio(part.delta, sides.delta),
            "interval": verdict.interval,
            "noise": verdict.noise,
            **change_fields(
                None if part.before is None else mean(part.before),
                None if part.after is None else mean(part.after),
                delta,
            ),
        }
        for part, delta, verdict in zip(parts, rounded, judged, strict=True)
    ]
    made = [(_row(each, own), each.scopes) for each, own in zip(found, fields, strict=False)]
    rows = in_order(_with_memory(made, sides))
    shown, hidden = rows[:top_k], rows[top_k:]
    return HloChanges(
        programs=programs,
        differences=shown,
        others=sum_of_rows(OTHERS_ROW, hidden, sides.delta) if hidden else None,
        total_differences=len(rows),
        unchanged=SplitRow(name=UNCHANGED_ROW, **fields[-2]),
        elsewhere=SplitRow(name=ELSEWHERE_ROW, **fields[-1]),
        too_large=sorted({*one.too_large, *two.too_large}),
    )


def _with_memory(
    made: Sequence[tuple[HloDifference, frozenset[Scope]]], sides: Sides
) -> list[HloDifference]:
    """What is alive of their scopes at the peak; a scope counts with the largest that has it."""
    one, two = sides.before.captures[0].summary, sides.after.captures[0].summary
    change = memory_change(one, two, sys.maxsize, sides.renames)
    left = {(row.scope, row.pass_): row.delta_size for row in change.rows} if change else {}
    rows = []
    for row, scopes in sorted(made, key=lambda pair: -abs(pair[0].delta or 0.0)):
        sizes = [left.pop(scope) for scope in sorted(scopes) if scope in left]
        rows.append(row.model_copy(update={"memory_delta_size": sum(sizes)}) if sizes else row)
    return rows


def _ops(side: Side) -> Times:
    times = side.elsewhere
    for program in side.programs:
        times = tuple(a + b for a, b in zip(times, program.total, strict=True))
    return times


def _without(times: RowTimes, parts: RowTimes | Sequence[RowTimes]) -> RowTimes:
    for part in [parts] if isinstance(parts, RowTimes) else parts:
        times = times + RowTimes(_negative(part.before), _negative(part.after))
    return times


def _negative(times: Times | None) -> Times | None:
    return None if times is None else tuple(-time for time in times)


def _row(found: _Found, fields: dict[str, Any]) -> HloDifference:
    places = f" In {plural(found.places, 'place')}." if found.places > 1 else ""
    return HloDifference(
        name=found.kind.name,
        kind=found.kind.name,
        sentence=f"{found.kind.sentence}{places}",
        program=found.program,
        scope=found.scope,
        pass_=found.pass_,
        source=found.source,
        before_ops=list(found.before_ops[:MOST_NAMES]),
        after_ops=list(found.after_ops[:MOST_NAMES]),
        num_before_ops=len(found.before_ops),
        num_after_ops=len(found.after_ops),
        places=found.places,
        **fields,
    )
