"""A bisection: what is to be tried next, and what the tries so far say.

Contract
* `standing` is a function of the plan and the tries alone, so that a bisection that was killed goes
  on where it was, and ends as it would have.
* A commit whose build fails is skipped; one whose run fails, or leaves no capture with steps, is
  tried once more, and skipped if that fails too. Every skip has its reason.
* Where an end of the range cannot be measured the bisection has failed: nothing can be said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from marin_profile.experiment.commits import CommitRange
from marin_profile.experiment.plan import Measure
from marin_profile.experiment.search import (
    CONFIDENCE,
    LEAST_CHANGE,
    MOST_CAPTURES,
    Measurement,
    Search,
    judge,
)

Direction = Literal["slower", "faster"]
Outcome = Literal["measured", "build_failed", "run_failed"]

MOST_RUN_FAILURES = 2
ASKED = "left out with --skip"


class Question(msgspec.Struct, frozen=True):
    """`least_change` and `spread` are logarithms, as in `search.judge`; `skip` are hashes."""

    direction: Direction = "slower"
    measure: Measure = "typical"
    least_change: float = LEAST_CHANGE
    spread: float | None = None
    most_captures: int = MOST_CAPTURES
    confidence: float = CONFIDENCE
    skip: tuple[str, ...] = ()


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One commit, built and run once. `typical` and `mean` are the capture's step times in
    microseconds over `steps` kept steps, each a step's `length`: its period or its duration; `why`
    says what failed, as the end of a sentence; `seconds` is what build and run took; `capture` and
    `log` are paths below the bisection's folder."""

    commit: str
    outcome: Outcome
    seconds: float
    log: str
    length: str | None = None
    typical: float | None = None
    mean: float | None = None
    steps: int | None = None
    capture: str | None = None
    why: str | None = None

    def step_time(self, measure: Measure) -> float | None:
        return self.typical if measure == "typical" else self.mean


@dataclass(frozen=True)
class Standing:
    """`next`: the index of the commit to try, None when it is over. `skipped`: index -> why.
    `search` is None where an end cannot be measured; `lost_end` is its index then."""

    search: Search | None
    next: int | None
    skipped: Mapping[int, str]
    lost_end: int | None = None


def standing(commits: CommitRange, question: Question, tries: Sequence[Try]) -> Standing:
    failures = _failures(commits, tries)
    asked = (commits.index(sha) for sha in question.skip)
    skipped = {at: ASKED for at in asked if at is not None} | {
        at: failed[-1].why or "failed"
        for at, failed in failures.items()
        if failed[-1].outcome == "build_failed" or len(failed) >= MOST_RUN_FAILURES
    }
    for end in (0, commits.last):
        if end in skipped:
            return Standing(None, None, skipped, lost_end=end)
    search = judge(
        measurements(commits, question, tries),
        commits.last,
        least_change=question.least_change,
        spread=question.spread,
        skipped=frozenset(skipped),
        most=question.most_captures,
        confidence=question.confidence,
    )
    again = next((at for at in failures if at not in skipped), None)
    return Standing(search, search.next if again is None or search.next is None else again, skipped)


def measurements(
    commits: CommitRange, question: Question, tries: Sequence[Try]
) -> list[Measurement]:
    """With the sign by which the change looked for is a slowdown."""
    sign = 1.0 if question.direction == "slower" else -1.0
    return [
        Measurement(at, sign * math.log(length))
        for one in tries
        if one.outcome == "measured"
        and (at := commits.index(one.commit)) is not None
        and (length := one.step_time(question.measure)) is not None
    ]


def bisect(
    commits: CommitRange,
    question: Question,
    tries: Sequence[Try],
    take: Callable[[Standing, int], Try],
) -> list[Try]:
    """Try commits until it is over; all tries, with those that there were before."""
    known = list(tries)
    while (now := standing(commits, question, known)).next is not None:
        known.append(take(now, now.next))
    return known


def _failures(commits: CommitRange, tries: Sequence[Try]) -> dict[int, list[Try]]:
    """Of each commit whose last try failed: the tries since one that did not."""
    found: dict[int, list[Try]] = {}
    for one in tries:
        at = commits.index(one.commit)
        if at is None:
            continue
        if one.outcome == "measured":
            found.pop(at, None)
        else:
            found.setdefault(at, []).append(one)
    return found
