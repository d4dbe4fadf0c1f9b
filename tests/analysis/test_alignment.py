"""Sequences of ends on two clocks laid side by side."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from marin_profile.analysis.collectives.alignment import FURTHEST, shift_between


def ends(*distances: int, offset: int = 0) -> np.ndarray:
    return offset + np.cumsum([0, *distances])


UNEVEN = (1000, 1370, 1100, 1510, 1230, 1005, 1440)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(0, 7, 0), (1, 7, 1), (2, 5, 2), (0, 3, 0), (3, 7, 3)],
)
def test_a_part_is_found_wherever_it_lies_and_on_any_clock(first, last, expected):
    whole = ends(*UNEVEN)
    part = ends(*UNEVEN[first:last], offset=98_765)
    assert shift_between(whole, part) == expected
    assert shift_between(part, whole) == -expected


def test_jitter_of_a_hundredth_does_not_matter():
    jitter = np.array([3, -8, 5, 9, -4, 0, 7, -6])
    assert shift_between(ends(*UNEVEN), ends(*UNEVEN, offset=-50)[1:] + jitter[1:]) == 1


def test_any_two_sequences_meet_where_all_shifts_are_tried():
    rng = np.random.default_rng(3)
    met = 0
    for _ in range(100):
        whole = np.cumsum(rng.integers(1, 1_000, rng.integers(4, 40)))
        first, length = rng.integers(0, 5), rng.integers(2, 40)
        part = whole[first : first + length] + rng.integers(0, rng.choice([1, 9, 400]))
        part = part + rng.integers(0, rng.choice([1, 9, 400]), len(part))
        one_clock = bool(rng.integers(0, 2))
        found = shift_between(whole, part, one_clock=one_clock)
        assert found == by_all_shifts(whole, part, one_clock=one_clock)
        met += found is not None
    assert met > 15


def by_all_shifts(whole: np.ndarray, part: np.ndarray, *, one_clock: bool) -> int | None:
    fits = {}
    for shift in range(-FURTHEST, FURTHEST + 1):
        pairs = [
            (whole[at + shift], part[at]) for at in range(len(part)) if 0 <= at + shift < len(whole)
        ]
        if len(pairs) >= max(2, min(len(whole), len(part)) / 2):
            apart = [int(one - other) for one, other in pairs]
            offset = 0 if one_clock else median(apart)
            fits[shift] = (median(abs(one - offset) for one in apart), len(pairs))
    if not fits:
        return None
    distance = (whole[-1] - whole[0]) / (len(whole) - 1)
    best = min(fit for fit, _ in fits.values())
    alike = {s: count for s, (fit, count) in fits.items() if fit <= 2 * best + distance / 10_000}
    largest = [shift for shift, count in alike.items() if count == max(alike.values())]
    return largest[0] if best <= distance / 10 and len(largest) == 1 else None


def test_even_sequences_meet_whole_or_not_at_all():
    """Seven fit on seven; five fit on seven in three ways."""
    even = ends(*[1000] * 6)
    assert shift_between(even, even + 17) == 0
    assert shift_between(even, even[:5]) is None


def test_another_rhythm_fits_nowhere():
    assert shift_between(ends(*UNEVEN), ends(3000, 200, 4100, 350, 2600, 90)) is None


def test_half_of_the_shorter_one_must_overlap():
    """The last two of five are the first two of the other: too few."""
    first, second = ends(1000, 1700, 900, 1200), ends(1200, 2100, 400, 1950)
    assert shift_between(first, second) is None
    # Three of five.
    second = ends(900, 1200, 2100, 400)
    assert shift_between(first, second) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_one_execution_has_no_distance(count):
    assert shift_between(ends(*UNEVEN), ends(*UNEVEN)[:count]) is None


def test_on_one_clock_the_times_themselves_tell():
    """An even rhythm: which of seven the five are is plain."""
    even = ends(*[1000] * 6)
    assert shift_between(even, even[2:] + 30, one_clock=True) == 2
    assert shift_between(even, even[1:6] - 30, one_clock=True) == 1
    assert shift_between(even, even + 400, one_clock=True) is None


def test_windows_do_not_open_very_far_apart():
    draw = np.random.default_rng(5)
    long = ends(*draw.integers(500, 1500, 4 * FURTHEST).tolist())
    assert shift_between(long, long[FURTHEST:]) == FURTHEST
    assert shift_between(long, long[FURTHEST + 1 :]) is None
