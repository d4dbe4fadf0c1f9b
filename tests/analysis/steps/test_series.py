"""Steps of a series: which may be kept, their windows and periods, and how far apart they are."""

from __future__ import annotations

import numpy as np
import pytest

from marin_profile.analysis.steps.series import SharedSteps, StepSeries, known_medians

CUT = {"": (), "first": (0,), "last": (-1,), "both": (0, -1)}


def series(
    boundary: list[list[int]],
    *,
    numbers: list[int] | None = None,
    length: int = 60,
    cut: str = "",
    absent: tuple[tuple[int, int], ...] = (),
    too_few: bool = False,
) -> StepSeries:
    """Steps that begin at these times on each device and work from 10 to 10 + `length` later;
    `absent`: the (device, step) that took no part."""
    begin = np.array(boundary, np.int64)
    count = begin.shape[1]
    present = np.ones(begin.shape, np.bool_)
    for place in absent:
        present[place] = False
    flags = np.zeros(count, np.bool_)
    flags[list(CUT[cut])] = True
    return StepSeries(
        source="annotation",
        annotation="train",
        linked=True,
        numbers=tuple(numbers) if numbers else (None,) * count,
        start=begin + min(10, length),
        end=begin + min(10, length) + length,
        boundary=begin,
        present=present,
        cut=flags,
        too_few=too_few,
    )


EVEN = [[0, 100, 200, 300]]


@pytest.mark.parametrize(
    ("cut", "whole"), [("", (0, 4)), ("first", (1, 4)), ("last", (0, 3)), ("both", (1, 3))]
)
def test_the_steps_that_may_be_kept(cut, whole):
    found = series(EVEN, cut=cut).whole
    assert (found.start, found.stop) == whole
    assert not series(EVEN, cut=cut, too_few=True).whole


def test_without_steps_there_is_nothing_to_keep():
    none = StepSeries.none()
    assert (none.source, none.linked, none.count, none.too_few) == ("none", False, 0, False)
    assert (none.without_work, none.long_op, none.notes, none.doubts) == (0, None, (), ())
    assert not none.whole
    assert none.window(0) is None
    assert none.periods(0) == ([], 0)
    assert none.has_successor.tolist() == []
    assert none.period().shape == (0, 0)
    assert none.cut.shape == (0,)
    lone = series([[0]], cut="both")
    assert not lone.whole
    assert lone.window(0) is None


@pytest.mark.parametrize(
    ("first", "cut", "window"),
    [
        (0, "", (0, 375)),
        (2, "", (200, 375)),
        (3, "", (300, 375)),
        (4, "", None),
        (1, "last", (100, 275)),
        (3, "last", None),
        (4, "last", None),
    ],
)
def test_the_window_is_from_the_first_boundary_to_the_last_end(first, cut, window):
    """Two devices, the second 5 later."""
    both = [EVEN[0], [at + 5 for at in EVEN[0]]]
    assert series(both, cut=cut).window(first) == window


def test_a_device_that_takes_no_part_does_not_widen_the_window():
    both = [EVEN[0], [at - 5 for at in EVEN[0]]]
    assert series(both, absent=((1, 1),)).window(1) == (100, 370)
    later = [EVEN[0], [at + 5 for at in EVEN[0]]]
    assert series(later, absent=((1, 3),)).window(1) == (100, 370)


def test_steps_that_last_no_time_have_no_window():
    assert series([[50]], length=0).window(0) is None
    assert series([[50]], length=1).window(0) == (50, 52)


def test_whole_periods_are_from_the_first_boundary_to_the_last():
    both = [EVEN[0], [5, 105, 205, 315]]
    assert series(both).periods(0) == ([(0, 300), (5, 315)], 3)
    assert series(both).periods(2) == ([(200, 300), (205, 315)], 1)
    # A lone step counts by the window of all devices.
    assert series(both).periods(3) == ([(300, 385)] * 2, 1)
    # A cut step still has a boundary.
    assert series(both, cut="last").periods(1) == ([(100, 300), (105, 315)], 2)
    assert series(both, cut="last").periods(3) == ([], 0)


