"""Which devices meet in a collective."""

import numpy as np
import pytest

from marin_profile.events.replica_groups import (
    groups_in_text,
    groups_of_captured,
    iota_groups,
    mesh_groups,
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


def test_who_of_the_captured_meets():
    assert groups_of_captured(((0, 1, 2, 3),), [0, 1]) == [[0, 1]]
    assert groups_of_captured(((0, 2), (1, 3)), [0, 1, 2, 3]) == [[0, 2], [1, 3]]
    # Half of the devices are on another host: nobody knows who meets whom here.
    assert groups_of_captured(((0, 4), (1, 5), (2, 6), (3, 7)), [0, 1, 2, 3]) is None
    assert groups_of_captured((), [0, 1]) is None
