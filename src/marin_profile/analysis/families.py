"""Totals per semantic family over all ops, not only the largest ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from marin_profile.analysis.ops import OpTotals
from marin_profile.events.classify import family


@dataclass
class FamilyTotals:
    """Picoseconds; `shapes` holds self time by shape signature. The example is the op with most
    self time."""

    name: str
    example: str
    count: int = 0
    total: int = 0
    exclusive: int = 0
    owned: int = 0
    shapes: dict[str, int] = field(default_factory=dict)

    @property
    def dominant_shape(self) -> str | None:
        shapes = {shape: time for shape, time in self.shapes.items() if shape}
        return min(shapes, key=lambda shape: (-shapes[shape], shape)) if shapes else None


def family_totals(ops: Iterable[OpTotals]) -> list[FamilyTotals]:
    """`ops` ordered by self time, as `op_totals` gives them."""
    found: dict[str, FamilyTotals] = {}
    for op in ops:
        fact = op.facts
        name = family(fact.name, fact.scope_path, fact.kind, fact.hlo_category)
        row = found.setdefault(name, FamilyTotals(name, fact.name))
        row.count += op.count
        row.total += op.total
        row.exclusive += op.exclusive
        row.owned += op.owned
        row.shapes[fact.shape] = row.shapes.get(fact.shape, 0) + op.exclusive
    return sorted(found.values(), key=lambda row: (-row.exclusive, row.name))
