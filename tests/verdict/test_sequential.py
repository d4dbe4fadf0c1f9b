"""Looks after every pair: the level of all of them together, bounds, and simulated sequences."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from marin_profile.verdict import sequential
from marin_profile.verdict.paired import paired_change
from marin_profile.verdict.sequential import (
    CERTAIN_EACH_LOOK,
    FIRST_LOOK,
    INTERVAL_EACH_LOOK,
    LAST_LOOK,
    Look,
    level_of_all_looks,
    level_of_one_look,
    pairs_needed_with_looks,
)
from marin_profile.verdict.student import t_quantile

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from bench_sequential import ERRORS, looks, naive_false_alarms, normal

RUNS = 20_000
BESIDE = (FIRST_LOOK - 1, LAST_LOOK + 1)


def look_at(values: list[float], within: float = math.nan) -> Look:
    return Look(paired_change(values, within))


def with_mean_and_sd(mean: float, sd: float, pairs: int) -> list[float]:
    values = np.arange(float(pairs))
    values = (values - values.mean()) / values.std(ddof=1)
    return [float(value) for value in mean + sd * values]


# --- the level -----------------------------------------------------------------------------------


def test_all_looks_together_have_the_levels_of_the_contract() -> None:
    assert 0.0248 <= level_of_all_looks(INTERVAL_EACH_LOOK) <= 0.025
    assert 0.00496 <= level_of_all_looks(CERTAIN_EACH_LOOK) <= 0.005


@pytest.mark.parametrize("each_look", [0.3, 0.05, INTERVAL_EACH_LOOK])
def test_the_level_against_drawn_sequences(each_look: float) -> None:
    values = np.random.default_rng(1).standard_normal((400_000, LAST_LOOK))
    crossed = np.zeros(len(values), np.bool_)
    total, squares = values[:, 0].copy(), values[:, 0] ** 2
    for pairs in range(2, LAST_LOOK + 1):
        total += values[:, pairs - 1]
        squares += values[:, pairs - 1] ** 2
        t = total / np.sqrt((squares - total**2 / pairs) * pairs / (pairs - 1))
        if pairs >= FIRST_LOOK:
            crossed |= t > t_quantile(1 - each_look, pairs - 1.0)
    share = crossed.mean()
    tolerance = 4 * math.sqrt(share * (1 - share) / len(values))
    assert level_of_all_looks(each_look) == pytest.approx(share, abs=tolerance)


@pytest.mark.parametrize("each_look", [0.3, 0.05, 0.001])
def test_one_and_two_looks(each_look: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential, "LAST_LOOK", FIRST_LOOK)
    assert level_of_all_looks(each_look) == pytest.approx(each_look, abs=1e-12)
    monkeypatch.setattr(sequential, "LAST_LOOK", FIRST_LOOK + 1)
    # Three normal values of squares 1 have a sum uniform in -sqrt(3) .. sqrt(3) (Archimedes); the
    # fourth, times sqrt(3), is t(3).
    sums = math.sqrt(3) * (2 * (np.arange(1000) + 0.5) / 1000 - 1)
    t = sums / np.sqrt((1 - sums**2 / 3) * 3 / 2)
    open_still = t <= t_quantile(1 - each_look, 2.0)
    fourth = np.linspace(-20, 20, 40_001)
    middle = 0.5 * (fourth[1:] + fourth[:-1])
    tails = np.zeros(len(sums))
    limit = float(t_quantile(1 - each_look, 3.0))
    for at in np.flatnonzero(open_still).tolist():
        total = sums[at] + fourth
        above = total / np.sqrt((1 + fourth**2 - total**2 / 4) * 4 / 3) > limit
        changes = np.flatnonzero(above[1:] != above[:-1])
        ends = [*middle[changes], math.inf] if above[-1] else list(middle[changes])
        tails[at] = sum(
            _t3_below(math.sqrt(3) * high) - _t3_below(math.sqrt(3) * low)
            for low, high in zip(ends[::2], ends[1::2], strict=True)
        )
    expected = each_look + tails.mean()
    assert level_of_all_looks(each_look) == pytest.approx(expected, rel=0.02)


def _t3_below(y: float) -> float:
    """P(T < y) = 1/2 + (x / (1 + x^2) + atan x) / pi with x = y / sqrt(3)."""
    if math.isinf(y):
        return 1.0
    x = y / math.sqrt(3)
    return 0.5 + (x / (1 + x * x) + math.atan(x)) / math.pi


def test_the_level_grows_with_that_of_one_look() -> None:
    each = [1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.49]
    levels = [level_of_all_looks(one) for one in each]
    assert levels == sorted(levels)
    for one, level in zip(each, levels, strict=True):
        assert one < level < min(1.0, 18 * one)


@pytest.mark.parametrize(("level", "last"), [(0.1, 20), (0.01, 8), (0.000625, None), (0.01, 3)])
def test_the_level_of_one_look_is_the_inverse(level: float, last: int | None) -> None:
    found = level_of_all_looks(level_of_one_look(level, last), last)
    assert level * 0.997 <= found <= level


def test_fewer_looks_leave_more_to_each() -> None:
    assert level_of_one_look(0.025) == pytest.approx(INTERVAL_EACH_LOOK, rel=5e-3)
    assert level_of_one_look(0.025, 5) > 1.5 * level_of_one_look(0.025)
    assert level_of_one_look(0.025, FIRST_LOOK) == pytest.approx(0.025, rel=2e-3)


# --- one look ------------------------------------------------------------------------------------


def test_bounds_are_those_of_t_at_the_level_of_one_look() -> None:
    # Mean 3, error sqrt(14 / 12), 3 degrees of freedom.
    look = look_at([1.0, 2.0, 3.0, 6.0])
    error = math.sqrt(14 / 12)
    wide = float(t_quantile(1 - INTERVAL_EACH_LOOK, 3.0)) * error
    certain = float(t_quantile(1 - CERTAIN_EACH_LOOK, 3.0)) * error
    assert (float(look.low), float(look.high)) == pytest.approx((3 - wide, 3 + wide))
    assert float(look.lower_bound) == pytest.approx(3 - certain)
    assert float(look.upper_bound) == pytest.approx(3 + certain)
    # Wider than one look of fixed size: t(3) is 3.1824 and 5.8409.
    assert wide > 3.1824 * error
    assert certain > 5.8409 * error


@pytest.mark.parametrize("pairs", [FIRST_LOOK, 7, LAST_LOOK])
def test_p_values_agree_with_the_bounds(pairs: int) -> None:
    width = float(look_at(with_mean_and_sd(0.0, 1.0, pairs)).upper_bound)
    for factor, certain in ((1.001, True), (0.98, False)):
        look = look_at(with_mean_and_sd(factor * width, 1.0, pairs))
        assert bool(look.is_slower()) is certain
        assert bool(look.slower_p() <= 0.005) is certain
    width = float(look_at(with_mean_and_sd(0.0, 1.0, pairs)).high)
    for factor, within in ((1.001, True), (0.98, False)):
        look = look_at(with_mean_and_sd(2.0, 1.0, pairs))
        threshold = 2.0 + factor * width
        assert bool(look.is_within(threshold)) is within
        assert bool(look.within_p(threshold) <= 0.025) is within


def test_p_values_of_what_does_not_point_there_and_of_certainty() -> None:
    values = [1.0, 2.0, 3.0, 6.0]
    assert look_at([-value for value in values]).slower_p() == 1
    assert look_at(values).within_p(3.0) == 1
    assert look_at([1.0, 1.0, 1.0]).slower_p() == 0
    # Far out, the sum over 18 looks: an upper bound.
    look = look_at(with_mean_and_sd(6.0, 1.0, 10))
    tail = float(look.change.tail(np.array(6.0)))
    assert 1e-9 < tail < 1e-7
    assert look.slower_p() == pytest.approx(18 * tail, rel=1e-9)
    assert sequential._p_of_tail(0.99e-5) == level_of_all_looks(1e-5)


def test_many_looks_at_once() -> None:
    rows = [with_mean_and_sd(mean, 1.0, 5) for mean in (0.0, 3.0)]
    both = Look(paired_change(rows, math.nan))
    assert both.slower_p() == pytest.approx([float(look_at(row).slower_p()) for row in rows])


@pytest.mark.parametrize("pairs", BESIDE)
def test_no_bound_before_the_first_look_and_after_the_last(pairs: int) -> None:
    look = look_at(with_mean_and_sd(5.0, 0.001, pairs))
    assert float(look.low) == float(look.lower_bound) == -math.inf
    assert float(look.high) == float(look.upper_bound) == math.inf
    assert not look.is_slower()
    assert not look.is_within(100.0)
    assert float(look.slower_p()) == float(look.within_p(100.0)) == 1.0


def test_the_error_within_captures_widens() -> None:
    values = with_mean_and_sd(0.0, 0.01, 9)
    look = look_at(values, within=9.0)  # sqrt(9 x 9) / 9 = 1, as good as known: normal
    expected = NormalDist().inv_cdf(1 - INTERVAL_EACH_LOOK)
    assert float(look.high) == pytest.approx(expected, abs=1e-4)
    assert look.within_p(expected + 0.005) <= 0.025 < look.within_p(expected - 0.005)


def test_a_slower_sequence_is_nowhere_less_certain() -> None:
    values = np.random.default_rng(2).standard_normal((50, 8))
    one, other = (Look(paired_change(values + shift, math.nan)) for shift in (0.0, 0.3))
    assert np.all(other.change.tail(other.change.estimate) <= one.change.tail(one.change.estimate))


# --- planning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimate", "sd"), [(0.0, 0.02), (0.0, 0.04), (0.05, 0.02), (0.10, 0.05), (-0.02, 0.05)]
)
def test_the_number_needed_settles_and_one_less_does_not(estimate: float, sd: float) -> None:
    """Also where the estimate falls short by what it does in one of ten cases."""

    def settles(pairs: int) -> bool:
        short = 1.2816 * sd / math.sqrt(pairs)
        slower = look_at(with_mean_and_sd(estimate - short, sd, pairs)).is_slower()
        within = look_at(with_mean_and_sd(estimate + short, sd, pairs)).is_within(0.05)
        return bool(slower | within)

    needed = pairs_needed_with_looks(estimate, 0.05, sd, 0)
    assert needed is not None
    assert settles(needed)
    assert not settles(needed - 1)


def test_needed_is_more_than_now_and_no_less_than_the_first_look() -> None:
    assert pairs_needed_with_looks(-1.0, 0.05, 1e-6, 0) == FIRST_LOOK
    assert pairs_needed_with_looks(-1.0, 0.05, 1e-6, 5) == 6
    assert pairs_needed_with_looks(-1.0, 0.05, 1e-6, LAST_LOOK - 1) == LAST_LOOK
    assert pairs_needed_with_looks(-1.0, 0.05, 1e-6, LAST_LOOK) is None
    assert pairs_needed_with_looks(0.05, 0.05, 0.2, 0) is None


# --- sequences -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "errors",
    ["normal", "t3", "AR pairs, ABBA", "AR captures, ABAB", "AR captures, ABBA", "drift, ABBA"],
)
def test_false_answers_and_coverage(errors: str) -> None:
    found = looks(ERRORS[errors](np.random.default_rng(3), RUNS), 0.0, 1.0, 0.0)
    # 0.5, 2.5 and 95 %, each with four standard errors of 20,000 sequences.
    assert (found.slower_at <= LAST_LOOK).mean() <= 0.007
    assert (found.within_at <= LAST_LOOK).mean() <= 0.0295
    assert found.covered.mean() >= 0.944


def test_what_breaks_it() -> None:
    """Pairs correlated in one direction; a drift to which every pair gives the same sign."""
    pairs, drift = (
        looks(ERRORS[name](np.random.default_rng(4), RUNS), 0.0, 1.0, 0.0)
        for name in ("AR pairs, ABAB", "drift, ABAB")
    )
    assert 0.05 <= (pairs.slower_at <= LAST_LOOK).mean() <= 0.09
    assert 0.007 <= (drift.slower_at <= LAST_LOOK).mean() <= 0.014


def test_a_bound_of_fixed_size_does_not_stand_being_looked_at() -> None:
    assert 0.025 <= naive_false_alarms(normal(np.random.default_rng(5), RUNS)) <= 0.035


@pytest.mark.parametrize(
    ("change", "sd", "pairs"), [(0.0, 0.02, 4.9), (0.05, 0.02, 6.6), (0.10, 0.05, 7.9)]
)
def test_pairs_until_settled(change: float, sd: float, pairs: float) -> None:
    errors = normal(np.random.default_rng(6), 4000)
    found = looks(errors, math.log1p(change), sd, math.log1p(0.05))
    assert found.settled_at.mean() == pytest.approx(pairs, abs=0.2)
    rightly = found.slower_at if change else found.within_at
    assert (rightly <= LAST_LOOK).mean() >= 0.99
