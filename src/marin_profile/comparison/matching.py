"""Which ops before are which ops after.

Ops are matched by `op_groups`, all ops of a program alike in name (without number), kind, shapes,
scope and pass, level by level; what a level matches, later ones do not see. `how`, in this order:
    exact            all of the key, and the numbered names
    renumbered       all of the key; other numbers
    reshaped         all but the shapes, also where one side has more of them (only with a scope)
    kernel_variant   the scope, and the name without digits, the shapes, or at least the kind
    moved            name, kind, shapes and pass, in another scope
    split, merged    no partner, but matched ops of its scope or region lost (gained) time
    replaced         what is left in one region (deepest first): of one kind, then of any kind
    same_kind        what is left of one kind in the whole program
From `kernel_variant` on, a match may hold several ops on either side. Module hashes play no part.
What has no partner on any level is only_before or only_after.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property

from marin_profile.events.classify import kind_group
from marin_profile.events.scopes import split_path
from marin_profile.schema import OpGroup

EXACT, RENUMBERED, RESHAPED, VARIANT, MOVED = (
    "exact",
    "renumbered",
    "reshaped",
    "kernel_variant",
    "moved",
)
SPLIT, MERGED, REPLACED, SAME_KIND = "split", "merged", "replaced", "same_kind"
ONLY_BEFORE, ONLY_AFTER = "only_before", "only_after"

# An op was split off (merged into) matched ops that lost (gained) at least this share of its time:
# splitting does not conserve time, but what changed less did something else.
LEAST_MOVED = Fraction(1, 10)
# What is left is matched only where neither side is more than this many times the other: a large
# new op is not what became of some small old ones.
LARGEST_RATIO = 5


@dataclass(frozen=True)
class OpTime:
    """One op group of one side; `time` is owned time per step and device."""

    group: OpGroup
    time: Fraction

    @cached_property
    def key(self) -> tuple[str, ...]:
        group = self.group
        return (
            group.canonical_name,
            group.category,
            group.shape_signature or "",
            group.scope or "",
            group.pass_ or "",
        )


@dataclass(frozen=True)
class OpMatch:
    """Ops that correspond; an empty side where there is no partner."""

    how: str
    before: tuple[OpTime, ...] = ()
    after: tuple[OpTime, ...] = ()

    @cached_property
    def delta(self) -> Fraction:
        return total_time(self.after) - total_time(self.before)

    @cached_property
    def size(self) -> Fraction:
        return total_time(self.before) + total_time(self.after)

    @cached_property
    def order(self) -> tuple[tuple[str, ...], ...]:
        return tuple(side.key for side in self.sides)

    @property
    def sides(self) -> tuple[OpTime, ...]:
        return (*self.before, *self.after)


def total_time(sides: Iterable[OpTime]) -> Fraction:
    return sum((side.time for side in sides), Fraction(0))


def match_ops(before: Sequence[OpTime], after: Sequence[OpTime]) -> list[OpMatch]:
    """Every op of both sides in exactly one match; in the order of their keys."""
    state = _State(sorted(before, key=lambda side: side.key), sorted(after, key=lambda s: s.key))
    state.pair(_full_key, EXACT)
    state.pair(_shapeless_key, RESHAPED)
    state.join(_shapeless_key, RESHAPED, (EXACT, RENUMBERED, RESHAPED))
    for how, key in _NEAR:
        state.pair(key, how)
    paths = [scope_path(side.group.scope) for side in (*state.before, *state.after)]
    depths = range(max(map(len, paths), default=0), 1, -1)
    state.absorb(_scope_key)
    for depth in depths:
        state.absorb(_region_key(depth))
    for depth in depths:
        state.pair(_region_key(depth, by_kind=True), REPLACED, alike=True)
        state.pair(_region_key(depth), REPLACED, alike=True)
        state.join(_region_key(depth), REPLACED, (REPLACED,), smaller=True)
    state.pair(_kind_key, SAME_KIND, alike=True)
    lone = [OpMatch(ONLY_BEFORE, before=(side,)) for side in state.before]
    lone += [OpMatch(ONLY_AFTER, after=(side,)) for side in state.after]
    return sorted(state.matches + lone, key=lambda match: match.order)


Key = Callable[[OpGroup], Hashable]


@dataclass
class _State:
    """What is matched, and what is left of both sides."""

    before: list[OpTime]
    after: list[OpTime]
    matches: list[OpMatch] = field(default_factory=list)

    def pair(self, key: Key, how: str, *, alike: bool = False) -> None:
        """What is left on both sides with the same key is a match; key None takes no part. `alike`:
        only where the sides take about the same time, see LARGEST_RATIO."""
        left, right = _by_key(self.before, key), _by_key(self.after, key)
        shared = {
            name
            for name in left.keys() & right.keys()
            if not alike or _alike(total_time(left[name]), total_time(right[name]))
        }
        for name in sorted(shared, key=repr):
            found = OpMatch(how, tuple(left[name]), tuple(right[name]))
            self.matches.append(replace(found, how=RENUMBERED) if _renumbered(found) else found)
        self.before = [side for side in self.before if key(side.group) not in shared]
        self.after = [side for side in self.after if key(side.group) not in shared]

    def absorb(self, key: Key) -> None:
        """Splits and merges: see LEAST_MOVED."""
        homes: dict[Hashable, list[int]] = {}
        for at, match in enumerate(self.matches):
            for name in {key(side.group) for side in match.sides}:
                homes.setdefault(name, []).append(at)

        def absorbed(side: OpTime, sign: int) -> bool:
            name = key(side.group)
            moved = [
                at
                for at in (homes.get(name, []) if name is not None and side.time else [])
                if sign * self.matches[at].delta >= LEAST_MOVED * side.time
            ]
            if moved:
                best = min(
                    moved, key=lambda at: (-sign * self.matches[at].delta, self.matches[at].order)
                )
                self._add(best, side, SPLIT if sign < 0 else MERGED, is_before=sign > 0)
            return bool(moved)

        self.after = [side for side in self.after if not absorbed(side, -1)]
        self.before = [side for side in self.before if not absorbed(side, 1)]

    def join(self, key: Key, how: str, into: Sequence[str], *, smaller: bool = False) -> None:
        """What is left joins the largest match of the ways `into` whose ops all have its key;
        `smaller`: only where the match takes no less time."""
        homes: dict[Hashable, list[int]] = {}
        for at, match in enumerate(self.matches):
            names = {key(side.group) for side in match.sides}
            if match.how in into and len(names) == 1:
                homes.setdefault(names.pop(), []).append(at)

        def joined(side: OpTime, *, is_before: bool) -> bool:
            name = key(side.group)
            fitting = [
                at
                for at in (homes.get(name, []) if name is not None else [])
                if not smaller or side.time <= self.matches[at].size
            ]
            if fitting:
                best = min(fitting, key=lambda at: (-self.matches[at].size, self.matches[at].order))
                self._add(best, side, how, is_before=is_before)
            return bool(fitting)

        self.before = [side for side in self.before if not joined(side, is_before=True)]
        self.after = [side for side in self.after if not joined(side, is_before=False)]

    def _add(self, at: int, side: OpTime, how: str, *, is_before: bool) -> None:
        match = self.matches[at]
        self.matches[at] = OpMatch(
            how,
            (*match.before, side) if is_before else match.before,
            match.after if is_before else (*match.after, side),
        )


def _renumbered(match: OpMatch) -> bool:
    if match.how != EXACT:
        return False
    (one,), (two,) = match.before, match.after
    return (one.group.names, one.group.num_names) != (two.group.names, two.group.num_names)


def _alike(one: Fraction, two: Fraction) -> bool:
    return max(one, two) <= LARGEST_RATIO * min(one, two)


def _by_key(sides: Iterable[OpTime], key: Key) -> dict[Hashable, list[OpTime]]:
    found: dict[Hashable, list[OpTime]] = {}
    for side in sides:
        name = key(side.group)
        if name is not None:
            found.setdefault(name, []).append(side)
    return found


# --- keys --------------------------------------------------------------------------------------


def _full_key(group: OpGroup) -> Hashable:
    return group.canonical_name, group.category, group.shape_signature, group.scope, group.pass_


def _shapeless_key(group: OpGroup) -> Hashable:
    return (group.canonical_name, group.category, group.scope, group.pass_) if group.scope else None


def _without_digits(text: str | None) -> str:
    return "".join(character for character in text or "" if not character.isdigit())


def _scope_key(group: OpGroup) -> Hashable:
    return (kind_group(group.category), group.scope, group.pass_) if group.scope else None


_NEAR: tuple[tuple[str, Key], ...] = (
    (
        VARIANT,
        lambda g: (
            _without_digits(g.canonical_name),
            g.category,
            _without_digits(g.scope),
            g.pass_,
        ),
    ),
    (VARIANT, lambda g: (g.category, g.shape_signature, g.scope, g.pass_) if g.scope else None),
    (VARIANT, lambda g: (g.category, g.scope, g.pass_) if g.scope else None),
    (MOVED, lambda g: (g.canonical_name, g.category, g.shape_signature, g.pass_)),
)


def _kind_key(group: OpGroup) -> Hashable:
    return kind_group(group.category), group.pass_


def region_of(scope: str | None) -> tuple[str, ...]:
    """The scope path without its leaf, which names the primitive; () without a scope."""
    parts = scope_path(scope)
    return parts[:-1] or parts


@cache
def scope_path(scope: str | None) -> tuple[str, ...]:
    return tuple(split_path(scope)) if scope else ()


def _region_key(depth: int, *, by_kind: bool = False) -> Key:
    """The region of this depth that an op stands in, or is."""

    def key(group: OpGroup) -> Hashable:
        path = scope_path(group.scope)
        if len(path) < depth:
            return None
        region = path[:depth]
        return (kind_group(group.category), group.pass_, region) if by_kind else region

    return key
