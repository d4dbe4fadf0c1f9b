"""Which devices meet in a collective."""

import numpy as np
import pytest

from marin_profile.events.replica_groups import (
    columns_of_groups,
    columns_of_pairs,
    groups_in_text,
    iota_groups,
    mesh_groups,
    pairs_in_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all-reduce(%x), replica_groups={{0,1},{2,3}}, x=1", ((0, 1), (2, 3))),
        ("all-reduce(%x), replica_groups={}", ()),
        ("all-reduce(%x), replica_groups=[2,2]<=[4]", ((0, 1), (2, 3))),
        # Four groups of two over eight devices laid out 2 x 4, transposed.
        ("replica_groups=[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=[4,2]<=[3,4]T(1,0)", ()),
        ("replica_groups=[1,2]<=[0,2]", ()),
        (f"replica_groups=[{'9' * 5000},2]<=[4]", ()),
        (f"replica_groups={{{{0,{'1' * 5000}}}}}", ((0,),)),
        (f"replica_groups=[1,1]<=[{'1,' * 100_000}1]", ()),
        ("no groups", ()),
    ],
)
def test_groups_in_an_hlo_text(text, expected):
    assert groups_in_text(text) == expected


@pytest.mark.parametrize(
    ("dims", "permutation", "size"),
    [((2, 3, 4), (2, 0, 1), 6), ((4, 2), (1, 0), 4), ((8,), (0,), 2)],
)
def test_iota_groups_are_numpys(dims, permutation, size):
    total = int(np.prod(dims))
    expected = np.arange(total).reshape(dims).transpose(permutation).reshape(-1, size)
    assert iota_groups(total // size, size, dims, permutation) == tuple(map(tuple, expected))


def test_groups_along_mesh_axes():
    assert mesh_groups([2, 4], [1]) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert mesh_groups([2, 4], [0]) == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert mesh_groups([8], [0]) == (tuple(range(8)),)
    assert mesh_groups([8], [3]) == ()


@pytest.mark.parametrize(
    ("dims", "axes"),
    [([8], [-1]), ([2, -4], [1]), ([0, 4], [1]), ([], []), ([1] * 100_000, [0]), ([2], [0] * 999)],
)
def test_no_mesh_has_such_axes(dims, axes):
    assert mesh_groups(dims, axes) == ()


def test_a_pair_of_absurd_ids_is_no_pair():
    text = f"source_target_pairs={{{{0,1}},{{2,{'3' * 5000}}}}}"
    assert pairs_in_text(text) == ((0, 1),)


def on_host(host: int, *ordinals: int) -> list[tuple[int, int]]:
    return [(host, ordinal) for ordinal in ordinals]


TWO_HOSTS = on_host(0, 0, 1) + on_host(1, 0, 1)


@pytest.mark.parametrize(
    ("groups", "captured", "expected"),
    [
        # Two of four: who is missing does not matter where all meet.
        (((0, 1, 2, 3),), on_host(0, 0, 1), [(0, 1, -1, -1)]),
        (((0, 2), (1, 3)), on_host(0, 0, 1, 2, 3), [(0, 2), (1, 3)]),
        (((0, 2), (1, 3)), TWO_HOSTS, [(0, 2), (1, 3)]),
        (((0, 1), (2, 3)), TWO_HOSTS, [(0, 1), (2, 3)]),
        # Half of the devices are on another host: nobody knows who meets whom here.
        (((0, 4), (1, 5), (2, 6), (3, 7)), on_host(0, 0, 1, 2, 3), None),
        # Each host runs a program of its own.
        (((0, 1),), TWO_HOSTS, [(0, 1), (2, 3)]),
        (((1, 0),), TWO_HOSTS, [(0, 1), (2, 3)]),
        (((0, 1),), on_host(0, 0, 1, 2), None),
        ((), on_host(0, 0, 1), None),
    ],
)
def test_who_of_the_captured_meets(groups, captured, expected):
    assert columns_of_groups(groups, captured) == expected


@pytest.mark.parametrize(
    ("pairs", "captured", "expected"),
    [
        (((0, 1), (1, 0)), on_host(0, 0, 1), [(0, 1), (1, 0)]),
        (((2, 3),), on_host(0, 0, 1, 2, 3), [(2, 3)]),
        (((0, 5),), on_host(0, 0, 1), None),
        (((0, 2), (1, 3)), TWO_HOSTS, [(0, 2), (1, 3)]),
        (((0, 1),), TWO_HOSTS, [(0, 1), (2, 3)]),
        (((0, 2),), TWO_HOSTS, None),
        ((), on_host(0, 0), None),
    ],
)
def test_between_whom_of_the_captured_a_permute_moves(pairs, captured, expected):
    assert columns_of_pairs(pairs, captured) == expected


def test_pairs_in_an_hlo_text():
    text = "collective-permute(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}, x=1"
    assert pairs_in_text(text) == ((0, 1), (1, 2), (2, 0))
    assert pairs_in_text("source_target_pairs={}") == ()
