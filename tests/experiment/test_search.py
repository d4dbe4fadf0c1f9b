"""The search for a slower commit: where the next capture is taken, and what is said in the end."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marin_profile.experiment.search import Measurement, Search, judge

SLOWER = math.log(1.3)


def bisected(
    first_bad: int | None,
    spread: float,
    seed: int,
    commits: int = 32,
    skipped: set[int] = frozenset(),
) -> tuple[Search, list[int]]:
    """Until the search is over; the commits in the order of their captures."""
    rng = np.random.default_rng(seed)
    measured: list[Measurement] = []
    while (search := judge(measured, commits, skipped=skipped)).next is not None:
        slower = SLOWER if first_bad is not None and search.next >= first_bad else 0.0
        measured.append(Measurement(search.next, 3.0 + slower + rng.normal(0.0, spread)))
    return search, [one.commit for one in measured]


def test_before_any_capture_all_is_open() -> None:
    search = judge([], 4)
    assert search.state == "running"
    assert search.posterior == pytest.approx((0.4, 0.15, 0.15, 0.15, 0.15))
    assert search.next == 0
    assert search.between == (0, 4)


@pytest.mark.parametrize("first_bad", range(1, 33))
def test_every_commit_is_found(first_bad: int) -> None:
    search, taken = bisected(first_bad, 0.01, first_bad)
    assert (search.state, search.found) == ("found", first_bad)
    assert search.confidence >= 0.99
    assert len(taken) <= 12
    assert min(taken.count(first_bad), taken.count(first_bad - 1)) >= 2


@pytest.mark.parametrize("seed", range(10))
def test_no_slowdown_is_said(seed: int) -> None:
    search, taken = bisected(None, 0.01, seed)
    assert (search.state, search.found) == ("no_slowdown", None)
    assert search.confidence >= 0.99
    assert set(taken) == {0, 32}


@pytest.mark.parametrize("first_bad", [9, 10, 11, 12])
def test_skipped_commits_leave_it_between(first_bad: int) -> None:
    search, taken = bisected(first_bad, 0.01, first_bad, skipped={9, 10, 11})
    assert (search.state, search.found, search.between) == ("undecided", None, (8, 12))
    assert not {9, 10, 11} & set(taken)


def test_one_commit_alone() -> None:
    search, _ = bisected(1, 0.01, 1, commits=1)
    assert search.found == 1


def test_the_posterior_sums_to_one_and_knows_no_shift() -> None:
    commits, times = [0, 4, 0, 4, 2], [0.01, 0.26, -0.01, 0.24, 0.02]
    one, other = (
        judge([Measurement(c, level + t) for c, t in zip(commits, times, strict=True)], 4)
        for level in (0.0, 5.0)
    )
    assert sum(one.posterior) == pytest.approx(1.0)
    assert one.posterior == pytest.approx(other.posterior)
    # Nothing between 2 and 4 was captured.
    assert one.posterior[3] == pytest.approx(one.posterior[4])
    assert one.posterior[3] > 0.4


@pytest.mark.parametrize(
    ("measured", "commits", "skipped"),
    [
        ([], 0, ()),
        ([], 4, (4,)),
        ([Measurement(5, 0.0)], 4, ()),
        ([Measurement(1, math.nan)], 4, ()),
    ],
)
def test_what_cannot_be_judged(
    measured: list[Measurement], commits: int, skipped: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"commits|skipped"):
        judge(measured, commits, skipped=skipped)
