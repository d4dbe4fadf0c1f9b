"""Which scopes after are which scopes before, under another name.

Contract: from the root down, a scope that both sides have is itself. Of those that one side only
has below the same scope, the pair that shares most ops (kind, shapes, pass, name and primitive) is
one renamed scope if it shares at least half of them; ties go to equal numbers in the names, then
to equal places in order (`block_3` is `layer_3`), then to the names. A scope that stands one level
deeper (less deep) on the other side, with half of its ops, is itself as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from marin_profile.base.text import natural_order
from marin_profile.comparison.matching import OpTime, Path, known_regions, own_region, placed

LEAST_SHARED = Fraction(1, 2)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Renames:
    """`before_of`: every region after in the names of before."""

    before_of: Mapping[Path, Path]

    def after_of(self) -> dict[Path, Path]:
        return {before: after for after, before in self.before_of.items()}

    def renamed(self) -> list[tuple[Path, Path]]:
        """(before, after) of the regions that stand there under another name or at another depth,
        those above them taken as they are."""
        return sorted(
            (before, after)
            for after, before in self.before_of.items()
            if before != (*self.before_of.get(after[:-1], ()), after[-1])
        )

    def place(self, sides: Iterable[OpTime]) -> list[OpTime]:
        """Ops after, each placed by the deepest region above it that is known."""
        return [self._placed(side) for side in sides]

    def before_path(self, path: Path) -> Path:
        """A path after in the names of before."""
        above = next(
            (path[:depth] for depth in range(len(path), 0, -1) if path[:depth] in self.before_of),
            (),
        )
        return (*self.before_of.get(above, ()), *path[len(above) :])

    def _placed(self, side: OpTime) -> OpTime:
        before = self.before_path(side.path)
        return placed(side, before) if before != side.path else side


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
    pairs: dict[Path, Path] = {(name,): (name,) for name in one.below.keys() & two.below.keys()}
    pairs |= _deeper(_others(one, pairs), _others(two, pairs.values()))
    pairs |= {
        old: new for new, old in _deeper(_others(two, pairs.values()), _others(one, pairs)).items()
    }
    pairs |= _alike(_others(one, pairs), _others(two, pairs.values()))
    for name in two.below:
        found[*after, name] = (*before, name)
    for old, new in pairs.items():
        found[*after, *new] = (*before, *old)
        _descend(_at(one, old), _at(two, new), (*before, *old), (*after, *new), found)


def _at(scope: _Scope, path: Path) -> _Scope:
    for name in path:
        scope = scope.below[name]
    return scope


def _others(scope: _Scope, taken: Iterable[Path]) -> dict[str, _Scope]:
    """What stands below it and is not taken, nor anything in it."""
    names = {path[0] for path in taken}
    return {
        name: scope.below[name] for name in sorted(scope.below.keys() - names, key=natural_order)
    }


def _deeper(one: Mapping[str, _Scope], two: Mapping[str, _Scope]) -> dict[Path, Path]:
    """Scopes of `one` that stand in one of `two`."""
    found: dict[Path, Path] = {}
    for name, scope in one.items():
        for around, other in two.items():
            inner = other.below.get(name)
            if inner and _shared(scope.ops, inner.ops) >= LEAST_SHARED:
                found.setdefault((name,), (around, name))
    return found


def _alike(one: Mapping[str, _Scope], two: Mapping[str, _Scope]) -> dict[Path, Path]:
    candidates = []
    for at, (name, scope) in enumerate(one.items()):
        for to, (new, other) in enumerate(two.items()):
            shared = _shared(scope.ops, other.ops)
            if shared >= LEAST_SHARED:
                other_number = _DIGITS.findall(name) != _DIGITS.findall(new)
                candidates.append((-shared, other_number, abs(at - to), name, new))
    found: dict[Path, Path] = {}
    for _, _, _, name, new in sorted(candidates):
        if (name,) not in found and (new,) not in found.values():
            found[name,] = (new,)
    return found


def _shared(one: Counter[tuple[str, ...]], two: Counter[tuple[str, ...]]) -> Fraction:
    return Fraction((one & two).total(), max(one.total(), two.total()))
