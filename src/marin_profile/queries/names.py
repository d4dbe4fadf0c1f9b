"""Op names: which ones a summary knows, and which one a person means.

Contract: a name is looked up exact first, then as an unambiguous part, then as the kind of the ops
("psum"); what is ambiguous is never guessed: the candidates are returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marin_profile.queries.kinds import find_kinds, is_of_kind
from marin_profile.queries.model import CannotAnswer
from marin_profile.schema import ProfileSummary

MOST_CANDIDATES = 10
# Likeness is slow to tell: a large pool is narrowed to names that start alike.
LARGEST_POOL = 2000


@dataclass(frozen=True)
class Match:
    """`name` if one name is meant; else `candidates` (ambiguous, or merely close)."""

    name: str | None = None
    candidates: tuple[str, ...] = ()
    is_ambiguous: bool = False


def known_ops(summary: ProfileSummary) -> frozenset[str]:
    """Every op name that the summary mentions."""
    names: set[str] = set()
    names.update(op.name for op in summary.hot_ops)
    for group in summary.op_groups:
        names.update(group.names)
    names.update(gap_ops(summary))
    names.update(context.op_name for context in summary.gap_region_contexts)
    if summary.coverage:
        names.update(op.name for op in summary.coverage.unattributed_ops)
    return frozenset(names)


def gap_ops(summary: ProfileSummary) -> set[str]:
    """Every op that a gap ends at, as payload or as marker."""
    names = {gap.name for gap in summary.gap_before_ops}
    for gap in summary.gap_before_ops:
        names.update(name for name in (gap.payload_op, gap.marker_op) if name)
    return names


def find_op(wanted: str, names: Iterable[str], summary: ProfileSummary) -> Match:
    """The one op of `names` that `wanted` means, by its name, else by its kind."""
    pool = set(names)
    match = find_name(wanted, pool)
    _, kinds = find_kinds(wanted)
    if match.name is not None or match.is_ambiguous or not kinds:
        return match
    of_kind = sorted(pool & _ops_of_kind(summary, kinds[0]))
    if len(of_kind) == 1:
        return Match(of_kind[0])
    return Match(candidates=tuple(of_kind), is_ambiguous=bool(of_kind))


def _ops_of_kind(summary: ProfileSummary, kind: str) -> set[str]:
    names = {op.name for op in summary.hot_ops if is_of_kind(op.category, kind)}
    for group in summary.op_groups:
        if is_of_kind(group.category, kind):
            names.update(group.names)
    return names


def find_name(wanted: str, names: Iterable[str]) -> Match:
    """The one name that `wanted` means: exact, but for case or "%", or the one it is part of."""
    pool = sorted(set(names))
    if wanted in pool:
        return Match(wanted)
    folded = _fold(wanted)
    for alike in (
        [name for name in pool if _fold(name) == folded],
        [name for name in pool if folded and folded in _fold(name)],
    ):
        if len(alike) == 1:
            return Match(alike[0])
        if alike:
            return Match(candidates=tuple(alike), is_ambiguous=True)
    return Match(candidates=_close(folded, pool))


def _fold(name: str) -> str:
    return name.strip().lstrip("%").casefold()


def _close(folded: str, pool: list[str]) -> tuple[str, ...]:
    from difflib import get_close_matches

    by_fold = {_fold(name): name for name in reversed(pool) if len(name) <= 200}
    if len(by_fold) > LARGEST_POOL:
        alike = [fold for fold in sorted(by_fold) if fold[:3] == folded[:3]][:LARGEST_POOL]
        by_fold = {fold: by_fold[fold] for fold in alike}
    return tuple(by_fold[near] for near in get_close_matches(folded, by_fold, n=5, cutoff=0.6))


def no_such_op(wanted: str, match: Match) -> CannotAnswer:
    """Why a name that was not found, or not found alone, gives no answer."""
    shown = match.candidates[:MOST_CANDIDATES]
    if match.is_ambiguous:
        return CannotAnswer(
            f"'{wanted}' may mean several ops.",
            "Ask with the full name of one of the candidates"
            + (" (the list is cut)." if len(match.candidates) > len(shown) else "."),
            shown,
        )
    return CannotAnswer(
        f"No op named '{wanted}' is in this summary.",
        "Ask with an op's name as the answer of top_ops gives it.",
        shown,
    )