def test_where_a_device_takes_no_part_the_earliest_of_the_others_bounds_its_periods():
    three = [EVEN[0], [5, 105, 205, 315], [7, 107, 207, 317]]
    found = series(three, absent=((0, 1), (2, 3))).periods(1)
    assert found == ([(105, 300), (105, 315), (107, 300)], 2)
    # The first device's first step began after the others' last one.
    late = [[400, 400, 450], [0, 100, 200]]
    assert series(late, absent=((0, 2),)).periods(1) == ([(400, 400), (100, 200)], 1)


@pytest.mark.parametrize(
    ("numbers", "passed", "successors"),
    [
        (None, 3, [True, True, True, False]),
        ([4, 5, 6, 7], 3, [True, True, True, False]),
        # 6 and 7 are missing.
        ([4, 5, 8, 9], 5, [True, False, True, False]),
        # Every second one is annotated; of distances seen as often the least is the stride.
        ([0, 2, 4, 8], 4, [True, True, False, False]),
        ([0, 2, 5, 9], 3, [True, False, False, False]),
        ([0, 2, 5, 8], 3, [False, True, True, False]),
        # The numbers start again, and fall.
        ([0, 1, 2, 0], 3, [True, True, False, False]),
        ([0, 4, 2, 6], 3, [True, False, True, False]),
        ([0, 1, 1, 2], 3, [True, False, True, False]),
        ([0, 0, 1, 1], 3, [True, False, True, False]),
    ],
)
def test_how_many_steps_passed(numbers, passed, successors):
    found = series(EVEN, numbers=numbers)
    assert found.periods(0)[1] == passed
    assert found.has_successor.tolist() == successors


def test_a_lone_step_has_no_successor():
    assert series([[0]], numbers=[3]).has_successor.tolist() == [False]
    assert series([[0]]).has_successor.tolist() == [False]


@pytest.mark.parametrize(
    ("cut", "known"),
    [("", [True, True, True, False]), ("first", [False, True, True, False]),
     ("last", [True, True, True, False])],
)  # fmt: skip
def test_the_period_of_a_step_ends_where_the_next_one_begins(cut, known):
    begin, end, found = series(EVEN, cut=cut).spans
    assert found.tolist() == [known]
    assert (end - begin)[found].tolist() == [100] * sum(known)
    period = series(EVEN, cut=cut).period()
    assert (~np.isnan(period)).tolist() == [known]


def test_of_a_step_without_part_and_of_steps_out_of_order_no_period_is_known():
    found = series([[0, 100, 100, 50, 300], [0, 1, 2, 3, 4]], absent=((1, 2),)).period()
    assert np.array_equal(
        found,
        [[100, 0, np.nan, 250, np.nan], [1, np.nan, np.nan, 1, np.nan]],
        equal_nan=True,
    )


def test_only_some_steps():
    some = series(
        [[0, 100, 200, 300], [5, 105, 205, 305]], numbers=[4, 5, 6, 7], absent=((1, 2),)
    ).only(SharedSteps((1, 2), (False, True)))
    assert some.numbers == (5, 6)
    assert some.boundary.tolist() == [[100, 200], [105, 205]]
    assert some.start.tolist() == [[110, 210], [115, 215]]
    assert some.end.tolist() == [[170, 270], [175, 275]]
    assert some.present.tolist() == [[True, True], [True, False]]
    assert some.cut.tolist() == [False, True]


def test_medians_of_the_devices_that_have_a_value():
    values = np.array([[1, np.nan, np.nan, 4], [2, 3, np.nan, 8], [9, 4, np.nan, 5]])
    assert known_medians(values) == [2, 3.5, None, 5]
    assert known_medians(np.zeros((0, 3))) == [None] * 3
    assert known_medians(np.zeros((3, 0))) == []
