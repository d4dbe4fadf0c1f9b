"""Which devices take part in a collective together.

Contract: groups are tuples of logical device ids, as HLO writes them: explicit lists, an iota list
"[groups,size]<=[dims]T(permutation)", or axes of a mesh. Absurd sizes give no groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from marin_profile.base.caches import cached

Groups = tuple[tuple[int, ...], ...]

LARGEST_LIST = 1 << 16
MOST_DIMENSIONS = 64
MOST_DIGITS = 18

_EXPLICIT = re.compile(r"replica_groups=\{(\{[\d,]*\}(?:,\{[\d,]*\})*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{(\{\d+,\d+\}(?:,\{\d+,\d+\})*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")


@cached
def groups_in_text(long_name: str) -> Groups:
    """The replica groups in an HLO text; () if it names none."""
    explicit = _EXPLICIT.search(long_name)
    if explicit:
        groups = (_numbers(group) for group in explicit.group(1)[1:-1].split("},{"))
        return tuple(group for group in groups if group)
    iota = _IOTA.search(long_name)
    if iota:
        shape = _numbers(f"{iota.group(1)},{iota.group(2)}")
        if len(shape) == 2:
            return iota_groups(*shape, _numbers(iota.group(3)), _numbers(iota.group(4) or ""))
    return ()


@cached
def pairs_in_text(long_name: str) -> Groups:
    """The (source, target) pairs of a permute in an HLO text; () if it names none."""
    found = _PAIRS.search(long_name)
    if not found:
        return ()
    pairs = (_numbers(pair) for pair in found.group(1)[1:-1].split("},{"))
    return tuple(pair for pair in pairs if len(pair) == 2)


def _numbers(text: str) -> tuple[int, ...]:
    """Those that fit int64; Python reads no text of thousands of digits."""
    return tuple(int(part) for part in text.split(",") if 0 < len(part) <= MOST_DIGITS)


@cached
def iota_groups(
    count: int, size: int, dims: tuple[int, ...] = (), permutation: tuple[int, ...] = ()
) -> Groups:
    """0, 1, 2, ... laid out as `dims`, transposed, and cut into `count` groups of `size`."""
    if max(len(dims), len(permutation)) > MOST_DIMENSIONS:
        return ()
    total = count * size
    dims = dims or (total,)
    permutation = permutation or tuple(range(len(dims)))
    is_sound = 0 < total <= LARGEST_LIST and min(dims) > 0 and prod(dims) == total
    if not is_sound or sorted(permutation) != list(range(len(dims))):
        return ()
    ids = _transposed(dims, permutation)
    return tuple(tuple(ids[at : at + size]) for at in range(0, total, size))


def mesh_groups(dims: Sequence[int], axes: Sequence[int]) -> Groups:
    """The groups along whole axes of a mesh whose devices are numbered in order."""
    if not 0 < len(dims) <= MOST_DIMENSIONS or len(axes) > len(dims):
        return ()
    if min(dims) < 1 or any(not 0 <= axis < len(dims) for axis in axes):
        return ()
    rest = [axis for axis in range(len(dims)) if axis not in axes]
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


def columns_of_groups(
    groups: Groups, captured: Sequence[tuple[int, int]]
) -> list[tuple[int, ...]] | None:
    """Who of the captured devices meet: for each group the positions of its members in `captured`,
    -1 for a member that was not captured; None where it is not known who meets whom.

    `captured`: (host, ordinal on the host) of the devices that ran the op, in order. Logical ids
    count the devices in this order. It is known who meets if there is one group, or if the devices
    are all there are (of all hosts together, or of each host, which then has groups of its own).
    """
    total = sum(map(len, groups))
    by_host: dict[int, list[int]] = {}
    for position, (host, _) in enumerate(captured):
        by_host.setdefault(host, []).append(position)
    if not total:
        return None
    if len(captured) > total:
        if any(len(members) != total for members in by_host.values()):
            return None
        return [
            tuple(members[place] for place in group)
            for members in by_host.values()
            for group in _places(groups)
        ]
    if len(groups) == 1:
        return [(*range(len(captured)), *[-1] * (total - len(captured)))]
    return _places(groups) if len(captured) == total else None


def columns_of_pairs(
    pairs: Groups, captured: Sequence[tuple[int, int]]
) -> list[tuple[int, ...]] | None:
    """The same for the pairs of a permute, in which a device may stand twice. Known if one host
    holds all ids, or the ids reach as far as the devices of all hosts, or of each."""
    if not pairs:
        return None
    reach = max(map(max, pairs)) + 1
    hosts = [host for host, _ in captured]
    if len(set(hosts)) == 1:
        place = {ordinal: position for position, (_, ordinal) in enumerate(captured)}
        if any(device not in place for pair in pairs for device in pair):
            return None
        return [tuple(place[device] for device in pair) for pair in pairs]
    if len(captured) == reach:
        return list(pairs)
    if any(hosts.count(host) != reach for host in set(hosts)):
        return None
    firsts = [hosts.index(host) for host in dict.fromkeys(hosts)]
    return [tuple(first + device for device in pair) for first in firsts for pair in pairs]


def _places(groups: Groups) -> list[tuple[int, ...]]:
    """Each id's place in the order of all ids; members of a group in this order."""
    ids = sorted(device for group in groups for device in group)
    place = {device: position for position, device in enumerate(ids)}
    return [tuple(sorted(place[device] for device in group)) for group in groups]
