"""Which ops before are which ops after.

Contract
* Ops are matched by `op_groups`, all ops of a program alike in name (without number), kind, shapes,
  scope and pass, one with one: what grew is never netted with what went or came. Module hashes play
  no part. Scopes are those of before, see `renames`.
* Level by level; what a level matches, later ones do not see. `how`, in this order:
    exact            all of the key, and the numbered names
    renumbered       all of the key; other numbers
    renamed          all of the key, in a scope that was renamed
    reshaped         all but the shapes, in a scope that has as many such ops before as after
    kernel_variant   kind, pass, scope and name but for digits (tile sizes)
    moved            name, kind, shapes and calls, and either the scope, in another pass, or the
                     pass and the primitive, in another scope
    replaced         of as many calls, and on both sides the only one of its kind and pass without a
                     partner in a region, deepest first: another kernel
* What has no partner on any level is only_before (removed) or only_after (added). So are the parts
  of a fusion that fell apart, and collectives that take the place of another kind's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

from marin_profile.comparison.noise import RowTimes, Times, mean
from marin_profile.events.scopes import split_path
from marin_profile.schema import OpGroup

EXACT, RENUMBERED, RENAMED, RESHAPED, VARIANT, MOVED, REPLACED = (
    "exact",
    "renumbered",
    "renamed",
    "reshaped",
    "kernel_variant",
    "moved",
    "replaced",
)
ONLY_BEFORE, ONLY_AFTER = "only_before", "only_after"

Path = tuple[str, ...]
_DIGITS = re.compile(r"\d+")


def op_key(group: OpGroup) -> tuple[str, ...]:
    """What makes ops alike."""
    return (
        group.canonical_name,
        group.category,
        group.shape_signature or "",
        group.scope or "",
        group.pass_ or "",
    )


@dataclass(frozen=True)
class OpTime:
    """One op group of one side: owned time per step and device, capture by capture, and calls per
    step and device. `place` is its scope in the names of before, where that was renamed."""

    group: OpGroup
    times: Times
    count: Fraction | None = None
    place: str | None = None

    @property
    def scope(self) -> str | None:
        return self.place or self.group.scope

    @cached_property
    def time(self) -> Fraction:
        return mean(self.times)

    @cached_property
    def key(self) -> tuple[str, ...]:
        return op_key(self.group)

    @cached_property
    def path(self) -> Path:
        return scope_path(self.scope)


@dataclass(frozen=True)
class OpMatch:
    """An op before and the same after; None where it has no partner."""

    how: str
    before: OpTime | None = None
    after: OpTime | None = None

    @cached_property
    def times(self) -> RowTimes:
        return RowTimes(
            self.before.times if self.before else None, self.after.times if self.after else None
        )

    @property
    def order(self) -> tuple[tuple[str, ...], ...]:
        return tuple(side.key for side in (self.before, self.after) if side)


def match_ops(before: Sequence[OpTime], after: Sequence[OpTime]) -> list[OpMatch]:
    """Every op of both sides in exactly one match; in the order of their keys."""
    left, right = (sorted(side, key=lambda one: one.key) for side in (before, after))
    known = known_regions([*before, *after])
    deepest = max(map(len, known), default=0)
    matches: list[OpMatch] = []
    for how, key, alone in (
        (EXACT, _full_key, None),
        (RESHAPED, _shapeless_key, None),
        (VARIANT, _digitless_key, _digitless_key),
        (MOVED, _passless_key, _passless_key),
        (MOVED, _placeless_key, _placeless_key),
        *(
            (REPLACED, _region_key(known, depth, calls=True), _region_key(known, depth))
            for depth in (None, *range(deepest, 1, -1))
        ),
    ):
        found = list(_pairs(left, right, key, alone or key, most=None if alone is None else 1))
        matches += [OpMatch(_exactly(how, one, two), one, two) for one, two in found]
        taken = {id(side) for pair in found for side in pair}
        left, right = ([one for one in side if id(one) not in taken] for side in (left, right))
    matches += [OpMatch(ONLY_BEFORE, before=side) for side in left]
    matches += [OpMatch(ONLY_AFTER, after=side) for side in right]
    return sorted(matches, key=lambda match: (match.order, match.how))


Key = Callable[[OpTime], Hashable]


def _pairs(
    before: Iterable[OpTime], after: Iterable[OpTime], key: Key, alone: Key, most: int | None
) -> Iterable[tuple[OpTime, OpTime]]:
    """Ops with the same key (None takes no part), in order of their shapes, where both sides have
    as many: at most `most`, and then nothing else that is alike in `alone`."""
    left, right = _by_key(before, key), _by_key(after, key)
    crowds = _by_key(before, alone), _by_key(after, alone)
    for name in sorted(left.keys() & right.keys(), key=repr):
        ones, twos = (sorted(side[name], key=_shape_order) for side in (left, right))
        if len(ones) != len(twos):
            continue
        if most is not None and any(
            len(crowd[alone(side[0])]) > most
            for crowd, side in zip(crowds, (ones, twos), strict=True)
        ):
            continue
        yield from zip(ones, twos, strict=True)


def _by_key(sides: Iterable[OpTime], key: Key) -> dict[Hashable, list[OpTime]]:
    found: dict[Hashable, list[OpTime]] = {}
    for side in sides:
        name = key(side)
        if name is not None:
            found.setdefault(name, []).append(side)
    return found


def _shape_order(side: OpTime) -> tuple[list[int], tuple[str, ...]]:
    """By sizes, which scale together where a batch or a width does."""
    return [int(digits) for digits in _DIGITS.findall(side.key[2])], side.key


def _exactly(how: str, one: OpTime, two: OpTime) -> str:
    if how != EXACT:
        return how
    if one.key != two.key:
        return RENAMED
    same = (one.group.names, one.group.num_names) == (two.group.names, two.group.num_names)
    return EXACT if same else RENUMBERED


# --- keys --------------------------------------------------------------------------------------


def _full_key(side: OpTime) -> Hashable:
    group = side.group
    return group.canonical_name, group.category, group.shape_signature, side.scope, group.pass_


def _shapeless_key(side: OpTime) -> Hashable:
    group = side.group
    return (group.canonical_name, group.category, side.path, group.pass_) if side.path else None


def _digitless_key(side: OpTime) -> Hashable:
    if not side.path:
        return None
    name, leaf = (_DIGITS.sub("", text) for text in (side.group.canonical_name, side.path[-1]))
    return name, side.group.category, (*side.path[:-1], leaf), side.group.pass_


def _passless_key(side: OpTime) -> Hashable:
    """What a compiler calls recomputed that it then computes only once."""
    if not side.path:
        return None
    group = side.group
    return group.canonical_name, group.category, group.shape_signature, side.path, side.count


def _placeless_key(side: OpTime) -> Hashable:
    if not side.path:
        return None
    group = side.group
    shape = group.shape_signature
    return group.canonical_name, group.category, shape, group.pass_, side.path[-1], side.count


def _region_key(known: frozenset[Path], depth: int | None, *, calls: bool = False) -> Key:
    """By the op's own region, or the one of this depth that it stands in."""

    def key(side: OpTime) -> Hashable:
        region = own_region(side, known)[:depth]
        if not region or (depth is not None and len(region) < depth):
            return None
        kind = region, side.group.pass_, side.group.category
        return (*kind, side.count) if calls else kind

    return key


# --- regions of ops ----------------------------------------------------------------------------


def region_of(path: Path) -> Path:
    """The scope path without its leaf, which names the primitive; () without a scope."""
    return path[:-1] or path


def prefixes(path: Path) -> list[Path]:
    return [path[:depth] for depth in range(1, len(path) + 1)]


def known_regions(sides: Iterable[OpTime]) -> frozenset[Path]:
    return frozenset(above for side in sides for above in prefixes(region_of(side.path)))


def own_region(side: OpTime, known: frozenset[Path]) -> Path:
    """The region that an op stands in: its scope path without its leaf, or the whole path where
    other ops stand below it (a kernel or a loop names no primitive)."""
    return side.path if side.path in known else region_of(side.path)


@cache
def scope_path(scope: str | None) -> Path:
    return tuple(split_path(scope)) if scope else ()


def placed(side: OpTime, path: Path) -> OpTime:
    """The op with its scope in the names of before."""
    return replace(side, place="/".join(path))
