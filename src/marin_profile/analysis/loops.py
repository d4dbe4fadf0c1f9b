"""What the loops of each program take, and how often they go round.

Contract
* A loop's time is the self time of the ops in it and in the loops inside of it, over devices.
* Its iterations are how often most of the ops that stand directly in it ran, over devices: each
  runs once an iteration, but for those in branches. Where no count is that of half of them, the
  iterations are not known.
* Loops are known from HLO protos only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from marin_profile.analysis.ops import OpTotals
from marin_profile.events.scopes import OTHER

LEAST_ALIKE = 0.5


@dataclass
class LoopTotals:
    """Picoseconds. around: the loops outside of it, outermost first; by_scope: without the ops' own
    names; counts: how many of the ops directly in it ran so often."""

    module: str
    program_id: int | None
    name: str
    around: tuple[str, ...]
    exclusive: int = 0
    by_pass: Counter[str] = field(default_factory=Counter)
    by_scope: Counter[tuple[str, ...]] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)

    @property
    def iterations(self) -> int | None:
        if not self.counts:
            return None
        number, count = max((number, count) for count, number in self.counts.items())
        return count if number >= LEAST_ALIKE * self.counts.total() else None

    @property
    def pass_name(self) -> str:
        return min(self.by_pass, key=lambda name: (-self.by_pass[name], name), default=OTHER)


def loop_totals(ops: Iterable[OpTotals]) -> list[LoopTotals]:
    """Most time first; ties by program and name."""
    found: dict[tuple[str, int | None, str], LoopTotals] = {}
    for op in ops:
        loops = op.facts.loops
        for depth, name in enumerate(loops):
            key = op.module, op.program_id, name
            row = found.setdefault(key, LoopTotals(*key, loops[:depth]))
            row.exclusive += op.exclusive
            row.by_pass[op.facts.pass_name] += op.exclusive
            row.by_scope[op.facts.scope[:-1]] += op.exclusive
            if depth == len(loops) - 1:
                row.counts[op.count] += 1
    return sorted(found.values(), key=_order)


def _order(row: LoopTotals) -> tuple[int, str, int, str]:
    program_id = -1 if row.program_id is None else row.program_id
    return -row.exclusive, row.module, program_id, row.name
