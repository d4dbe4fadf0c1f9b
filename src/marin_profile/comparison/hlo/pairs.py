"""Which program before is which after.

Contract: programs of one name, those most alike first; then what is left by what it computes, where
at least half of it is the same: a function that was renamed.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.comparison.hlo.sides import SideProgram

LEAST_ALIKE = 0.5

Pair = tuple[SideProgram | None, SideProgram | None]


def pair_programs(before: Sequence[SideProgram], after: Sequence[SideProgram]) -> list[Pair]:
    """Every program in one pair; None where it has no partner. In the order of before, then
    after."""
    ranked = sorted(
        (one.name != two.name, -alike(one, two), a, b)
        for a, one in enumerate(before)
        for b, two in enumerate(after)
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for renamed, likeness, a, b in ranked:
        if a not in partner and b not in taken and not (renamed and -likeness < LEAST_ALIKE):
            partner[a] = b
            taken.add(b)
    pairs: list[Pair] = [
        (one, after[partner[a]] if a in partner else None) for a, one in enumerate(before)
    ]
    return [*pairs, *((None, two) for b, two in enumerate(after) if b not in taken)]


def alike(one: SideProgram, two: SideProgram) -> float:
    """Of the steps of both, the share that the other has too."""
    both = one.contents.total() + two.contents.total()
    return 2 * (one.contents & two.contents).total() / both if both else 1.0
