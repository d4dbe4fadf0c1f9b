"""The whole loop of a bisection, with drawn step times in place of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np
import pytest

from marin_profile.experiment.bisect_plan import expected
from marin_profile.experiment.bisection import (
    ASKED,
    Outcome,
    Question,
    Standing,
    Try,
    bisect,
    standing,
)
from marin_profile.experiment.commits import Commit, CommitRange
from marin_profile.experiment.search import Search

LAST = 32


def commits(last: int = LAST) -> CommitRange:
    return CommitRange(tuple(Commit(f"sha{at}", f"Change {at}") for at in range(last + 1)), 0)


def measured(at: int, step_time: float) -> Try:
    return Try(
        commit=f"sha{at}", outcome="measured", seconds=1.0, log="", typical=step_time, mean=2.0
    )


def failed(at: int, outcome: Outcome = "run_failed") -> Try:
    return Try(commit=f"sha{at}", outcome=outcome, seconds=1.0, log="", why=f"why {at}")


def drawn(
    first_bad: int | None,
    spread: float,
    seed: int,
    *,
    ratio: float = 1.3,
    fails: Callable[[int, int], Outcome | None] = lambda at, nth: None,
) -> Callable[[Standing, int], Try]:
    """`fails`: of a commit and its how manieth try from 0."""
    rng = np.random.default_rng(seed)
    tries: list[int] = []

    def take(now: Standing, at: int) -> Try:
        tries.append(at)
        if (outcome := fails(at, tries.count(at) - 1)) is not None:
            return failed(at, outcome)
        level = ratio if first_bad is not None and at >= first_bad else 1.0
        return measured(at, 1000 * level * math.exp(rng.normal(0.0, spread)))

    return take


def end_of(
    take: Callable[[Standing, int], Try], question: Question | None = None, last: int = LAST
) -> tuple[Standing, list[Try]]:
    asked = question or Question()
    tries = bisect(commits(last), asked, (), take)
    return standing(commits(last), asked, tries), tries


def search_of(now: Standing) -> Search:
    assert now.search is not None
    return now.search


def count_found(spread: float, seeds: Collection[int]) -> tuple[int, int]:
    """How many bisections name the commit, and how many name another one."""
    right = wrong = 0
    for seed in seeds:
        first_bad = 1 + seed * 7 % LAST
        search = search_of(end_of(drawn(first_bad, spread, seed))[0])
        right += search.found == first_bad
        wrong += search.found not in (None, first_bad)
    return right, wrong


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.08])
def test_the_slower_commit_is_named(spread: float) -> None:
    assert count_found(spread, range(12)) == (12, 0)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.01, 0.03, 0.08])
def test_the_slower_commit_is_named_in_95_of_100(spread: float) -> None:
    right, _ = count_found(spread, range(1000, 1200))
    assert right >= 190


def test_without_noise_it_takes_eleven_captures() -> None:
    now, tries = end_of(drawn(20, 0.0, 0))
    assert search_of(now).found == 20
    assert len(tries) == 11


@pytest.mark.parametrize("seed", range(5))
def test_no_change_names_no_commit(seed: int) -> None:
    now, _ = end_of(drawn(None, 0.02, seed))
    assert (search_of(now).state, search_of(now).found) == ("no_slowdown", None)


def test_faster_is_slower_turned_round() -> None:
    now, _ = end_of(drawn(11, 0.01, 3, ratio=0.75), Question(direction="faster"))
    assert search_of(now).found == 11
    now, _ = end_of(drawn(11, 0.01, 3, ratio=0.75))
    assert search_of(now).state == "no_slowdown"


def test_the_mean_step_is_another_question() -> None:
    """What `measured` says of it is the same for all commits."""
    now, _ = end_of(drawn(11, 0.01, 3), Question(measure="mean"))
    assert search_of(now).state == "no_slowdown"


@pytest.mark.parametrize("outcome", ["build_failed", "run_failed"])
def test_what_fails_is_skipped_and_named(outcome: Outcome) -> None:
    bad = {16, 20, 21}
    now, tries = end_of(drawn(19, 0.01, 1, fails=lambda at, nth: outcome if at in bad else None))
    assert search_of(now).found == 19
    assert set(now.skipped) <= bad
    assert now.skipped[16] == "why 16"
    times = 1 if outcome == "build_failed" else 2
    for at in now.skipped:
        assert [one.outcome for one in tries if one.commit == f"sha{at}"] == [outcome] * times


def test_a_run_that_fails_once_is_tried_at_once_again() -> None:
    now, tries = end_of(
        drawn(19, 0.01, 1, fails=lambda at, nth: "run_failed" if at == 16 and nth == 0 else None)
    )
    assert (search_of(now).found, dict(now.skipped)) == (19, {})
    places = [at for at, one in enumerate(tries) if one.commit == "sha16"]
    assert [tries[at].outcome for at in places[:2]] == ["run_failed", "measured"]
    assert places[1] == places[0] + 1


def test_a_run_that_works_forgives_an_earlier_failure() -> None:
    tries = [measured(0, 10.0), failed(4), measured(4, 13.0), failed(4)]
    now = standing(commits(4), Question(), tries)
    assert (now.next, dict(now.skipped)) == (4, {})
    now = standing(commits(4), Question(), [*tries, failed(4)])
    assert now.lost_end == 4


def test_all_in_between_skipped_is_unsure_between_two() -> None:
    now, _ = end_of(
        drawn(19, 0.01, 1, fails=lambda at, nth: "build_failed" if 17 <= at <= 20 else None)
    )
    search = search_of(now)
    assert (search.state, search.found, search.between) == ("undecided", None, (16, 21))
    assert set(now.skipped) == {17, 18, 19, 20}


def test_commits_that_are_to_be_skipped_are_not_tried() -> None:
    question = Question(skip=("sha16", "sha15"))
    now, tries = end_of(drawn(12, 0.01, 1), question)
    assert search_of(now).found == 12
    assert dict(now.skipped) == {15: ASKED, 16: ASKED}
    assert not {one.commit for one in tries} & {"sha15", "sha16"}


@pytest.mark.parametrize(("end", "expected_tries"), [(0, 2), (LAST, 3)])
def test_without_an_end_nothing_can_be_said(end: int, expected_tries: int) -> None:
    now, tries = end_of(
        drawn(9, 0.01, 1, fails=lambda at, nth: "run_failed" if at == end else None)
    )
    assert (now.search, now.next, now.lost_end) == (None, None, end)
    assert len(tries) == expected_tries


@pytest.mark.parametrize("killed_after", [0, 3, 8])
def test_it_ends_as_it_would_have_without_a_kill(killed_after: int) -> None:
    whole = bisect(commits(), Question(), (), drawn(20, 0.0, 0))
    again = bisect(commits(), Question(), whole[:killed_after], drawn(20, 0.0, 0))
    assert again == whole


def test_it_stops_after_so_many_captures() -> None:
    now, tries = end_of(drawn(19, 0.3, 1), Question(most_captures=6))
    assert (search_of(now).state, len(tries)) == ("undecided", 6)


def test_what_a_plan_expects() -> None:
    """Each bisection takes 11 captures where nothing is noise, as above; noise takes more."""
    quiet = expected(LAST, Question(spread=0.0005), math.log(1.3))
    assert (quiet.captures, quiet.often) == (11, 11)
    noisy = expected(LAST, Question(spread=0.08), math.log(1.3))
    assert 11 < noisy.captures <= noisy.often <= 40
