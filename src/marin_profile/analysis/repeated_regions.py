"""Self time of scopes that repeat, such as a model's unrolled layers, folded into one.

Contract
* Siblings fold if their names are alike but for one number ("layer_3", "h.3", "3") and they are
  alike inside: of all that either holds, as (path below, pass, shape), they share at least
  LEAST_SHARED with what most of them hold. Fewer than two do not fold. What is inside is folded
  first, so that repetition inside repetition is found.
* Programs are no repetition: jit(f1) and jit(f2) stay two.
* A folded row is the sum of its members, the plain regions that it stands for, exactly.
* The number becomes "*". Siblings of one such name that differ inside are folded apart, and the
  smaller groups say like which they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from marin_profile.analysis.ops import OpTotals
from marin_profile.base.text import natural_order
from marin_profile.events.scopes import SEPARATOR

LEAST_SHARED = 0.5
# Kinds of siblings of one name that are told apart; what is like none of them does not fold.
MOST_KINDS = 16
ANY = "*"

Path = tuple[str, ...]
Inside = frozenset[tuple[Path, str, str]]
_NUMBER = re.compile(r"\d+")


@dataclass
class RepeatedRegion:
    """Picoseconds. members: inclusive time by the plain path that it stands for; count: op
    executions inside."""

    path: Path
    count: int = 0
    inclusive: int = 0
    exclusive: int = 0
    by_pass: dict[str, int] = field(default_factory=dict)
    members: dict[Path, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return SEPARATOR.join(self.path)


def repeated_regions(ops: Iterable[OpTotals]) -> list[RepeatedRegion]:
    """Those that are folded or inside of one that is. Most inclusive time first; ties by depth,
    then path."""
    with_scope = [op for op in ops if op.facts.scope]
    found: dict[Path, RepeatedRegion] = {}
    for op, path in zip(with_scope, _folded_paths(with_scope), strict=True):
        plain = op.facts.scope
        first = next((at for at, name in enumerate(path) if name != plain[at]), len(path))
        for depth in range(first + 1, len(path) + 1):
            row = found.setdefault(path[:depth], RepeatedRegion(path[:depth]))
            row.count += op.count
            row.inclusive += op.exclusive
            row.by_pass[op.facts.pass_name] = row.by_pass.get(op.facts.pass_name, 0) + op.exclusive
            row.members[plain[:depth]] = row.members.get(plain[:depth], 0) + op.exclusive
            if depth == len(path):
                row.exclusive += op.exclusive
    return sorted(found.values(), key=lambda row: (-row.inclusive, len(row.path), row.path))


def _folded_paths(ops: Sequence[OpTotals]) -> list[Path]:
    """Of each op, from the inside out."""
    paths = [list(op.facts.scope) for op in ops]
    for depth in range(max(map(len, paths), default=0), 0, -1):
        families: dict[Path, dict[str, list[int]]] = {}
        for at, op in enumerate(ops):
            plain = op.facts.scope
            if len(plain) < depth or (depth == 1 and plain[0].endswith(")")):
                continue
            if _NUMBER.search(plain[depth - 1]):
                siblings = families.setdefault(plain[: depth - 1], {})
                siblings.setdefault(plain[depth - 1], []).append(at)
        for siblings in families.values():
            inside = {
                name: _inside([(tuple(paths[at][depth:]), ops[at]) for at in members])
                for name, members in siblings.items()
            }
            for name, folded in fold_names(inside).items():
                for at in siblings[name]:
                    paths[at][depth - 1] = folded
    return list(map(tuple, paths))


def _inside(ops: Iterable[tuple[Path, OpTotals]]) -> Inside:
    """An op of the scope itself that says no shape tells nothing."""
    found = ((path, op.facts.pass_name, op.facts.shape) for path, op in ops)
    return frozenset(one for one in found if one[0] or one[2])


def fold_names(siblings: Mapping[str, Inside]) -> dict[str, str]:
    """The siblings that fold, and the name that each folds into."""
    by_stem: dict[str, list[str]] = {}
    for name in sorted(siblings, key=natural_order):
        for stem in _stems(name):
            by_stem.setdefault(stem, []).append(name)
    folded: dict[str, str] = {}
    for stem, names in sorted(by_stem.items(), key=lambda item: (-len(item[1]), item[0])):
        left = [name for name in names if name not in folded]
        for index, group in enumerate(_alike(left, siblings)):
            suffix = f" like {group[0]}" if index else ""
            folded.update(dict.fromkeys(group, stem + suffix))
    return folded


def _stems(name: str) -> Iterator[str]:
    """The name with each of its numbers left open in turn."""
    for match in _NUMBER.finditer(name):
        yield f"{name[: match.start()]}{ANY}{name[match.end() :]}"


def _alike(names: Sequence[str], siblings: Mapping[str, Inside]) -> list[list[str]]:
    """Groups of at least two that are alike inside, the largest first."""
    kinds = Counter(siblings[name] for name in names if siblings[name])
    place = {siblings[name]: at for at, name in reversed(list(enumerate(names)))}
    chosen: list[Inside] = []
    group_of: dict[Inside, int] = {}
    for kind in sorted(kinds, key=lambda kind: (-kinds[kind], place[kind])):
        near = next((at for at, one in enumerate(chosen) if _are_alike(kind, one)), None)
        if near is None:
            if len(chosen) == MOST_KINDS:
                continue
            near = len(chosen)
            chosen.append(kind)
        group_of[kind] = near
    groups: list[list[str]] = [[] for _ in chosen]
    for name in names:
        if siblings[name] in group_of:
            groups[group_of[siblings[name]]].append(name)
    large = [group for group in groups if len(group) > 1]
    return sorted(large, key=lambda group: (-len(group), natural_order(group[0])))


def _are_alike(a: Inside, b: Inside) -> bool:
    return len(a & b) >= LEAST_SHARED * len(a | b)
