"""Which devices take part in a collective together.

Contract: groups are tuples of logical device ids, as HLO writes them: explicit lists, an iota list
"[groups,size]<=[dims]T(permutation)", or axes of a mesh. Absurd sizes give no groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from math import prod

Groups = tuple[tuple[int, ...], ...]

MOST_DEVICES = 1 << 16

_EXPLICIT = re.compile(r"replica_groups=\{(\{[\d,]*\}(?:,\{[\d,]*\})*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")


@cache
def groups_in_text(long_name: str) -> Groups:
    """The replica groups in an HLO text; () if it names none."""
    explicit = _EXPLICIT.search(long_name)
    if explicit:
        groups = (_numbers(group) for group in explicit.group(1)[1:-1].split("},{"))
        return tuple(group for group in groups if group)
    iota = _IOTA.search(long_name)
    if iota:
        count, size = int(iota.group(1)), int(iota.group(2))
        return iota_groups(count, size, _numbers(iota.group(3)), _numbers(iota.group(4) or ""))
    return ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


@cache
def iota_groups(
    count: int, size: int, dims: tuple[int, ...] = (), permutation: tuple[int, ...] = ()
) -> Groups:
    """0, 1, 2, ... laid out as `dims`, transposed, and cut into `count` groups of `size`."""
    total = count * size
    dims = dims or (total,)
    permutation = permutation or tuple(range(len(dims)))
    is_sound = 0 < total <= MOST_DEVICES and prod(dims) == total
    if not is_sound or sorted(permutation) != list(range(len(dims))):
        return ()
    ids = _transposed(dims, permutation)
    return tuple(tuple(ids[at : at + size]) for at in range(0, total, size))


def mesh_groups(dims: Sequence[int], axes: Sequence[int]) -> Groups:
    """The groups along whole axes of a mesh whose devices are numbered in order."""
    rest = [axis for axis in range(len(dims)) if axis not in axes]
    if not dims or any(axis >= len(dims) for axis in axes):
        return ()
    size = prod(dims[axis] for axis in axes)
    if not size:
        return ()
    return iota_groups(prod(dims) // size, size, tuple(dims), (*rest, *axes))


def _transposed(dims: tuple[int, ...], permutation: tuple[int, ...]) -> list[int]:
    strides = [prod(dims[axis + 1 :]) for axis in range(len(dims))]
    ids = [0]
    for axis in permutation:
        ids = [base + step * strides[axis] for base in ids for step in range(dims[axis])]
    return ids


def groups_of_captured(groups: Groups, captured: Sequence[int]) -> list[list[int]] | None:
    """The positions in `captured` (logical ids of one host's devices, in order) that meet in each
    group; None where it is not known who meets whom.

    It is known if there is one group, or if the captured devices are all there are.
    """
    if len(groups) == 1:
        return [list(range(len(captured)))]
    if not groups or sum(map(len, groups)) != len(captured):
        return None
    position = {device: at for at, device in enumerate(captured)}
    if any(device not in position for group in groups for device in group):
        return None
    return [[position[device] for device in group] for group in groups]
