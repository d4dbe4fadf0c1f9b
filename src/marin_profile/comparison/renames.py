"""Which scopes after are which scopes before, under another name.

Contract: from the root down, a scope that both sides have is itself. Of those that one side only
has below the same scope, the pair that shares most ops (kind, shapes, pass, name and primitive) is
one renamed scope if it shares at least half of them; ties go to equal numbers in the names, then
to equal places in order (`block_3` is `layer_3`), then to the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from marin_profile.comparison.matching import OpTime, Path, known_regions, own_region, placed

LEAST_SHARED = Fraction(1, 2)
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Renames:
    """`before_of`: every region after in the names of before."""

    before_of: Mapping[Path, Path]

    def after_of(self) -> dict[Path, Path]:
        return {before: after for after, before in self.before_of.items()}

    def renamed(self) -> list[tuple[Path, Path]]:
        """(before, after) of the regions whose own name changed."""
        return sorted(
            (before, after)
            for after, before in self.before_of.items()
            if before and before[-1] != after[-1]
        )

    def place(self, sides: Iterable[OpTime]) -> list[OpTime]:
        """Ops after, each placed by the deepest region above it that is known."""
        return [self._placed(side) for side in sides]

    def _placed(self, side: OpTime) -> OpTime:
        path = side.path
        above = next(
            (path[:depth] for depth in range(len(path), 0, -1) if path[:depth] in self.before_of),
            (),
        )
        before = (*self.before_of.get(above, ()), *path[len(above) :])
        return placed(side, before) if before != path else side


def find_renames(before: Iterable[OpTime], after: Iterable[OpTime]) -> Renames:
    found: dict[Path, Path] = {}
    _descend(_tree(before), _tree(after), (), (), found)
    return Renames(found)


@dataclass
class _Scope:
    """`ops`: how often each kind of op stands in it or below."""

    ops: Counter[tuple[str, ...]] = field(default_factory=Counter)
    below: dict[str, _Scope] = field(default_factory=dict)


def _tree(sides: Iterable[OpTime]) -> _Scope:
    sides, root = list(sides), _Scope()
    known = known_regions(sides)
    for side in sides:
        group, scope = side.group, root
        leaf = side.path[-1] if side.path and side.path not in known else ""
        kind = (
            group.category,
            group.shape_signature or "",
            group.pass_ or "",
            group.canonical_name,
            leaf,
        )
        for name in own_region(side, known):
            scope = scope.below.setdefault(name, _Scope())
            scope.ops[kind] += 1
    return root


def _descend(one: _Scope, two: _Scope, before: Path, after: Path, found: dict[Path, Path]) -> None:
    pairs = {name: name for name in one.below.keys() & two.below.keys()}
    gone = sorted(one.below.keys() - pairs.keys(), key=_natural)
    come = sorted(two.below.keys() - pairs.keys(), key=_natural)
    pairs |= _alike(one, two, gone, come)
    for name, new in pairs.items():
        found[*after, new] = (*before, name)
        _descend(one.below[name], two.below[new], (*before, name), (*after, new), found)
    for new in come:
        if new not in pairs.values():
            found[*after, new] = (*before, new)


def _alike(
    one: _Scope, two: _Scope, gone: Sequence[str], come: Sequence[str]
) -> Iterator[tuple[str, str]]:
    candidates = []
    for at, name in enumerate(gone):
        for to, new in enumerate(come):
            shared = _shared(one.below[name].ops, two.below[new].ops)
            if shared >= LEAST_SHARED:
                other_number = _DIGITS.findall(name) != _DIGITS.findall(new)
                candidates.append((-shared, other_number, abs(at - to), name, new))
    taken: set[tuple[bool, str]] = set()
    for _, _, _, name, new in sorted(candidates):
        if (False, name) in taken or (True, new) in taken:
            continue
        taken |= {(False, name), (True, new)}
        yield name, new


def _shared(one: Counter[tuple[str, ...]], two: Counter[tuple[str, ...]]) -> Fraction:
    return Fraction((one & two).total(), max(one.total(), two.total()))


def _natural(name: str) -> list[tuple[int, str]]:
    """layer_2 before layer_10."""
    return [(int(part) if part.isdigit() else -1, part) for part in _DIGITS.split(name)]
