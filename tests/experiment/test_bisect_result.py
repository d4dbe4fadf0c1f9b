"""What a bisection says: sentences and figures worked out by hand from a few tries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from marin_profile.documents import html, markdown
from marin_profile.experiment.bisect_document import bisect_document
from marin_profile.experiment.bisect_journal import Kept
from marin_profile.experiment.bisect_result import (
    BisectResult,
    figures,
    percent,
    result_of,
    sentence,
    sure,
)
from marin_profile.experiment.bisection import Direction, Outcome, Question, Try
from marin_profile.experiment.commits import Commit, CommitRange
from marin_profile.schema import canonical_json

ORDER = (0, 4, 4, 0, 2, 3, 3, 2, 2, 3)


def commits(last: int = 4) -> CommitRange:
    return CommitRange(
        tuple(
            Commit(f"{at}" * 40, f"Change | {at}", ("p",) * (2 if at == 3 else 1))
            for at in range(last + 1)
        ),
        merged=5,
    )


def result(
    times: Sequence[tuple[int, float]],
    failures: Sequence[tuple[int, Outcome]] = (),
    direction: Direction = "slower",
    most_captures: int = 40,
) -> BisectResult:
    tries = [
        Try(
            commit=f"{at}" * 40,
            outcome="measured",
            seconds=60.0,
            log=f"logs/{number}.log",
            length="period",
            typical=time,
            mean=time,
            steps=5,
            capture=f"captures/{number}",
        )
        for number, (at, time) in enumerate(times, 1)
    ] + [
        Try(commit=f"{at}" * 40, outcome=outcome, seconds=1.0, log="logs/f.log", why="it broke")
        for at, outcome in failures
    ]
    question = Question(direction=direction, most_captures=most_captures)
    return result_of(Kept(commits(), question, tuple(tries)))


def slower_from(first_bad: int, by: float = 1.3) -> list[tuple[int, float]]:
    """Ten captures, with two in a thousand more or less, in turn."""
    return [
        (at, 1000.0 * (by if at >= first_bad else 1.0) * (1.002 if number % 2 else 1 / 1.002))
        for number, at in enumerate(ORDER)
    ]


def test_found() -> None:
    found = result(slower_from(3))
    assert sentence(found) == (
        "Commit 333333333333 'Change | 3' made the step 30 % slower (99 % sure, 10 captures)."
    )
    assert found.change is not None
    # Before are three captures that took 1.002 less and two that took it more; after the reverse.
    assert found.change.before == pytest.approx(1000 * 1.002 ** (-1 / 5))
    assert found.change.after == pytest.approx(1300 * 1.002 ** (1 / 5))
    assert found.change.ratio == pytest.approx(1.3 * 1.002 ** (2 / 5) - 1)
    assert found.change.low is not None
    assert found.change.high is not None
    assert found.change.low < found.change.ratio < found.change.high < 0.31
    assert [row.captures for row in found.commits] == [2, 0, 3, 3, 2]
    text = markdown.render(bisect_document(found))
    assert text.startswith(r"# Commit 333333333333 'Change \| 3' made the step 30 % slower")
    assert "It is a merge" in text
    assert "marin-profile compare captures/9 captures/10" in text
    assert "5 merged commits not searched" in text


def test_faster() -> None:
    found = result(slower_from(3, by=0.8), direction="faster")
    assert sentence(found).startswith("Commit 333333333333 'Change | 3' made the step 20 % faster")


def test_no_change() -> None:
    found = result(slower_from(5))
    assert found.found is None
    assert sentence(found) == (
        "No commit between 000000000000 'Change | 0' and 444444444444 'Change | 4' made the step "
        f"5 % slower or more ({sure(found.confidence or 0)}, 10 captures)."
    )


def test_the_opposite_is_named() -> None:
    text = markdown.render(bisect_document(result(slower_from(3, by=0.7))))
    assert "% faster instead: bisect --faster." in text


def test_unsure_between_two() -> None:
    times = [(at, time) for at, time in slower_from(3) if at in (0, 4)] * 3
    failures: list[tuple[int, Outcome]] = [(at, "build_failed") for at in (1, 2, 3)]
    found = result(times, failures)
    assert (found.state, found.found) == ("unsure", None)
    assert sentence(found).startswith(
        "Unsure between 000000000000 'Change | 0' and 444444444444 'Change | 4': the step got "
        "slower after the first of them, and no later than with the second (99 % sure, 12 captures)"
    )
    text = markdown.render(bisect_document(found))
    assert "3 commits between them could not be measured" in text
    assert text.count("it broke") == 6


def test_too_few_captures_to_say_whether_there_is_one() -> None:
    found = result([(0, 1000.0), (4, 1060.0), (0, 1040.0), (4, 1080.0)], most_captures=4)
    assert found.state == "unsure"
    assert found.none is not None
    assert f"it may be that no commit made the step 5 % slower or more ({100 * found.none:.0f} %, "
    assert "More captures would help" in markdown.render(bisect_document(found))


def test_an_end_that_fails() -> None:
    found = result([(0, 1000.0)], [(4, "build_failed")])
    assert sentence(found) == (
        "The bad commit 444444444444 'Change | 4' cannot be measured: it broke."
    )
    assert "0 commits" not in markdown.render(bisect_document(found))


def test_a_bisection_that_has_begun_is_unsure() -> None:
    assert result([]).state == "unsure"


def test_figures_are_the_same_bytes_each_time() -> None:
    one, two = (result(slower_from(3)) for _ in range(2))
    assert canonical_json(figures(one)) == canonical_json(figures(two))
    assert html.render(bisect_document(one)) == html.render(bisect_document(two))
    assert figures(one)["sentence"] == sentence(one)
    assert figures(one)["tries"][0]["capture"] == "captures/1"


def test_numbers_in_words() -> None:
    assert [sure(one) for one in (0.9999, 0.9899, 1.0)] == ["99 % sure", "98 % sure", "99 % sure"]
    assert [percent(one) for one in (0.05, 0.0123, 0.0999, 0.3, 1.5)] == [
        "5 %",
        "1.2 %",
        "10 %",
        "30 %",
        "150 %",
    ]
