"""The change of the target, split over ledger terms, families, regions and ops.

The target is the time that one step takes on one device: the mean over whole periods and devices;
of one step the mean over devices of its execution. Every instant of it belongs to one op or is idle
(or launch), so that each split's deltas sum to the target's, exactly: rows are rounded to whole
picoseconds such that they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from marin_profile.comparison.account import TERMS, SideAccount
from marin_profile.comparison.exact import (
    apportion,
    change_fields,
    microseconds,
    picoseconds,
    rounded_ratio,
)
from marin_profile.comparison.matching import (
    ONLY_AFTER,
    ONLY_BEFORE,
    SAME_KIND,
    OpMatch,
    OpTime,
    match_ops,
    total_time,
)
from marin_profile.comparison.model import (
    Attribution,
    OpChange,
    OpSide,
    OpSplit,
    RegionChange,
    RegionSplit,
    Split,
    SplitRow,
)
from marin_profile.comparison.regions import RegionTime, compared_times
from marin_profile.events.classify import (
    GROUP_COMMUNICATION,
    GROUP_COMPUTE,
    GROUP_TRANSFER,
    GROUP_UNKNOWN,
    kind_group,
)
from marin_profile.events.scopes import SEPARATOR

IDLE_ROW, LAUNCH_ROW, NO_SCOPE_ROW, REST_ROW, OTHERS_ROW = (
    "(idle)",
    "(launch)",
    "(no scope)",
    "(rest)",
    "(others)",
)
NO_FAMILY_ROW = "(no family)"
MOST_OPS = 5
TERM_OF_GROUP = {
    GROUP_COMPUTE: "compute",
    GROUP_COMMUNICATION: "communication",
    GROUP_TRANSFER: "transfers",
    GROUP_UNKNOWN: "unattributed ops",
}

BeforeAfter = tuple[Fraction | None, Fraction | None]
R = TypeVar("R", bound=SplitRow)


def attribute(before: SideAccount, after: SideAccount, top_k: int) -> Attribution:
    return Attribution(
        ledger=_ledger(before, after),
        families=_families(before, after, top_k),
        regions=_regions(before, after, top_k),
        ops=_ops(before, after, top_k),
    )


def _delta(part: BeforeAfter) -> Fraction:
    return (part[1] or Fraction(0)) - (part[0] or Fraction(0))


def _rounded(parts: Sequence[BeforeAfter], before: SideAccount, after: SideAccount) -> list[int]:
    """The parts' deltas as picoseconds that sum to the target's. What summaries beyond 2**53 ps
    lose by rounding goes to the largest part."""
    deltas = [_delta(part) for part in parts]
    lost = after.total - before.total - sum(deltas, Fraction(0))
    if lost and deltas:
        largest = max(range(len(deltas)), key=lambda at: (abs(deltas[at]), -at))
        deltas[largest] += lost
    return apportion(deltas)


def _idle_parts(before: SideAccount, after: SideAccount) -> dict[str, BeforeAfter]:
    parts: dict[str, BeforeAfter] = {IDLE_ROW: (before.term("idle"), after.term("idle"))}
    if before.launch:
        parts[LAUNCH_ROW] = (before.term("launch"), after.term("launch"))
    return parts


def _ledger(before: SideAccount, after: SideAccount) -> Split:
    names = [name for name in TERMS if name != "launch" or before.launch]
    parts = {name: (before.term(name), after.term(name)) for name in names}
    rows = _rows(parts, before, after)
    return Split(rows=rows, total_rows=len(rows))


def _families(before: SideAccount, after: SideAccount, top_k: int) -> Split:
    """What op groups own beyond the families' sums is none's (older summaries have no families)."""
    sums = [
        {
            row.family: side.per_step(row.owned_duration)
            for row in side.summary.semantic_families
            if row.owned_duration is not None
        }
        for side in (before, after)
    ]
    parts = _by_name(*sums) | _idle_parts(before, after)
    missing = [
        side.total - side.term("idle") - side.term("launch") - sum(known.values(), Fraction(0))
        for side, known in zip((before, after), sums, strict=True)
    ]
    if any(missing):
        parts[NO_FAMILY_ROW] = (missing[0], missing[1])
    return Split(**_cut(_rows(parts, before, after), top_k))


def _regions(before: SideAccount, after: SideAccount, top_k: int) -> RegionSplit:
    times = compared_times(before.ops, after.ops)
    found = {SEPARATOR.join(path) or NO_SCOPE_ROW: time for path, time in sorted(times.items())}
    parts: dict[str, BeforeAfter] = {
        name: (time.before, time.after) for name, time in found.items()
    }
    parts |= _idle_parts(before, after)
    if before.remainder or after.remainder:
        parts[REST_ROW] = (before.remainder, after.remainder)
    rows = [
        RegionChange(**dict(row), delta_by_pass=_by_pass(found.get(row.name)))
        for row in _rows(parts, before, after)
    ]
    return RegionSplit(**_cut(rows, top_k))


def _by_pass(time: RegionTime | None) -> dict[str, float]:
    if time is None:
        return {}
    return {name: microseconds(delta) for name, delta in sorted(time.by_pass.items()) if name}


def _ops(before: SideAccount, after: SideAccount, top_k: int) -> OpSplit:
    matches = match_ops(before.ops, after.ops)
    parts: list[BeforeAfter] = [
        (
            total_time(match.before) if match.before else None,
            total_time(match.after) if match.after else None,
        )
        for match in matches
    ]
    idle = _idle_parts(before, after)
    left_out = before.remainder or after.remainder
    if left_out:
        idle[REST_ROW] = (before.remainder, after.remainder)
    rounded = _rounded([*parts, *idle.values()], before, after)
    rows = [
        _op_row(match, part, delta, before, after)
        for match, part, delta in zip(matches, parts, rounded, strict=False)
    ]
    for (name, part), delta in zip(idle.items(), rounded[len(parts) :], strict=True):
        rows.append(
            OpChange(match=name.strip("()"), **_row_fields(name, part, delta, before, after))
        )
    rest = [row for row in rows if row.match in (ONLY_BEFORE, ONLY_AFTER, REST_ROW.strip("()"))]
    loose = [row for row in rows if row.match == SAME_KIND]
    return OpSplit(
        **_cut(rows, top_k),
        rest=_sum(REST_ROW, rest, _target(before, after)),
        loose=_sum("(same kind)", loose, _target(before, after)),
        matches=dict(sorted(Counter(row.match for row in rows).items())),
    )


def _op_row(
    match: OpMatch, part: BeforeAfter, delta: int, before: SideAccount, after: SideAccount
) -> OpChange:
    leading = max(match.before or match.after, key=lambda side: (side.time, side.key)).group
    name = leading.canonical_name
    if match.how == SAME_KIND:
        name = f"(other {TERM_OF_GROUP[kind_group(leading.category)]})"
    return OpChange(
        match=match.how,
        before_ops=_op_sides(match.before, before),
        after_ops=_op_sides(match.after, after),
        num_before_ops=len(match.before),
        num_after_ops=len(match.after),
        before_count=_count(match.before, before),
        after_count=_count(match.after, after),
        **_row_fields(name, part, delta, before, after),
    )


def _op_sides(sides: Iterable[OpTime], account: SideAccount) -> list[OpSide]:
    ordered = sorted(sides, key=lambda side: (-side.time, side.key))
    return [
        OpSide(
            canonical_name=side.group.canonical_name,
            names=side.group.names[:3],
            num_names=side.group.num_names,
            category=side.group.category,
            shape_signature=side.group.shape_signature,
            scope=side.group.scope,
            pass_=side.group.pass_,
            count=_count([side], account),
            duration=microseconds(side.time),
        )
        for side in ordered[:MOST_OPS]
    ]


def _count(sides: Sequence[OpTime], account: SideAccount) -> float | None:
    counts = [side.group.account_count for side in sides]
    known = [count for count in counts if count is not None]
    return round(sum(known) / account.divisor, 6) if known else None


def _by_name(
    before: Mapping[str, Fraction], after: Mapping[str, Fraction]
) -> dict[str, BeforeAfter]:
    names = sorted({*before, *after})
    return {name: (before.get(name), after.get(name)) for name in names}


def _rows(
    parts: Mapping[str, BeforeAfter], before: SideAccount, after: SideAccount
) -> list[SplitRow]:
    rounded = _rounded(list(parts.values()), before, after)
    return [
        SplitRow(**_row_fields(name, part, delta, before, after))
        for (name, part), delta in zip(parts.items(), rounded, strict=True)
    ]


def _row_fields(
    name: str, part: BeforeAfter, delta: int, before: SideAccount, after: SideAccount
) -> dict[str, Any]:
    return {
        "name": name,
        "share_of_target": rounded_ratio(_delta(part), _target(before, after)),
        **change_fields(*part, delta),
    }


def _target(before: SideAccount, after: SideAccount) -> Fraction:
    return after.total - before.total


def _cut(rows: Sequence[R], top_k: int) -> dict[str, Any]:
    """The largest deltas first; ties: what has a name before what has none, size, name."""
    ordered = sorted(
        rows,
        key=lambda row: (
            -abs(row.delta or 0),
            row.name.startswith("("),
            -max(row.before or 0, row.after or 0),
            row.name,
        ),
    )
    others = None
    if len(ordered) > top_k:
        others = _sum(OTHERS_ROW, ordered[top_k:], None)
    return {"rows": ordered[:top_k], "others": others, "total_rows": len(ordered)}


def _sum(name: str, rows: Sequence[SplitRow], target: Fraction | None) -> SplitRow:
    """The sum of rows that are rounded already."""

    def added(field: str) -> Fraction | None:
        known = [value for row in rows if (value := getattr(row, field)) is not None]
        return Fraction(sum(map(picoseconds, known))) if known or not rows else None

    shares = sum((Fraction(row.share_of_target or 0) for row in rows), Fraction(0))
    known = rows[0].share_of_target if rows else (0.0 if target else None)
    return SplitRow(
        name=name,
        share_of_target=None if known is None else round(float(shares), 6),
        **change_fields(added("before"), added("after"), int(added("delta") or 0)),
    )
