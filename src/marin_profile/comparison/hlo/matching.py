"""Which steps of one opened program are which of another.

Contract
* One with one; names, ids and the order of parameters play no part. A pair is `alike` if both
  compute the same, from and into arrays of the same shapes, in as many loops; else it `changed`.
* Level by level, from the strictest: all that it is made from and all that is made from it; one of
  the two; its neighbours up to three, two and one steps away; itself and its scope. On each level
  a key pairs only where both sides have it equally often, in the order of the program.
* What is left is paired by its neighbours: the operand in the same place, the user that takes it in
  the same place; looking through what only moves or converts values. First like with like, then
  with what does the same to other shapes.
* Last, like with like in one scope, as many as both sides have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from marin_profile.comparison.hlo.opened import PARAMETER, Opened, Step, digest
from marin_profile.events.scopes import parse_scope

# What hands values on, in another order, shape, size or type.
MOVERS = frozenset({"copy", "transpose", "reshape", "convert", "pad", "slice", "broadcast"})
COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
FURTHEST = 3
UNMATCHED = -1


@dataclass(frozen=True)
class Matched:
    """Each side's partner by step, UNMATCHED without one."""

    before: Opened
    after: Opened
    after_of: tuple[int, ...]
    before_of: tuple[int, ...]

    def pairs(self) -> Iterator[tuple[Step, Step]]:
        for at, other in enumerate(self.after_of):
            if other != UNMATCHED:
                yield self.before.steps[at], self.after.steps[other]


def is_alike(one: Step, two: Step) -> bool:
    return (
        one.computes == two.computes
        and one.shape == two.shape
        and one.layout == two.layout
        and one.node.groups == two.node.groups
        and one.is_async == two.is_async
        and len(one.loops) == len(two.loops)
    )


def match(before: Opened, after: Opened) -> Matched:
    sides = (_Side(before), _Side(after))
    pairing = _Pairing(sides)
    for key in (_cones, _made_from, _made_into):
        pairing.equal(*map(key, sides))
    around = [_around(side) for side in sides]
    for distance in range(FURTHEST, -1, -1):
        pairing.equal(*(levels[distance] for levels in around))
        pairing.by_neighbours(_same_in_pass)
    pairing.by_neighbours(_same)
    pairing.by_neighbours(_same_operation)
    for key in (_like_in_scope, _operation_in_scope):
        pairing.as_many(*map(key, sides))
        pairing.by_neighbours(_same_operation)
    return Matched(before, after, tuple(pairing.partner[0]), tuple(pairing.partner[1]))


class _Side:
    """A program with what its steps are told apart by."""

    def __init__(self, opened: Opened) -> None:
        self.steps = opened.steps
        self.users = opened.users
        self.scopes = tuple(map(scope_of, opened.steps))
        self.passes = tuple(scope.rpartition("/")[2] for scope in self.scopes)
        self.own = tuple(
            digest((step.computes, step.shape, step.layout, step.node.groups))
            for step in opened.steps
        )

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def made_from(self) -> list[str]:
        found: list[str] = []
        for step in self.steps:
            found.append(digest((self.own[step.at], _taken(step, found))))
        return found

    @cached_property
    def made_into(self) -> list[str]:
        found = [""] * len(self)
        for at in range(len(self) - 1, -1, -1):
            uses = sorted(
                (found[user], tuple(_places(self.steps[user], at))) for user in self.users[at]
            )
            found[at] = digest((self.own[at], uses))
        return found


def scope_of(step: Step) -> str:
    """Of an argument its name."""
    if step.opcode == PARAMETER:
        return step.node.op_name
    parsed = parse_scope(step.node.op_name)
    return "/".join((*parsed[0], parsed[1])) if parsed else ""


# --- keys of a level -----------------------------------------------------------------------------


def _made_from(side: _Side) -> list[Hashable]:
    """All that it is made from."""
    return _but_leaves(side, side.made_from)


def _made_into(side: _Side) -> list[Hashable]:
    """All that is made from it."""
    return _but_leaves(side, side.made_into)


def _cones(side: _Side) -> list[Hashable]:
    return _but_leaves(side, list(zip(side.made_from, side.made_into, strict=True)))


def _but_leaves(side: _Side, keys: Sequence[Hashable]) -> list[Hashable]:
    """What is made from nothing is told by what takes it, not by all that comes of it: of two
    layers that are alike, one may be gone."""
    return [key if step.operands else None for step, key in zip(side.steps, keys, strict=True)]


def _around(side: _Side) -> list[list[str]]:
    """Itself, its scope and its neighbours: up to none, one, ..., FURTHEST steps away."""
    levels = [[digest(own) for own in zip(side.own, side.scopes, strict=True)]]
    for _ in range(FURTHEST):
        nearer = levels[-1]
        levels.append(
            [
                digest(
                    (
                        nearer[step.at],
                        _taken(step, nearer),
                        sorted(nearer[user] for user in side.users[step.at]),
                    )
                )
                for step in side.steps
            ]
        )
    return levels


