"""What the first advice of cases with a known cause is worth: pairs of captures -> Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import mean, stdev
from typing import Any

NEAR = 0.25
KNOWN = "known"
YES, NO, UNDECIDED = "yes", "no", "undecided"


@dataclass(frozen=True)
class First:
    """The first advice of a capture; ceiling: us of its mean step, None where it has none."""

    id: str
    title: str
    ceiling: float | None = None
    certainty: str | None = None


@dataclass(frozen=True)
class Pair:
    """Mean step periods in us with the flaw and without, and the first advice with it."""

    flawed: float
    without: float
    first: First | None


@dataclass(frozen=True)
class Row:
    """first: the commonest first advice of the captures, and in how many of them it is; right: in
    how many of them an advice that names the flaw comes first. saved: the mean of the differences,
    spread: their standard deviation (None of one pair). holds: whether a known ceiling is within
    NEAR of what is saved, or a bound is not below it; UNDECIDED where it is not, but would be if
    the pairs had saved as much more or less as they differ; "" where there is no ceiling."""

    case: str
    flaw: str
    pairs: int
    step: float
    first: First | None
    said: int
    right: int
    ceiling: float | None
    saved: float
    spread: float | None
    holds: str


def is_right(first: First | None, ids: Collection[str], names: str) -> bool:
    return first is not None and first.id in ids and names in first.title


def row_of(case: str, flaw: str, pairs: Sequence[Pair], ids: Collection[str], names: str) -> Row:
    counts = Counter(pair.first.id for pair in pairs if pair.first is not None)
    most = min(counts, key=lambda one: (-counts[one], one), default=None)
    same = [pair.first for pair in pairs if pair.first is not None and pair.first.id == most]
    ceilings = [one.ceiling for one in same if one.ceiling is not None]
    ceiling = mean(ceilings) if ceilings else None
    differences = [pair.flawed - pair.without for pair in pairs]
    saved = mean(differences)
    return Row(
        case=case,
        flaw=flaw,
        pairs=len(pairs),
        step=mean(pair.flawed for pair in pairs),
        first=same[0] if same else None,
        said=len(same),
        right=sum(is_right(pair.first, ids, names) for pair in pairs),
        ceiling=ceiling,
        saved=saved,
        spread=stdev(differences) if len(differences) > 1 else None,
        holds="" if ceiling is None else _holds(ceiling, same[0].certainty, differences),
    )


def _holds(ceiling: float, certainty: str | None, differences: Sequence[float]) -> str:
    saved = mean(differences)
    around = stdev(differences) if len(differences) > 1 else 0.0
    least, most = ceiling / (1 + NEAR), ceiling / (1 - NEAR)
    if certainty != KNOWN:
        least, most = -inf, ceiling
    if least <= saved <= most:
        return YES
    return UNDECIDED if least <= saved + around and saved - around <= most else NO


def markdown(rows: Sequence[Row]) -> str:
    """Times in ms."""
    head = (
        "| case | its flaw | first advice | right | step | ceiling | really saves | ceiling holds |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        first = "none" if row.first is None else f"`{row.first.id}`: {row.first.title}"
        spread = "" if row.spread is None else f" +- {_ms(row.spread)}"
        ceiling = "-"
        if row.ceiling is not None and row.first is not None:
            bound = "" if row.first.certainty == KNOWN else "at most "
            ceiling = f"{bound}{_ms(row.ceiling)}"
        cells = [row.case, row.flaw, first, f"{row.right} of {row.pairs}", _ms(row.step)]
        lines.append(
            "| " + " | ".join([*cells, ceiling, _ms(row.saved) + spread, row.holds or "-"]) + " |"
        )
    right = sum(row.right == row.pairs for row in rows)
    hold = Counter(row.holds for row in rows)
    held = f"The ceiling holds in {hold[YES]}, is undecided in {hold[UNDECIDED]}."
    lines += ["", f"Right in all captures: {right} of {len(rows)} cases. {held}"]
    return "\n".join(lines) + "\n"


def _ms(us: float) -> str:
    return f"{us / 1_000:.2f}"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
