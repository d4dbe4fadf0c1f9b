"""Captures taken in turn: which are pairs, what their differences say, and how exactly."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from marin_profile.verdict.paired import paired_change, pairs_in_time, pairs_needed

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from bench_sequential import widths

NAN = math.nan


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ([10], [20], ((0, 0),)),
        ([20], [10], ((0, 0),)),
        ([10, 30], [20, 40], ((0, 0), (1, 1))),  # A B A B
        ([10, 40], [20, 30], ((0, 0), (1, 1))),  # A B B A
        ([40, 10], [20, 30], ((1, 0), (0, 1))),  # the same, not listed in time's order
        ([20, 30, 50], [60, 40, 10], ((0, 2), (1, 1), (2, 0))),  # B A, A B, A B
        ([10, 20], [30, 40], None),  # A A B B
        ([20, 30], [10, 40], ((0, 0), (1, 1))),  # B A A B
        ([10, 20, 50], [30, 40, 60], None),
        ([10, 30], [20], None),
        ([10], [20, 30], None),
        ([], [], None),
        ([10, None], [20, 40], None),
        ([10, 30], [20, NAN], None),
        ([10, 30], [20, math.inf], None),
        ([10, 30], [10, 40], ((0, 0), (1, 1))),  # together within a pair: no matter which is first
        ([10, 20], [20, 30], None),  # the 20s could change places
    ],
)
def test_pairs_in_time(
    before: list[float | None],
    after: list[float | None],
    pairs: tuple[tuple[int, int], ...] | None,
) -> None:
    assert pairs_in_time(before, after) == pairs


def test_one_sample_t() -> None:
    # Mean 3; squares 4 + 1 + 0 + 9 = 14, sd^2 = 14 / 3, error^2 = 14 / 12; t(3): 3.1824, 5.8409.
    change = paired_change([1.0, 2.0, 3.0, 6.0], NAN)
    assert change.pairs == 4
    assert change.estimate == pytest.approx(3.0)
    assert change.standard_error == pytest.approx(math.sqrt(14 / 12))
    assert change.degrees_of_freedom == 3
    assert change.from_pairs
    assert change.half_width(0.975) == pytest.approx(3.1824 * math.sqrt(14 / 12), rel=1e-4)
    assert change.half_width(0.995) == pytest.approx(5.8409 * math.sqrt(14 / 12), rel=1e-4)


def test_the_error_within_captures_is_a_lower_bound() -> None:
    # From pairs 0.1 (t(1) 12.706), from steps sqrt(4 + 4) / 2 with 5 + 5 degrees (t(10) 2.2281).
    change = paired_change([1.0, 1.2], [4.0, 4.0], 5.0)
    assert not change.from_pairs
    assert change.standard_error == pytest.approx(math.sqrt(2))
    assert change.degrees_of_freedom == pytest.approx(10)
    assert change.half_width(0.975) == pytest.approx(2.2281 * math.sqrt(2), rel=1e-4)


def test_the_error_from_pairs_counts_where_it_is_wider() -> None:
    change = paired_change([1.0, 2.0, 3.0, 6.0], [0.5] * 4, 5.0)
    assert change.from_pairs
    assert change.standard_error == pytest.approx(math.sqrt(14 / 12))
    assert change.degrees_of_freedom == 3


def test_unequal_variances_have_satterthwaites_degrees_of_freedom() -> None:
    # (1 + 9)^2 / (1 / 4 + 81 / 8) = 100 / 10.375
    change = paired_change([1.0, 1.0], [1.0, 9.0], [4.0, 8.0])
    assert change.standard_error == pytest.approx(math.sqrt(10) / 2)
    assert change.degrees_of_freedom == pytest.approx(100 / 10.375)
    # One variance that is most of it, with little known of it: never below 1.
    assert paired_change([1.0, 1.0], [0.0, 9.0], [4.0, 0.5]).degrees_of_freedom == 1


def test_the_wider_counts_at_each_level() -> None:
    # From pairs 0.1, t(1) 12.706 and 63.657; from steps 1, normal 1.9600 and 2.5758.
    change = paired_change([1.0, 1.2], [2.0, 2.0])
    assert not change.from_pairs
    assert change.half_width(0.975) == pytest.approx(1.9600, rel=1e-4)
    assert change.half_width(0.995) == pytest.approx(6.3657, rel=1e-4)


def test_unknown_variances_add_nothing_to_the_lower_bound() -> None:
    values = [1.0, 1.0, 1.0]
    assert paired_change(values, [NAN, 4.0, NAN], 6.0).standard_error == pytest.approx(2 / 3)
    assert paired_change(values, [NAN, 4.0, NAN], 6.0).degrees_of_freedom == pytest.approx(6)
    unknown = paired_change(values, NAN)
    assert unknown.from_pairs
    assert unknown.standard_error == 0
    assert unknown.half_width(0.975) == 0


def test_captures_without_any_spread() -> None:
    change = paired_change([1.0, 1.0], [0.0, 0.0], 3.0)
    assert change.standard_error == 0
    assert change.degrees_of_freedom == 1


def test_one_pair_has_the_error_of_its_steps_or_none() -> None:
    known = paired_change([0.1], [0.04], 10.0)
    assert not known.from_pairs
    assert known.standard_error == pytest.approx(0.2)
    assert known.degrees_of_freedom == pytest.approx(10)
    assert known.half_width(0.975) == pytest.approx(2.2281 * 0.2, rel=1e-4)
    unknown = paired_change([0.1], NAN)
    assert not unknown.from_pairs
    assert unknown.standard_error == math.inf
    assert unknown.half_width(0.975) == math.inf
    assert unknown.tail(np.array(5.0)) == 0.5


def test_the_last_axis_is_that_of_pairs() -> None:
    both = paired_change([[1.0, 2.0, 3.0, 6.0], [1.0, 1.0, 1.0, 1.0]], [[NAN] * 4, [4.0] * 4], 5.0)
    assert both.estimate == pytest.approx([3.0, 1.0])
    assert both.standard_error == pytest.approx([math.sqrt(14 / 12), 1.0])
    assert both.degrees_of_freedom == pytest.approx([3.0, 20.0])
    assert both.half_width(0.975) == pytest.approx([3.1824 * math.sqrt(14 / 12), 2.0860], rel=1e-4)


@pytest.mark.parametrize("variances", [NAN, 0.5, 20.0])
@pytest.mark.parametrize("level", [0.2, 0.025, 0.0005])
def test_the_tail_is_the_level_of_the_bound_at_that_distance(
    level: float, variances: float
) -> None:
    change = paired_change([1.0, 2.0, 3.0, 6.0], variances, 5.0)
    assert change.tail(change.half_width(1.0 - level)) == pytest.approx(level, rel=1e-6)


def test_tails_at_and_below_nothing_and_without_spread() -> None:
    change = paired_change([1.0, 2.0], NAN)
    assert change.tail(np.array([0.0, -3.0])) == pytest.approx([0.5, 0.5])
    certain = paired_change([1.0, 1.0], NAN)
    assert certain.tail(np.array([0.1, 0.0, -0.1])) == pytest.approx([0.0, 0.5, 0.5])


def test_pairs_needed() -> None:
    """In nine of ten cases: (t + 1.2816) / sqrt(k) standard deviations away."""
    # t(11) 2.2010 -> 1.005, t(12) 2.1788 -> 0.960; t(16) 2.9208 -> 1.019, t(17) 2.8982 -> 0.985.
    assert pairs_needed(0.0, 0.05, 0.05, 2) == 13
    assert pairs_needed(0.05, 0.02, 0.05, 2) == 18
    assert pairs_needed(0.05, 0.02, 0.05, 17) == 18
    assert pairs_needed(0.05, 0.02, 0.05, 18) == 19
    assert pairs_needed(-0.9, 0.05, 0.001, 0) == 2  # one pair has no spread
    assert pairs_needed(0.05, 0.02, 0.05, 2, most=18) == 18
    assert pairs_needed(0.05, 0.02, 0.05, 2, most=17) is None
    assert pairs_needed(0.05, 0.02, 0.05, 18, most=18) is None
    assert pairs_needed(0.001, 0.001, 1.0, 2) is None
    # t(99) 1.9842 -> 0.3266 at 100 pairs, which are the most.
    assert pairs_needed(0.0, 0.327, 1.0, 2) == 100
    assert pairs_needed(0.0, 0.326, 1.0, 2) is None
    # Other levels: t(3) 3.1824 -> 2.232; t(4) 4.6041 -> 2.632, t(5) 4.0321 -> 2.169.
    assert pairs_needed(0.0, 2.24, 1.0, 2) == 4
    assert pairs_needed(0.0, 2.24, 1.0, 2, interval=0.995) == 6
    assert pairs_needed(2.24, 0.0, 1.0, 2) == 6
    assert pairs_needed(2.24, 0.0, 1.0, 2, certain=0.975) == 4


@pytest.mark.parametrize(
    ("drift", "pairs", "least", "most"),
    [  # without a drift only degrees of freedom are lost: t(4) / t(8) is 1.20, t(9) / t(18) 1.08
        (0.0, 5, 0.87, 0.93),
        (0.0, 10, 0.93, 0.97),
        (1.0, 5, 1.2, 1.3),
        (3.0, 5, 2.5, 2.8),
    ],
)
def test_against_captures_that_are_not_paired(
    drift: float, pairs: int, least: float, most: float
) -> None:
    rng = np.random.default_rng(11)
    own = rng.standard_normal((2, 4000, pairs))
    found = widths(own, drift * rng.standard_normal((4000, pairs)))
    assert least <= found.ratio <= most
    assert 0.94 <= found.paired_coverage <= 0.96
    assert found.welch_coverage >= 0.94
