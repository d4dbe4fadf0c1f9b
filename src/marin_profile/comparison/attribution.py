"""The change of the target, split over ledger terms, families, regions and ops.

The target is the time that one step takes on one device: the mean over whole periods and devices;
of one step the mean over devices of its execution; of several captures the mean over them. Every
instant of it belongs to one op or is idle (or launch), so that each split's deltas sum to the
target's, exactly: rows are rounded to whole picoseconds such that they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeVar

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
    OpMatch,
    OpTime,
    Path,
    match_ops,
)
from marin_profile.comparison.model import (
    Attribution,
    GrossChange,
    InclusiveRegionChange,
    OpChange,
    OpSide,
    OpSplit,
    RegionChange,
    RegionSplit,
    Rename,
    Split,
    SplitRow,
)
from marin_profile.comparison.noise import (
    Judged,
    RowTimes,
    Spread,
    Times,
    judge,
    judge_captures,
    mean,
    of_steps,
)
from marin_profile.comparison.regions import (
    ITSELF,
    Gross,
    RegionTime,
    elsewhere,
    fewest_regions,
    inclusive_times,
    own_times,
)
from marin_profile.comparison.renames import Renames, find_renames
from marin_profile.events.scopes import SEPARATOR

IDLE_ROW, LAUNCH_ROW, NO_SCOPE_ROW, REST_ROW, OTHERS_ROW, NOISE_ROW, ELSEWHERE_ROW = (
    "(idle)",
    "(launch)",
    "(no scope)",
    "(rest)",
    "(others)",
    "(not told from noise)",
    "(other regions)",
)
NO_FAMILY_ROW = "(no family)"
ARROW = " -> "

R = TypeVar("R", bound=SplitRow)


@dataclass(frozen=True)
class Sides:
    """Both sides, and what is matched between them."""

    before: SideAccount
    after: SideAccount
    paired: bool = False

    @property
    def captures(self) -> tuple[int, int]:
        return self.before.num_captures, self.after.num_captures

    @property
    def delta(self) -> Fraction:
        return self.after.total - self.before.total

    @property
    def total(self) -> RowTimes:
        return RowTimes(self.before.totals, self.after.totals)

    @property
    def has_idle(self) -> bool:
        return self.before.captures[0].has_idle

    @property
    def launch(self) -> bool:
        return self.before.captures[0].launch

    def term(self, name: str) -> RowTimes:
        return RowTimes(self.before.term(name), self.after.term(name))

    @cached_property
    def renames(self) -> Renames:
        return find_renames(self.before.ops, self.after.ops)

    @cached_property
    def matches(self) -> list[OpMatch]:
        return match_ops(self.before.ops, self.renames.place(self.after.ops))

    @cached_property
    def inclusive(self) -> dict[Path, RegionTime]:
        return inclusive_times(self.matches)

    @cached_property
    def inclusive_judged(self) -> dict[Path, Judged]:
        rows = [self.inclusive[path].times for path in sorted(self.inclusive)]
        return dict(zip(sorted(self.inclusive), self.judged(rows), strict=True))

    @property
    def no_ops(self) -> dict[str, RowTimes]:
        """The rows of time that is of no listed op."""
        rows = {}
        if self.has_idle:
            rows[IDLE_ROW] = self.term("idle")
        if self.launch:
            rows[LAUNCH_ROW] = self.term("launch")
        rest = RowTimes(self.before.remainder, self.after.remainder)
        return rows if rest == RowTimes() else rows | {REST_ROW: rest}

    @cached_property
    def step_spreads(self) -> dict[str, tuple[Spread | None, Spread | None]]:
        """From the steps, by ledger term and "total"; empty where a side has several captures."""
        if self.captures != (1, 1):
            return {}
        one, two = (side.captures[0].step_terms() for side in (self.before, self.after))
        found = {name: (of_steps(one[name]), of_steps(two[name])) for name in one.keys() & two}
        if found:
            sums = [
                [sum(step) for step in zip(*terms.values(), strict=True)] for terms in (one, two)
            ]
            found["total"] = (of_steps(sums[0]), of_steps(sums[1]))
        return found

    @property
    def intervals_from(self) -> Literal["captures", "steps"] | None:
        if min(self.captures) > 1:
            return "captures"
        known = self.step_spreads.get("total", (None, None))
        return "steps" if None not in known else None

    def judged(self, rows: Sequence[RowTimes]) -> list[Judged]:
        """By captures against captures, the rows of one list."""
        return judge_captures(rows, self.captures, paired=self.paired)

    def judged_total(self) -> Judged:
        if self.intervals_from == "steps":
            return judge([self.total], [self.step_spreads["total"]])[0]
        return self.judged([self.total])[0]


def attribute(sides: Sides, top_k: int) -> Attribution:
    return Attribution(
        intervals_from=sides.intervals_from,
        ledger=_ledger(sides),
        families=_families(sides, top_k),
        headline=_headline(sides, top_k),
        regions=_regions(sides, top_k),
        ops=_ops(sides, top_k),
        renames=[
            Rename(before=SEPARATOR.join(before), after=SEPARATOR.join(after))
            for before, after in sides.renames.renamed()
        ],
    )


def _ledger(sides: Sides) -> Split:
    """All terms in their order."""
    left_out = {"idle": not sides.has_idle, "launch": not sides.launch}
    names = [name for name in TERMS if not left_out.get(name)]
    parts = {name: sides.term(name) for name in names}
    judged = None
    if sides.intervals_from == "steps":
        spreads = [sides.step_spreads.get(name, (None, None)) for name in names]
        judged = judge(list(parts.values()), spreads)
    rows = [SplitRow(**fields) for fields in _rows(parts, sides, judged)]
    return Split(rows=rows, total_rows=len(rows), **_noise_of(rows))


def _families(sides: Sides, top_k: int) -> Split:
    """What op groups own beyond the families' sums is none's (older summaries have no families)."""
    sums = [
        [
            {
                row.family: one.per_step(row.owned_duration)
                for row in one.summary.semantic_families
                if row.owned_duration is not None
            }
            for one in side.captures
        ]
        for side in (sides.before, sides.after)
    ]
    parts = {
        name: RowTimes(*(_of_captures(side, name) for side in sums))
        for name in sorted({name for side in sums for known in side for name in known})
    }
    parts |= {name: sides.no_ops[name] for name in sides.no_ops if name != REST_ROW}
    missing = RowTimes(
        *(
            tuple(
                one.total - one.term("idle") - one.term("launch") - sum(known.values(), Fraction(0))
                for one, known in zip(side.captures, captures, strict=True)
            )
            for side, captures in zip((sides.before, sides.after), sums, strict=True)
        )
    )
    if any((*(missing.before or ()), *(missing.after or ()))):
        parts[NO_FAMILY_ROW] = missing
    return Split(**_cut([SplitRow(**fields) for fields in _rows(parts, sides)], top_k))


def _of_captures(captures: Sequence[Mapping[str, Fraction]], name: str) -> Times | None:
    if not any(name in known for known in captures):
        return None
    return tuple(known.get(name, Fraction(0)) for known in captures)


# --- regions -----------------------------------------------------------------------------------


def _regions(sides: Sides, top_k: int) -> RegionSplit:
    return _region_split(sides, own_times(sides.matches), RegionTime(), top_k)


def _headline(sides: Sides, top_k: int) -> RegionSplit:
    own = own_times(sides.matches)
    judged = sides.judged([time.times for time in own.values()])
    noise = frozenset(
        [
            *(path for path, one in sides.inclusive_judged.items() if one.noise),
            *((*path, ITSELF) for path, one in zip(own, judged, strict=True) if one.noise),
        ]
    )
    found = fewest_regions(own, sides.inclusive, noise)
    rest = elsewhere(own, found)
    if () in own:
        found[()] = own[()]
    return _region_split(sides, found, rest, top_k)


def _region_split(
    sides: Sides, found: Mapping[Path, RegionTime], rest: RegionTime, top_k: int
) -> RegionSplit:
    times: list[tuple[str, str | None, RegionTime]] = []
    names = RegionNames(sides.renames)
    for path in sorted(found):
        name, renamed_from = names.of(path, found[path].times) if path else (NO_SCOPE_ROW, None)
        times.append((name, renamed_from, found[path]))
    if rest.times != RowTimes():
        times.append((ELSEWHERE_ROW, None, rest))
    no_ops = sides.no_ops
    parts = [time.times for _, _, time in times] + list(no_ops.values())
    fields = _fields([*(name for name, _, _ in times), *no_ops], parts, sides)
    rows = [
        RegionChange(
            **one,
            renamed_from=renamed_from,
            gross=gross_change(time.gross, picoseconds(one["delta"])),
            delta_by_pass=_by_pass(time, picoseconds(one["delta"])),
        )
        for one, (_, renamed_from, time) in zip(fields, times, strict=False)
    ]
    rows += [RegionChange(**one) for one in fields[len(times) :]]
    return RegionSplit(**_cut(rows, top_k))


class RegionNames:
    """What a region is called: as after the change, or as before where it is gone."""

    def __init__(self, renames: Renames) -> None:
        self._after_of = renames.after_of()

    def of(self, path: Path, times: RowTimes) -> tuple[str, str | None]:
        """(name, whole path before where that is another)."""
        if path[-1] == ITSELF:
            name, renamed_from = self.of(path[:-1], times)
            return f"{name}{SEPARATOR}{ITSELF}", renamed_from
        after = path if times.after is None else self._after_of.get(path, path)
        if after == path:
            return SEPARATOR.join(path), None
        last = after[-1] if after[-1] == path[-1] else f"{path[-1]}{ARROW}{after[-1]}"
        return SEPARATOR.join((*after[:-1], last)), SEPARATOR.join(path)


def gross_change(gross: Gross, delta: int) -> GrossChange:
    parts = [gross.added, gross.removed, gross.grown, gross.shrunk]
    added, removed, grown, shrunk = map(microseconds, apportion(parts, delta))
    return GrossChange(added=added, removed=removed, grown=grown, shrunk=shrunk)


def _by_pass(time: RegionTime, delta: int) -> dict[str, float]:
    rounded = apportion([time.by_pass[name] for name in sorted(time.by_pass)], delta)
    named = zip(sorted(time.by_pass), rounded, strict=True)
    return {name: microseconds(part) for name, part in named if name}


def inclusive_region_changes(sides: Sides) -> list[InclusiveRegionChange]:
    """Every region with all below it: those told from noise first, then the largest changes."""
    names, rows = RegionNames(sides.renames), []
    for path, time in sorted(sides.inclusive.items()):
        name, renamed_from = names.of(path, time.times)
        judged, fields = sides.inclusive_judged[path], _change(time.times)
        rows.append(
            InclusiveRegionChange(
                path=name,
                renamed_from=renamed_from,
                gross=gross_change(time.gross, picoseconds(fields["delta"])),
                interval=judged.interval,
                noise=judged.noise,
                **fields,
            )
        )
    return sorted(
        rows,
        key=lambda row: (
            row.noise is True,
            -abs(row.delta or 0),
            -max(row.before or 0, row.after or 0),
            row.path,
        ),
    )


# --- ops ---------------------------------------------------------------------------------------


def _ops(sides: Sides, top_k: int) -> OpSplit:
    matches, no_ops = sides.matches, sides.no_ops
    names = [_leading(match).group.canonical_name for match in matches]
    parts = [match.times for match in matches] + list(no_ops.values())
    fields = _fields([*names, *no_ops], parts, sides)
    rows = [
        OpChange(
            match=match.how, before_op=_op_side(match.before), after_op=_op_side(match.after), **one
        )
        for match, one in zip(matches, fields, strict=False)
    ]
    rows += [OpChange(match=one["name"].strip("()"), **one) for one in fields[len(matches) :]]
    rest = [row for row in rows if row.match in (ONLY_BEFORE, ONLY_AFTER, REST_ROW.strip("()"))]
    gross = Gross()
    for match in matches:
        gross.count(match, before=match.before is not None, after=match.after is not None)
    of_ops = sum(picoseconds(row.delta or 0.0) for row in rows[: len(matches)])
    return OpSplit(
        **_cut(rows, top_k),
        gross=gross_change(gross, of_ops),
        rest=sum_of_rows(REST_ROW, rest, sides.delta),
        matches=dict(sorted(Counter(row.match for row in rows).items())),
    )


def _leading(match: OpMatch) -> OpTime:
    side = match.before or match.after
    assert side is not None
    return side


def _op_side(side: OpTime | None) -> OpSide | None:
    if side is None:
        return None
    group = side.group
    return OpSide(
        canonical_name=group.canonical_name,
        names=group.names[:3],
        num_names=group.num_names,
        category=group.category,
        shape_signature=group.shape_signature,
        scope=group.scope,
        pass_=group.pass_,
        count=None if side.count is None else round(float(side.count), 6),
        duration=microseconds(side.time),
    )


# --- rows --------------------------------------------------------------------------------------


def _rows(
    parts: Mapping[str, RowTimes], sides: Sides, judged: Sequence[Judged] | None = None
) -> list[dict[str, Any]]:
    return _fields(list(parts), list(parts.values()), sides, judged)


def _fields(
    names: Iterable[str],
    parts: Sequence[RowTimes],
    sides: Sides,
    judged: Sequence[Judged] | None = None,
) -> list[dict[str, Any]]:
    """The fields of the rows of one split, rounded so that they sum to the target's delta. What
    summaries beyond 2**53 ps lose by rounding goes to the largest row."""
    rounded = apportion([part.delta for part in parts], sides.delta)
    judged = sides.judged(parts) if judged is None else judged
    return [
        {
            "name": name,
            "share_of_target": rounded_ratio(part.delta, sides.delta),
            "interval": one.interval,
            "noise": one.noise,
            **_change(part, delta),
        }
        for name, part, delta, one in zip(names, parts, rounded, judged, strict=True)
    ]


def _change(part: RowTimes, delta: int | None = None) -> dict[str, Any]:
    before, after = (None if side is None else mean(side) for side in (part.before, part.after))
    return change_fields(before, after, delta)


def _cut(rows: Sequence[R], top_k: int) -> dict[str, Any]:
    """What is told from noise first, and of that the largest deltas; ties: what has a name before
    what has none, size, name."""
    ordered = sorted(
        rows,
        key=lambda row: (
            row.noise is True,
            -abs(row.delta or 0),
            row.name.startswith("("),
            -max(row.before or 0, row.after or 0),
            row.name,
        ),
    )
    others = sum_of_rows(OTHERS_ROW, ordered[top_k:], None) if len(ordered) > top_k else None
    return {
        "rows": ordered[:top_k],
        "others": others,
        "total_rows": len(ordered),
        **_noise_of(rows),
    }


def _noise_of(rows: Sequence[SplitRow]) -> dict[str, Any]:
    noise = [row for row in rows if row.noise]
    return {
        "noise": sum_of_rows(NOISE_ROW, noise, None) if noise else None,
        "noise_rows": len(noise),
    }


def sum_of_rows(name: str, rows: Sequence[SplitRow], target: Fraction | None) -> SplitRow:
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
