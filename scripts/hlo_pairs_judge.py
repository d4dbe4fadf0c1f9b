"""Captures of a pair and its known edit -> whether the first difference that is found names it.

Right is a difference of one of the edit's kinds, in its scope where it has one, one of whose ops
shows the edit in the text of the compiled programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

# What a row of a comparison may lose by rounding, in us.
ROUNDED = 0.001

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?(\S+) \(.*\{$")
_NAME = re.compile(r"^\s+(?:ROOT )?%?(\S+) = ")
_WITHIN = re.compile(r"(?:calls|to_apply)=%?([^\s,}]+)")
_SILENT = re.compile(r" (?:parameter|constant|get-tuple-element|tuple|bitcast)\(")


class Pair(Protocol):
    """What `hlo_pairs_cases.Case` and `hlo_pairs_levanter.Training` say of their edit."""

    name: str
    edit: str
    kind: str
    also: tuple[str, ...]
    scope: str
    before: str
    after: str


class Difference(Protocol):
    """What a comparison says of one difference, as far as it is judged."""

    kind: str
    scope: str | None
    before_ops: list[str]
    after_ops: list[str]


@dataclass(frozen=True)
class Truth:
    """`kinds`: those that are right, none where the edit has no effect; `scope`: what its scope
    holds; `before` and `after`: the instructions that show it."""

    case: str
    edit: str
    kinds: tuple[str, ...]
    scope: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def is_named_by(self, difference: Difference) -> bool:
        sides = ((difference.before_ops, self.before), (difference.after_ops, self.after))
        is_there = self.scope in (difference.scope or "")
        is_shown = any(set(ops) & set(own) for ops, own in sides)
        return difference.kind in self.kinds and is_there and is_shown

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """`found`: the kind of the first difference, "" for none; `place`: of the first that is right,
    from 1, None for none; `number`: of all differences. Times in us, of the target of the
    comparison; `unexplained`: what its rows do not sum to."""

    truth: Truth
    found: str
    sentence: str
    place: int | None
    number: int
    before: float
    delta: float
    first_delta: float | None
    unexplained: float

    @property
    def is_right(self) -> bool:
        return self.place == 1 if self.truth.kinds else not self.number

    @property
    def sums(self) -> bool:
        return abs(self.unexplained) <= ROUNDED


# --- the truth ---


def truth_of(pair: Pair, before: str, after: str) -> Truth:
    """`before` and `after`: the compiled programs' text."""
    kinds = (pair.kind, *pair.also) if pair.kind else ()
    shown = (
        instructions_shown(text, pattern)
        for text, pattern in ((before, pair.before), (after, pair.after))
    )
    return Truth(pair.name, pair.edit, kinds, pair.scope, *shown)


def instructions_shown(text: str, pattern: str) -> tuple[str, ...]:
    """The instructions that run and whose line, or one of a computation within, the pattern
    matches."""
    if not pattern:
        return ()
    lines = _by_computation(text)
    within = {name for line in text.splitlines() for name in _WITHIN.findall(line)}

    def is_shown(line: str) -> bool:
        return bool(re.search(pattern, line)) or any(
            is_shown(other) for name in _WITHIN.findall(line) for other in lines[name]
        )

    return tuple(
        _NAME.findall(line)[0]
        for computation, inside in lines.items()
        if computation not in within
        for line in inside
        if not _SILENT.search(line) and is_shown(line)
    )


def _by_computation(text: str) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    inside: list[str] = []
    for line in text.splitlines():
        if opened := _COMPUTATION.match(line):
            inside = lines.setdefault(opened[1], [])
        elif _NAME.match(line):
            inside.append(line)
    return lines


# --- the answer ---


def judged(truth: Truth, before: Sequence[Path], after: Sequence[Path]) -> Row:
    from marin_profile.comparison.hlo.explain import explain

    comparison = explain(before, after)
    hlo, target = comparison.hlo, comparison.target
    if hlo is None or target is None or hlo.cannot_answer:
        why = comparison.cannot_attribute if hlo is None else hlo.cannot_answer
        raise SystemExit(f"{truth.case}: {why}")
    found = hlo.differences
    parts = [*found, hlo.others, hlo.unchanged, hlo.elsewhere]
    explained = sum(part.delta or 0.0 for part in parts if part is not None)
    places = (at for at, one in enumerate(found, 1) if truth.is_named_by(one))
    first = found[0] if found else None
    return Row(
        truth=truth,
        found=first.kind if first else "",
        sentence=first.sentence if first else "",
        place=next(places, None),
        number=hlo.total_differences,
        before=target.before or 0.0,
        delta=target.delta or 0.0,
        first_delta=first.delta if first else None,
        unexplained=(target.delta or 0.0) - explained,
    )


# --- the table ---


def markdown(rows: Sequence[Row]) -> str:
    """Times in ms."""
    titles = ("case", "its edit", "kind", "first difference", "right", "step", "change")
    titles = (*titles, "of it the first", "sums")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in rows:
        right = "yes" if row.is_right else "no" if row.place is None else f"no, {row.place}."
        cells = [
            row.truth.case,
            row.truth.edit,
            " or ".join(f"`{kind}`" for kind in row.truth.kinds) or "none",
            f"`{row.found}`: {row.sentence}" if row.found else "none",
            right if row.truth.kinds or row.is_right else f"no, {row.number} differences",
            _ms(row.before),
            _ms(row.delta, "+"),
            "-" if row.first_delta is None else _ms(row.first_delta, "+"),
            "yes" if row.sums else f"no, by {_ms(row.unexplained)}",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    edits = [row for row in rows if row.truth.kinds]
    inert = [row for row in rows if not row.truth.kinds]
    said = [f"{sum(row.is_right for row in edits)} of {len(edits)} edits named first"]
    if inert:
        said.append(f"{sum(row.is_right for row in inert)} of {len(inert)} without effect silent")
    return "\n".join([*lines, "", f"{'; '.join(said)}."]) + "\n"


def _ms(us: float, sign: str = "") -> str:
    return f"{us / 1_000:{sign}.2f}"


def written(page: str, name: str, table: str) -> str:
    """The page with the table between its markers."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if begin not in page or end not in page:
        raise SystemExit(f"the page has no marker {begin.strip()!r} and {end!r}")
    head, tail = page.split(begin)[0], page.split(end)[1]
    return f"{head}{begin}\n{table}\n{end}{tail}"
