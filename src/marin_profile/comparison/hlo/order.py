"""In which order differences are told, and which may follow from which.

Contract
* What is told from noise first, and of that the largest change; of what is not, causes before what
  follows from them, in the order of the kinds.
* Copies, fusions and single ops that come and go may follow from a cause in the same program: the
  difference of such a kind whose ops take most of the time. It stands ahead of them, unless its ops
  take next to nothing beside them: then they have a cause of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.comparison.hlo.rules import CONSEQUENCES, KINDS
from marin_profile.comparison.model import HloDifference

# Of the changes that would follow from it, the share that a cause's own ops take at least.
LEAST_CAUSE = 0.1


def in_order(rows: Sequence[HloDifference]) -> list[HloDifference]:
    ordered = sorted(rows, key=_rank)
    for program in dict.fromkeys(row.program for row in ordered):
        ordered = _cause_first(ordered, program)
    return ordered


def _rank(row: HloDifference) -> tuple[object, ...]:
    size = -abs(row.delta or 0.0)
    order = (KINDS.index(row.kind), size) if row.noise else (0, size)
    return (row.noise is True, *order, row.kind, row.program, row.scope or "")


def _cause_first(ordered: list[HloDifference], program: str) -> list[HloDifference]:
    own = [row for row in ordered if row.program == program]
    following = [row for row in own if row.kind in CONSEQUENCES]
    causes = [row for row in own if row.kind not in CONSEQUENCES]
    if not causes or not following:
        return ordered
    cause = max(causes, key=_taken)  # of equal ones the first
    if _taken(cause) < LEAST_CAUSE * sum(abs(row.delta or 0.0) for row in following):
        return ordered
    told = [
        row.model_copy(update={"may_follow_from": cause.kind})
        if row.program == program and row.kind in CONSEQUENCES
        else row
        for row in ordered
        if row is not cause
    ]
    first = next(
        at for at, row in enumerate(told) if row.may_follow_from and row.program == program
    )
    at = min(first, ordered.index(cause))
    return [*told[:at], cause, *told[at:]]


def _taken(row: HloDifference) -> float:
    return (row.before or 0.0) + (row.after or 0.0)
