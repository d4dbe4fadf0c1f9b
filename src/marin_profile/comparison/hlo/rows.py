"""Differences, and what is not in them, as rows that sum to the change of the target."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from marin_profile.base.text import plural
from marin_profile.comparison.attribution import Sides, sum_of_rows
from marin_profile.comparison.exact import apportion, change_fields, rounded_ratio
from marin_profile.comparison.hlo.found import Found, Scope
from marin_profile.comparison.hlo.order import in_order
from marin_profile.comparison.hlo.sides import Side
from marin_profile.comparison.memory import memory_change
from marin_profile.comparison.model import HloChanges, HloDifference, HloProgramPair, SplitRow
from marin_profile.comparison.noise import RowTimes, Times, mean

UNCHANGED_ROW, ELSEWHERE_ROW, OTHERS_ROW = "(same program)", "(no program)", "(others)"
MOST_NAMES = 5


def summed(
    found: Sequence[Found],
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


def _row(found: Found, fields: dict[str, Any]) -> HloDifference:
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
