"""Simulated experiments with several arms: false winners, winners found, captures taken."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from marin_profile.experiment.expected import expected

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from bench_sweeps import ERRORS, SPREAD, sweeps

FASTER = math.log1p(-0.03)


def share(flags: list[bool]) -> float:
    return sum(flags) / len(flags)


def test_no_false_winner_and_at_most_three_fifths_of_the_captures() -> None:
    found = sweeps(200, [1], [0.0] * 8, ERRORS["normal"])
    # 1 and 5 %, each with three standard errors of 200 experiments.
    assert share([one.has_false_winner for one in found]) <= 0.03
    assert share([one.is_covered for one in found]) >= 0.905
    assert sum(one.captures for one in found) <= 0.62 * sum(
        one.captures_without_stops for one in found
    )


def test_a_faster_arm_among_seven_is_found() -> None:
    found = sweeps(100, [2], [FASTER, *[0.0] * 7], ERRORS["normal"])
    assert [one.states()[0] for one in found] == ["wins"] * 100
    rounds = sorted(next(iter(one.race.arms.values())).rounds for one in found)
    assert rounds[89] == pytest.approx(expected(SPREAD, FASTER, 8).rounds, abs=1)
    # Some arms need more than five rounds, also where none is faster.
    assert max(one.rounds for one in found) > 5


def test_an_arm_that_is_slower_does_not_win() -> None:
    found = sweeps(100, [3], [math.log1p(0.03), 0.0], ERRORS["normal"])
    assert {one.states()[0] for one in found} <= {"slower", "no_win"}


@pytest.mark.long
@pytest.mark.parametrize("errors", [name for name in ERRORS if name != "AR rounds"])
def test_false_winners(errors: str) -> None:
    found = sweeps(1000, [4], [0.0] * 8, ERRORS[errors])
    # 1 and 5 %, each with three standard errors of 1,000 experiments.
    assert share([one.has_false_winner for one in found]) <= 0.0194
    assert share([one.is_covered for one in found]) >= 0.929


@pytest.mark.long
@pytest.mark.parametrize("arms", [2, 16])
def test_false_winners_where_the_control_scatters_ten_times_as_much(arms: int) -> None:
    """Where the spread that arms share says least of an arm's error."""
    from bench_sweeps import scattered

    found = sweeps(1000, [5], [0.0] * arms, scattered(10.0, slice(0, 1)))
    assert share([one.has_false_winner for one in found]) <= 0.0194


@pytest.mark.long
def test_what_breaks_it() -> None:
    """An arm's noise that remembers the round before."""
    found = sweeps(500, [6], [0.0] * 8, ERRORS["AR rounds"])
    assert 0.02 <= share([one.has_false_winner for one in found]) <= 0.09
