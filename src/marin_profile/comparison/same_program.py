"""Are the two of one program, and on shapes of one size? By their op groups.

Contract
* An op is in common if the other side has one alike in name (without digits) and shapes, or in
  the outermost region that it stands in, whatever the whole program is called; without a region,
  in scope. Shares are of op time, so that a few small ops decide nothing.
* Shapes are scaled if most ops whose shapes changed (all else alike) did so in one dimension by
  one factor. Result shapes show it; a weight's gradient keeps its shape when the batch grows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction

from marin_profile.comparison.model import ScaledShapes
from marin_profile.events.scopes import split_path
from marin_profile.events.shapes import Array, arrays_in
from marin_profile.schema import REMAINDER, OpGroup, ProfileSummary

# Of the op time of a side, what must have a like on the other side for them to be one program.
LEAST_COMMON = 0.1
# Scaled shapes: this much of the op time whose shapes changed, and of all op time.
LEAST_ALIKE = 0.5
LEAST_SCALED = 0.25
# Of ops alike in all but their shapes, the largest that are paired.
MOST_PAIRED = 100

Key = tuple[Hashable, ...]
# The dimension's place from the left, its size before and after.
Scaling = tuple[int, int, int]


def common_shares(before: ProfileSummary, after: ProfileSummary) -> tuple[float, float] | None:
    """Of each side's op time, the share of the ops that the other has too; None where unknown."""
    sides = [_groups(summary) for summary in (before, after)]
    totals = [sum(group.exclusive_duration for group in groups) for groups in sides]
    if not all(totals):
        return None
    keys = [{key for group in groups for key in _alike_in(group)} for groups in sides]
    one, two = (
        sum(group.exclusive_duration for group in groups if not others.isdisjoint(_alike_in(group)))
        / total
        for groups, others, total in zip(sides, reversed(keys), totals, strict=True)
    )
    return one, two


def _alike_in(group: OpGroup) -> list[Key]:
    name = "".join(letter for letter in group.canonical_name if not letter.isdecimal())
    found: list[Key] = [("name", name, group.category, group.shape_signature)]
    *path, _leaf = split_path(group.scope or "")
    region = [part for part in path if not part.startswith("jit(")]
    if region:
        found.append(("region", region[0]))
    elif group.scope:
        found.append(("scope", group.scope))
    return found


def scaled_shapes(before: ProfileSummary, after: ProfileSummary) -> ScaledShapes | None:
    """The dimension that changed in most shapes, and how; None if there is none."""
    sides = [_groups(summary) for summary in (before, after)]
    totals = [sum(group.exclusive_duration for group in groups) for groups in sides]
    if not all(totals):
        return None
    left = _reshaped(*sides)
    pairs: dict[Fraction, list[tuple[OpGroup, OpGroup, Scaling]]] = {}
    for befores, afters in left:
        for one in _largest(befores):
            for two in _largest(afters):
                scaling = _scaling(one.shape_signature or "", two.shape_signature or "")
                if scaling is not None:
                    factor = Fraction(scaling[2], scaling[1])
                    pairs.setdefault(factor, []).append((one, two, scaling))
    if not pairs:
        return None
    shares = {factor: _shares(found, totals) for factor, found in pairs.items()}
    factor = min(pairs, key=lambda factor: (-sum(shares[factor]), max(factor, 1 / factor)))
    changed = [
        sum(group.exclusive_duration for pair in left for group in pair[side]) / totals[side]
        for side in (0, 1)
    ]
    scaled = shares[factor]
    if min(scaled) < LEAST_SCALED or any(
        share < LEAST_ALIKE * of for share, of in zip(scaled, changed, strict=True)
    ):
        return None
    place, was, becomes = _commonest(pairs[factor])
    return ScaledShapes(dimension=place + 1, before=was, after=becomes, share=min(scaled))


def _groups(summary: ProfileSummary) -> list[OpGroup]:
    return [group for group in summary.op_groups if group.canonical_name != REMAINDER]


def _reshaped(
    before: Iterable[OpGroup], after: Iterable[OpGroup]
) -> list[tuple[list[OpGroup], list[OpGroup]]]:
    """Ops alike in all but their shapes, without those that the other side has as they are."""
    sides = [_by_key(before), _by_key(after)]
    found = []
    for key in sides[0]:
        alike = [side.get(key, []) for side in sides]
        shapes = [{group.shape_signature for group in groups} for groups in alike]
        rest = [
            [group for group in groups if group.shape_signature not in others]
            for groups, others in zip(alike, reversed(shapes), strict=True)
        ]
        if all(rest):
            found.append((rest[0], rest[1]))
    return found


def _largest(groups: Iterable[OpGroup]) -> list[OpGroup]:
    return sorted(groups, key=lambda group: -group.exclusive_duration)[:MOST_PAIRED]


def _by_key(groups: Iterable[OpGroup]) -> Mapping[Key, list[OpGroup]]:
    found: dict[Key, list[OpGroup]] = {}
    for group in groups:
        key = (group.canonical_name, group.category, group.scope, group.pass_)
        found.setdefault(key, []).append(group)
    return found


def _scaling(before: str, after: str) -> Scaling | None:
    """The first dimension that changed, if every array that changed did so in one dimension and
    all by one factor."""
    one, two = arrays_in(before), arrays_in(after)
    if len(one) != len(two):
        return None
    changes = [_changed_dimensions(b, a) for b, a in zip(one, two, strict=True)]
    if any(change is None or len(change) > 1 for change in changes):
        return None
    found = [change[0] for change in changes if change]
    if len({Fraction(a, b) for _, b, a in found}) != 1:
        return None
    return found[0]


def _changed_dimensions(before: Array, after: Array) -> list[Scaling] | None:
    """None for arrays of another rank, or with a dimension of size 0."""
    if len(before.dims) != len(after.dims) or 0 in (*before.dims, *after.dims):
        return None
    pairs = zip(before.dims, after.dims, strict=True)
    return [(at, b, a) for at, (b, a) in enumerate(pairs) if b != a]


def _shares(
    pairs: Sequence[tuple[OpGroup, OpGroup, Scaling]], totals: Sequence[float]
) -> tuple[float, float]:
    """Of each side's op time, what is in these pairs; an op may be in several."""
    befores = {id(one): one.exclusive_duration for one, _, _ in pairs}
    afters = {id(two): two.exclusive_duration for _, two, _ in pairs}
    return sum(befores.values()) / totals[0], sum(afters.values()) / totals[1]


def _commonest(pairs: Iterable[tuple[OpGroup, OpGroup, Scaling]]) -> Scaling:
    """By op time of both sides; of equal ones the first dimension, the smallest size."""
    weight: dict[Scaling, float] = {}
    for one, two, scaling in pairs:
        time = one.exclusive_duration + two.exclusive_duration
        weight[scaling] = weight.get(scaling, 0.0) + time
    return min(weight, key=lambda scaling: (-weight[scaling], scaling))