def _like_in_scope(side: _Side) -> list[Hashable]:
    return list(zip(side.own, side.scopes, strict=True))


def _operation_in_scope(side: _Side) -> list[Hashable]:
    return [(step.opcode, scope) for step, scope in zip(side.steps, side.scopes, strict=True)]


def _taken(step: Step, keys: Sequence[str]) -> list[str]:
    taken = [keys[operand] for operand in step.operands]
    return sorted(taken) if step.opcode in COMMUTATIVE else taken


def _places(user: Step, at: int) -> list[int]:
    """Where it takes the step; of what may be exchanged, nowhere in particular."""
    if user.opcode in COMMUTATIVE:
        return []
    return [place for place, operand in enumerate(user.operands) if operand == at]


# --- pairing -------------------------------------------------------------------------------------


def _same_in_pass(sides: tuple[_Side, _Side], one: int, two: int) -> bool:
    """What a pass computes again is not what it is computed from."""
    return _same(sides, one, two) and sides[0].passes[one] == sides[1].passes[two]


def _same(sides: tuple[_Side, _Side], one: int, two: int) -> bool:
    return sides[0].own[one] == sides[1].own[two]


def _same_operation(sides: tuple[_Side, _Side], one: int, two: int) -> bool:
    return sides[0].steps[one].opcode == sides[1].steps[two].opcode


class _Pairing:
    def __init__(self, sides: tuple[_Side, _Side]) -> None:
        self.sides = sides
        self.partner = [[UNMATCHED] * len(side) for side in sides]

    def _pair(self, one: int, two: int) -> None:
        self.partner[0][one], self.partner[1][two] = two, one

    def _free(self, side: int, keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = {}
        for at, key in enumerate(keys):
            if key is not None and self.partner[side][at] == UNMATCHED:
                found.setdefault(key, []).append(at)
        return found

    def equal(self, before: Sequence[Hashable], after: Sequence[Hashable]) -> None:
        """Those of one key, where both sides have equally many."""
        left, right = self._free(0, before), self._free(1, after)
        for key, ones in left.items():
            twos = right.get(key, [])
            if len(ones) == len(twos):
                for one, two in zip(ones, twos, strict=True):
                    self._pair(one, two)

    def as_many(self, before: Sequence[Hashable], after: Sequence[Hashable]) -> None:
        """Those of one key, as many as both sides have."""
        left, right = self._free(0, before), self._free(1, after)
        for key, ones in left.items():
            for one, two in zip(ones, right.get(key, []), strict=False):
                self._pair(one, two)

    def by_neighbours(self, fits: Callable[[tuple[_Side, _Side], int, int], bool]) -> None:
        """From each pair on to its operands and users, as far as that goes."""
        queue = [at for at, other in enumerate(self.partner[0]) if other != UNMATCHED]
        while queue:
            one = queue.pop()
            two = self.partner[0][one]
            for a, b in [*self._operands(one, two), *self._users(one, two)]:
                if (
                    self.partner[0][a] == UNMATCHED
                    and self.partner[1][b] == UNMATCHED
                    and fits(self.sides, a, b)
                ):
                    self._pair(a, b)
                    queue.append(a)

    def _operands(self, one: int, two: int) -> Iterator[tuple[int, int]]:
        """In each place, what stands there on both sides, and what is handed on from there."""
        first, second = self.sides[0].steps[one], self.sides[1].steps[two]
        if len(first.operands) != len(second.operands):
            return
        for a, b in zip(first.operands, second.operands, strict=True):
            for left in self._sources(0, a):
                for right in self._sources(1, b):
                    yield left, right

    def _sources(self, side: int, at: int) -> Iterator[int]:
        """The step, and where what it hands on comes from, as long as it has no partner."""
        steps = self.sides[side].steps
        yield at
        while (
            steps[at].opcode in MOVERS
            and steps[at].operands
            and self.partner[side][at] == UNMATCHED
        ):
            at = steps[at].operands[0]
            yield at

    def _users(self, one: int, two: int) -> Iterator[tuple[int, int]]:
        """Users that take it in one place, where there is one of a kind without a partner."""
        left, right = (self._free_users(side, at) for side, at in ((0, one), (1, two)))
        for key, ones in left.items():
            if len(ones) == len(right.get(key, ())) == 1:
                yield ones[0], right[key][0]

    def _free_users(self, side: int, at: int) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = {}
        steps = self.sides[side].steps
        waiting = [at]
        while waiting:
            taken = waiting.pop()
            for user in self.sides[side].users[taken]:
                if self.partner[side][user] != UNMATCHED:
                    continue
                place = tuple(_places(steps[user], taken))
                found.setdefault((steps[user].opcode, place), []).append(user)
                if steps[user].opcode in MOVERS:
                    waiting.append(user)
        return found
