"""Interval algebra against sets of integer points, and hand-worked cases."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_profile.base.intervals import Intervals, self_pieces

pytestmark = pytest.mark.usefixtures("loops")

RAW = st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 25)), max_size=12)
Pairs = list[tuple[int, int]]


def column(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def union(pairs: Pairs) -> Intervals:
    return Intervals.union_of(column(a for a, _ in pairs), column(b for _, b in pairs))


def points(pairs: Pairs) -> set[int]:
    return {point for a, b in pairs for point in range(a, b)}


def pairs_of(intervals: Intervals) -> Pairs:
    return list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))


def assert_is(intervals: Intervals, expected: set[int]) -> None:
    """The same points, and sorted, disjoint, non-empty intervals."""
    found = pairs_of(intervals)
    assert points(found) == expected
    assert intervals.total == len(expected)
    assert all(a < b for a, b in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(found))


def from_raw(raw: list[tuple[int, int]]) -> Pairs:
    return [(start, start + length) for start, length in raw]


@settings(deadline=None)
@given(RAW, RAW)
def test_every_operation_gives_the_points_of_sets(raw_a, raw_b):
    a, b = from_raw(raw_a), from_raw(raw_b)
    in_a, in_b = points(a), points(b)
    left, right = union(a), union(b)
    assert_is(left, in_a)
    assert_is(left | right, in_a | in_b)
    assert_is(left & right, in_a & in_b)
    assert_is(left - right, in_a - in_b)
    assert left.total == (left & right).total + (left - right).total


@settings(deadline=None)
@given(RAW, st.integers(-5, 90), st.integers(-5, 90))
def test_clip(raw, start, end):
    pairs = from_raw(raw)
    assert_is(union(pairs).clip(start, end), points(pairs) & set(range(start, end)))


@settings(deadline=None)
@given(RAW, st.lists(st.tuples(st.integers(-5, 90), st.integers(0, 40)), max_size=6))
def test_covered(raw, windows):
    pairs = from_raw(raw)
    starts = column(start for start, _ in windows)
    ends = column(start + length for start, length in windows)
    expected = [len(points(pairs) & set(range(start, start + length))) for start, length in windows]
    assert union(pairs).covered(starts, ends).tolist() == expected


def test_touching_and_nested_intervals_are_one():
    assert pairs_of(union([(5, 10), (0, 5), (2, 3), (12, 12), (20, 18)])) == [(0, 10)]


def test_hundreds_of_intervals_against_hundreds():
    """Every 10 against every 7, so that they meet in every way."""
    a = [(at, at + 3) for at in range(0, 2100, 10)]
    b = [(at, at + 3) for at in range(2, 2100, 7)]
    assert_is(union(a) | union(b), points(a) | points(b))
    assert_is(union(a) & union(b), points(a) & points(b))
    assert_is(union(a) - union(b), points(a) - points(b))
    assert_is(union(b) - union(a), points(b) - points(a))


def test_picoseconds_of_a_day_stay_exact():
    day = 86_400 * 10**12
    a, b = union([(0, day)]), union([(1, day - 1)])
    assert (a - b).total == 2
    assert (a & b).total == day - 2


# --- self time ---------------------------------------------------------------------------------


def split(events: Pairs, can_contain: list[bool] | None = None):
    """Pieces by owner, and the number of partial overlaps; events sorted as the contract asks."""
    allowed = np.array([True] * len(events) if can_contain is None else can_contain, np.bool_)
    starts, ends, owners, overlaps = self_pieces(
        column(a for a, _ in events), column(b for _, b in events), allowed
    )
    pieces: list[Pairs] = [[] for _ in events]
    for start, end, owner in zip(starts.tolist(), ends.tolist(), owners.tolist(), strict=True):
        pieces[owner].append((start, end))
    return pieces, overlaps


def self_times(events: Pairs, can_contain: list[bool] | None = None) -> list[int]:
    pieces, _ = split(events, can_contain)
    return [sum(b - a for a, b in own) for own in pieces]


def expected_pieces(events: Pairs, can_contain: list[bool]) -> list[set[int]]:
    """Plain oracle: an event keeps the points that none of its children covers; its parent is the
    nearest earlier event that may contain it and covers it whole."""
    own = [set(range(a, b)) for a, b in events]
    for child, (start, end) in enumerate(events):
        for parent in range(child - 1, -1, -1):
            a, b = events[parent]
            if can_contain[parent] and a <= start < b and end <= b:
                own[parent] -= set(range(start, end))
                break
    return own


def expected_overlaps(events: Pairs, can_contain: list[bool]) -> int:
    """Events that begin inside an earlier one and outlast it, with no parent between."""
    count = 0
    for child, (start, end) in enumerate(events):
        for parent in range(child - 1, -1, -1):
            a, b = events[parent]
            if can_contain[parent] and a <= start < b and end <= b:
                break
            if start < b < end:
                count += 1
                break
    return count


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30), st.booleans()), max_size=14),
)
def test_self_pieces_against_the_oracle(raw):
    raw.sort(key=lambda row: (row[0], -row[1]))
    events = [(start, start + length) for start, length, _ in raw]
    can_contain = [flag for _, _, flag in raw]
    pieces, overlaps = split(events, can_contain)
    expected = expected_pieces(events, can_contain)
    assert overlaps == expected_overlaps(events, can_contain)
    assert [points(own) for own in pieces] == expected
    assert all(a < b for own in pieces for a, b in own)
    assert [sum(b - a for a, b in own) for own in pieces] == [len(own) for own in expected]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=14))
def test_self_pieces_cover_what_is_busy(raw):
    events = sorted(from_raw(raw), key=lambda pair: (pair[0], -pair[1]))
    pieces, _ = split(events)
    assert points([pair for own in pieces for pair in own]) == points(events)


@pytest.mark.parametrize(
    ("events", "expected", "overlaps"),
    [
        # A 0-10, B 5-15: partial overlap is not nesting.
        ([(0, 10), (5, 15)], [10, 10], 1),
        # while 0-100 with fusion 10-40 and all-reduce 40-90.
        ([(0, 100), (10, 40), (40, 90)], [20, 30, 50], 0),
        # while > while > fusion
        ([(0, 100), (10, 90), (20, 30)], [20, 70, 10], 0),
        # Two equal events: the first contains the second.
        ([(0, 10), (0, 10)], [0, 10], 0),
        # Neighbours that touch, and an instant inside.
        ([(0, 10), (10, 20)], [10, 10], 0),
        ([(0, 10), (5, 5)], [10, 0], 0),
        # A child that overlaps its sibling partially.
        ([(0, 100), (10, 50), (40, 60)], [50, 40, 20], 1),
        # A kernel that ends 1 after its neighbour starts is tolerated, and counted.
        ([(0, 11), (10, 20)], [11, 10], 1),
        ([], [], 0),
    ],
)
def test_self_time_by_hand(events, expected, overlaps):
    assert self_times(events) == expected
    assert split(events)[1] == overlaps


def test_hundreds_of_nested_events_keep_half():
    """300 events of 4, each with a child of 2 in its middle."""
    events = [pair for at in range(0, 3000, 10) for pair in ((at, at + 4), (at + 1, at + 3))]
    pieces, overlaps = split(events)
    assert pieces[:2] == [[(0, 1), (3, 4)], [(1, 3)]]
    assert self_times(events) == [2] * 600
    assert overlaps == 0


def test_only_containers_contain():
    assert self_times([(0, 100), (10, 40)], [False, True]) == [100, 30]
    assert union([(0, 10), (5, 15)]).total == 15


def test_an_event_inside_one_that_contains_nothing_does_not_overlap_it_partially():
    starts, ends = np.array([0, 2]), np.array([10, 5])
    *_, overlaps = self_pieces(starts, ends, np.array([False, True]))
    assert overlaps == 0


def test_an_event_that_ends_with_one_that_contains_nothing_does_not_overlap_it_partially():
    assert split([(0, 10), (5, 10)], [False, False])[1] == 0


def test_an_event_does_not_overlap_one_that_ended_below_a_longer_one():
    # The third lies inside the second, which contains nothing; the first is long over.
    starts, ends = np.array([0, 3, 10]), np.array([5, 20, 15])
    *_, overlaps = self_pieces(starts, ends, np.zeros(3, np.bool_))
    assert overlaps == 1  # the second overlaps the first
