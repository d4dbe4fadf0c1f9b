"""Light and heavy steps."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.analysis.steps.classes import classify_steps, periodicity


def heavy(lengths: list[float]) -> list[int] | None:
    found = classify_steps(lengths)
    return None if found is None else [i for i, flag in enumerate(found.heavy) if flag]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([10, 10, 20, 10, 10, 20, 10], [2, 5]),
        ([20, 10, 20, 10, 20, 10], [0, 2, 4]),
        # Ratio exactly 1.5 counts, below it does not.
        ([10, 10, 15, 15, 10, 10], [2, 3]),
        ([10, 10, 14.9, 14.9, 10, 10], None),
        # Too few steps, one class, one outlier, less than a tenth.
        ([10, 20, 10, 20, 10], None),
        ([10] * 8, None),
        ([10] * 7 + [50], None),
        ([10] * 28 + [50] * 2, None),
        ([10] * 18 + [50] * 2, [18, 19]),
        ([], None),
        ([0, 10, 20, 10, 20, 10], None),
    ],
)
def test_classes_by_hand(lengths, expected):
    assert heavy(lengths) == expected


def plain_classes(lengths: list[float]) -> set[frozenset[int]]:
    """All best splits of the sorted log lengths by brute force."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    logs = np.log([lengths[i] for i in order])
    cost = {
        cut: ((logs[:cut] - logs[:cut].mean()) ** 2).sum()
        + ((logs[cut:] - logs[cut:].mean()) ** 2).sum()
        for cut in range(1, len(lengths))
    }
    best = min(cost.values())
    return {frozenset(order[cut:]) for cut, value in cost.items() if value <= best + 1e-9}


@settings(deadline=None)
@given(
    st.lists(st.integers(100, 130), min_size=3, max_size=9),
    st.lists(st.integers(300, 360), min_size=3, max_size=9),
    st.randoms(use_true_random=False),
)
def test_the_split_is_the_best_one(light, slow, rng):
    lengths = [*light, *slow]
    rng.shuffle(lengths)
    found = heavy([float(value) for value in lengths])
    assert found is not None
    assert frozenset(found) in plain_classes([float(value) for value in lengths])
    assert sorted(lengths[i] for i in found) == sorted(slow)


def test_the_order_of_steps_does_not_matter():
    lengths = [10.0, 10.0, 25.0, 12.0, 25.0, 11.0]
    for permuted in itertools.islice(itertools.permutations(lengths), 0, 720, 61):
        found = heavy(list(permuted))
        assert found is not None
        assert sorted(permuted[i] for i in found) == [25.0, 25.0]


@pytest.mark.parametrize(
    ("indexes", "expected"),
    [
        ([2, 5, 8, 11], 3),
        ([0, 2, 4, 9, 14], 2),
        ([0, 5, 10, 12, 14], 2),
        ([0, 1, 2, 3], None),
        ([0, 4], None),
        ([3], None),
        ([], None),
        ([0, 4, 9, 13, 18], 4),
    ],
)
def test_periodicity(indexes, expected):
    """The commonest difference above 1 seen at least twice; ties: the smaller."""
    assert periodicity(indexes) == expected
