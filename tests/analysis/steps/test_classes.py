"""Light and heavy steps, and how regularly steps come back."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.analysis.steps import classes
from marin_profile.analysis.steps.classes import classify_steps, periodicity


def heavy(periods: list[float]) -> list[int] | None:
    found = classify_steps(periods)
    return None if found is None else [i for i, flag in enumerate(found.heavy) if flag]


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        ([10, 10, 20, 10, 10, 20, 10], [2, 5]),
        ([20, 10, 20, 10, 20, 10], [0, 2, 4]),
        # A ratio of 1.1 counts, below it does not.
        ([10, 10, 11, 11, 10, 10], [2, 3]),
        ([10, 10, 10.9, 10.9, 10, 10], None),
        # Too few steps, one class, one outlier, less than a tenth, exactly a tenth.
        ([10, 20, 10, 20, 10], None),
        ([10] * 8, None),
        ([10] * 7 + [50], None),
        ([10] * 28 + [50] * 2, None),
        ([10] * 18 + [50] * 2, [18, 19]),
        ([10] * 19 + [50] * 2, None),
        ([], None),
        ([0, 10, 20, 10, 20, 10], None),
        # A steady rise, and a spread as wide as the distance, are one class.
        ([10, 12, 14, 16, 18, 20, 22, 24], None),
        ([10, 11, 12, 14, 18, 20, 22, 24], None),
    ],
)
def test_classes_by_hand(periods, expected):
    assert heavy(periods) == expected


def plain_classes(periods: list[float]) -> set[frozenset[int]]:
    """All best splits of the sorted log periods by brute force."""
    order = sorted(range(len(periods)), key=lambda i: periods[i])
    logs = np.log([periods[i] for i in order])
    cost = {
        cut: ((logs[:cut] - logs[:cut].mean()) ** 2).sum()
        + ((logs[cut:] - logs[cut:].mean()) ** 2).sum()
        for cut in range(2, len(periods) - 1)
    }
    best = min(cost.values())
    return {frozenset(order[cut:]) for cut, value in cost.items() if value <= best + 1e-9}


@settings(deadline=None)
@given(
    st.lists(st.integers(100, 108), min_size=3, max_size=9),
    st.lists(st.integers(300, 324), min_size=3, max_size=9),
    st.randoms(use_true_random=False),
)
def test_the_split_is_the_best_one(light, slow, rng):
    periods = [*light, *slow]
    rng.shuffle(periods)
    found = heavy([float(value) for value in periods])
    assert found is not None
    assert frozenset(found) in plain_classes([float(value) for value in periods])
    assert sorted(periods[i] for i in found) == sorted(slow)


def test_the_order_of_steps_does_not_matter():
    periods = [10.0, 10.0, 25.0, 10.2, 25.0, 10.1]
    for permuted in itertools.islice(itertools.permutations(periods), 0, 720, 61):
        found = heavy(list(permuted))
        assert found is not None
        assert sorted(permuted[i] for i in found) == [25.0, 25.0]


SIZES = (6, 7, 8, 10, 13, 20, 35, 60, 110, 200)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("variation", [0.02, 0.4])
def test_noise_is_one_class(count, variation):
    """Log-normal noise of a coefficient of variation of 40 %: at most 1 % may be split."""
    rng = np.random.default_rng(count)
    spread = math.sqrt(math.log(1 + variation**2))
    runs = np.exp(spread * rng.standard_normal((1000, count)))
    assert sum(classify_steps(run.tolist()) is not None for run in runs) <= 10


@pytest.mark.parametrize("count", [8, 20, 100])
def test_other_noise_with_one_peak_is_one_class(count):
    """The hardest is a flat spread, which half a per cent may pass; then skewed and long tails."""
    rng = np.random.default_rng(count)
    shape = (1000, count)
    for logs in (rng.random(shape), rng.exponential(0.4, shape), 0.1 * rng.standard_t(3, shape)):
        found = sum(classify_steps(run.tolist()) is not None for run in np.exp(logs))
        assert found <= 15


@pytest.mark.parametrize(
    ("share", "ratio"), [(0.5, 1.5), (0.2, 1.5), (0.2, 2.0), (0.1, 2.0), (0.8, 1.5)]
)
def test_clear_classes_are_found(share, ratio):
    """Noise of 3 %, 20 and 80 steps: in 95 of 100 runs each step gets its class."""
    rng = np.random.default_rng(1)
    for count in (20, 80):
        slow = round(share * count)
        runs = np.exp(0.03 * rng.standard_normal((200, count)))
        runs[:, :slow] *= ratio
        found = [heavy(run.tolist()) == list(range(slow)) for run in runs]
        assert sum(found) >= 190, count


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 12, 15, 20, 30, 50])
def test_the_limit_is_the_quantile_that_it_is_said_to_be(count):
    """Of uniform samples, 0.5 % leave less than the limit at the best split."""
    rng = np.random.default_rng(2)
    logs = np.sort(rng.random((40_000, count)), axis=1)
    logs -= logs.mean(axis=1, keepdims=True)
    least = max(2, math.ceil(count / 10))
    sizes = np.arange(least, count - least + 1)
    saved = np.cumsum(logs, axis=1)[:, sizes - 1] ** 2 * (1 / sizes + 1 / (count - sizes))
    left = 1 - saved.max(axis=1) / (logs**2).sum(axis=1)
    assert np.mean(left < classes._most_left(count)) == pytest.approx(0.005, abs=0.0015)


@pytest.mark.parametrize(
    ("count", "limit"),
    [
        (6, 0.0128),
        (7, 0.0211),
        (8, 0.0299),
        (9, 0.0382),
        (10, 0.0458),
        (12, 0.0604),
        (15, 0.0779),
        (20, 0.0986),
        (30, 0.1246),
        (50, 0.1517),
        (100, 0.1799),
        (200, 0.2005),
        (1000, 0.2277),
        # 1/sqrt of 400 lies 0.529850 of the way from that of 200 to that of 1000.
        (400, 0.2005 + 0.529850 * 0.0272),
        # Of 4000 halfway to 0.
        (4000, 0.2277 + 0.5 * 0.0223),
    ],
)
def test_the_limit_is_exact_at_its_entries_and_between_them(count, limit):
    """Finer than samples tell, and for counts of which a test cannot draw enough of them."""
    assert classes._most_left(count) == pytest.approx(limit, abs=1e-7)


def test_the_limit_grows_smoothly_towards_a_quarter():
    """A wrong entry of the table would make a step; a uniform distribution itself leaves 1/4."""
    limits = np.array([classes._most_left(count) for count in range(6, 20_000)])
    growth = np.diff(limits)
    assert (growth > 0).all()
    assert growth.max() == growth[:2].max() < 0.01
    assert limits[-1] == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("members", "count", "expected"),
    [
        ([2, 5, 8, 11, 14], 16, 3),
        ([0, 5, 10, 15, 20, 25], 40, 5),
        # One stray more does no harm, three of five distances are not enough.
        ([0, 5, 10, 15, 20, 22, 25, 30], 40, 5),
        ([0, 5, 10, 15, 16, 30], 40, None),
        ([11, 23, 35, 47], 48, 12),
        # Seen once, not at all, or mostly next to each other.
        ([0, 4], 100, None),
        ([3], 100, None),
        ([], 100, None),
        ([0, 1, 2, 3], 100, None),
        ([0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13], 14, None),
        # Three places that happen to be as far apart, few places, chance.
        ([3, 7, 11], 12, None),
        ([0, 2, 4, 9, 14], 20, None),
    ],
)
def test_periodicity(members, count, expected):
    assert periodicity(members, count) == expected


@pytest.mark.parametrize(("count", "size", "seen"), [(12, 3, 2), (10, 4, 2), (14, 5, 3), (9, 2, 1)])
def test_the_chance_is_never_said_to_be_smaller_than_it_is(count, size, seen):
    """All sets of `size` places by enumeration."""
    sets = list(itertools.combinations(range(count), size))
    hits = 0
    for places in sets:
        distances = Counter(later - earlier for earlier, later in itertools.pairwise(places))
        hits += any(times >= seen for distance, times in distances.items() if distance > 1)
    bound = classes._chance(size, count, seen)
    assert hits / len(sets) <= bound * (1 + 1e-9)
    assert bound <= 1.25 * hits / len(sets)


def test_random_places_have_no_period():
    rng = np.random.default_rng(5)
    found = 0
    for count, size in ((30, 4), (60, 8), (200, 20), (400, 80), (1000, 30)):
        for _ in range(400):
            places = np.sort(rng.choice(count, size, replace=False))
            found += periodicity(places.tolist(), count) is not None
    assert found <= 20
