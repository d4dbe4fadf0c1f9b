"""Simulated searches for a slower commit: right and wrong names, and captures taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from bench_bisects import CASES, SPREADS, bisects

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize(("spread", "captures"), [(0.01, 14), (0.03, 14), (0.08, 40)])
def test_the_commit_is_named(spread: float, captures: int) -> None:
    found = bisects(40, [1], BY_NAME["+30 %"], spread)
    assert [one.outcome for one in found].count("right") >= 39
    assert max(one.captures for one in found) <= captures


@pytest.mark.parametrize("spread", SPREADS)
def test_none_is_named_where_nothing_changed(spread: float) -> None:
    outcomes = [one.outcome for one in bisects(30, [2], BY_NAME["none"], spread)]
    assert set(outcomes) <= {"none", "open"}
    if spread < 0.05:
        assert outcomes.count("none") >= 29


def test_a_speedup_is_no_slowdown() -> None:
    assert {one.outcome for one in bisects(20, [3], BY_NAME["-20 %"], 0.03)} == {"none"}


def test_skipped_commits_are_named_together() -> None:
    outcomes = [one.outcome for one in bisects(30, [4], BY_NAME["+30 %, skipped"], 0.03)]
    assert set(outcomes) == {"right", "between"}


@pytest.mark.long
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name != "+5 %"], ids=lambda case: case.name
)
def test_wrong_names(case, spread: float) -> None:
    found = bisects(100, [5], case, spread)
    # 1 % as stated, with three standard errors of 100 searches.
    assert [one.outcome for one in found].count("wrong") <= 4


@pytest.mark.long
def test_the_likeliest_is_right_as_often_as_stated_or_more() -> None:
    pairs = [
        pair
        for spread in SPREADS
        for one in bisects(150, [6], BY_NAME["+30 %"], spread)
        for pair in one.on_the_way
    ]
    for low, high in ((0.4, 0.6), (0.6, 0.9), (0.9, 0.99), (0.99, 1.01)):
        inside = [pair for pair in pairs if low <= pair[0] < high]
        stated, right = (sum(column) / len(inside) for column in zip(*inside, strict=True))
        assert right >= stated - 3.0 * (0.25 / len(inside)) ** 0.5
