"""Self time by scope path and pass: every prefix of an op's path is a region.

Contract: inclusive covers the region and all below it, exclusive the ops whose path is the region
itself; both are sums of self time over devices, so a parent's inclusive time is its exclusive time
plus its children's inclusive times. Ops without a scope are in no region.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from marin_profile.analysis.ops import OpTotals
from marin_profile.events.scopes import SEPARATOR


@dataclass
class RegionTotals:
    """Picoseconds; count = op executions inside. fused_with: by scope outside of the region, the
    self time of its fusions that also hold ops of that scope."""

    path: tuple[str, ...]
    count: int = 0
    inclusive: int = 0
    exclusive: int = 0
    by_pass: dict[str, int] = field(default_factory=dict)
    fused_with: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return SEPARATOR.join(self.path)


def region_totals(ops: Iterable[OpTotals]) -> list[RegionTotals]:
    """Most inclusive time first; ties by depth, then path."""
    found: dict[tuple[str, ...], RegionTotals] = {}
    for op in ops:
        path = op.facts.scope
        for depth in range(1, len(path) + 1):
            region = found.setdefault(path[:depth], RegionTotals(path[:depth]))
            region.count += op.count
            region.inclusive += op.exclusive
            by_pass = region.by_pass
            by_pass[op.facts.pass_name] = by_pass.get(op.facts.pass_name, 0) + op.exclusive
            for other in op.facts.fused_with:
                if other[:depth] != path[:depth]:
                    region.fused_with[other] = region.fused_with.get(other, 0) + op.exclusive
            if depth == len(path):
                region.exclusive += op.exclusive
    return sorted(found.values(), key=lambda row: (-row.inclusive, len(row.path), row.path))
