"""Which of N commits made the step slower: what captures so far say, and where to take the next.

Contract
* Commit 0 is the good end, commit N the bad end. The step got slower once, at the first bad commit
  1 ... N, or it did not. `posterior` holds both.
* A commit is found at a probability of CONFIDENCE or more, and only where the commit and the one
  before it were captured twice. "No slowdown" is said at the same probability of none of
  `least_change` or more: a smaller one is found where that takes no longer, and not looked for.
* Captures of one round share the drift of their machine. Skipped commits are never next; where the
  slowdown may be among them alone, nothing is found and `between` names them.
* `next` is None when the search is over: found, no slowdown, `most` captures taken, or nothing left
  to tell apart.

Log step times are a level, the slowdown from the first bad commit on, the drift of the round, and
noise from run to run. Level and noise are integrated out (a uniform and an inverse gamma prior),
the slowdown has a log-uniform prior, the first bad commit a uniform one. The next capture is where
half of the posterior lies on each side: probabilistic bisection (M. Horstein, IEEE Trans. Inf.
Theory 9 (1963) 136; R. Waeber, P. I. Frazier and S. G. Henderson, SIAM J. Control Optim. 51 (2013)
2261).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from marin_profile.experiment.posterior import Posterior, posterior_of

State = Literal["running", "found", "no_slowdown", "undecided"]

CONFIDENCE = 0.99
LEAST_CHANGE = math.log1p(0.05)
MOST_CAPTURES = 40
# Of each end before the search, and of both sides of the commit that is found.
REPEATS = 2
# Above this probability of no slowdown, the ends are captured again.
DOUBT = 0.05


@dataclass(frozen=True)
class Measurement:
    """`round`: captures of the same round were taken together, in one window; None: alone."""

    commit: int
    log_step_time: float
    round: int | None = None


@dataclass(frozen=True)
class Search:
    """`posterior[c]`: the probability that c is the first bad commit; `[0]`: of no slowdown.

    `no_slowdown` is the probability of none of `least_change` or more.
    `confidence` is that of what `state` says: of the commit found, of no slowdown, else of the
    first bad commit being after A and no later than B, with `between` = (A, B)."""

    state: State
    posterior: tuple[float, ...]
    no_slowdown: float
    next: int | None
    found: int | None
    confidence: float
    between: tuple[int, int]


def judge(
    measured: Sequence[Measurement],
    commits: int,
    *,
    least_change: float = LEAST_CHANGE,
    spread: float | None = None,
    skipped: Collection[int] = (),
    most: int = MOST_CAPTURES,
    confidence: float = CONFIDENCE,
) -> Search:
    """`commits`: the index of the bad end; `least_change`: the least slowdown looked for, a
    logarithm; `spread`: the standard deviation of log step times from run to run, where known;
    `skipped`: commits that cannot be captured."""
    if commits < 1:
        raise ValueError(f"there are {commits} commits after the good one: at least 1 is needed")
    if {0, commits} & set(skipped):
        raise ValueError("the good and the bad end cannot be skipped")
    for one in measured:
        if not (0 <= one.commit <= commits and math.isfinite(one.log_step_time)):
            raise ValueError(f"not a measurement of commits 0 to {commits}: {one}")
    posterior = posterior_of(
        [one.commit for one in measured],
        [one.log_step_time for one in measured],
        [one.round for one in measured],
        commits,
        least_change,
        spread,
    )
    taken = Counter(one.commit for one in measured)
    can_be_taken = [commit for commit in range(commits + 1) if commit not in skipped]
    return _search(posterior, taken, can_be_taken, most, confidence)


def _search(
    known: Posterior,
    taken: Counter[int],
    can_be_taken: Sequence[int],
    most: int,
    confidence: float,
) -> Search:
    posterior = known.commits
    commits = len(posterior) - 1
    none = posterior[0] + known.slight
    between = _between(posterior, can_be_taken, confidence)
    inside = math.fsum(posterior[between[0] + 1 : between[1] + 1])

    def search(state: State, sure: float, following: int | None = None) -> Search:
        found = between[1] if state == "found" else None
        return Search(state, posterior, none, following, found, sure, between)

    ends = min((0, commits), key=lambda end: taken[end])
    if taken[ends] >= REPEATS:
        if inside >= confidence and _neighbours(between, can_be_taken):
            fewer = min(between, key=lambda side: taken[side])
            if taken[fewer] >= REPEATS:
                return search("found" if between[1] - between[0] == 1 else "undecided", inside)
            following = fewer
        elif none >= confidence:
            return search("no_slowdown", none)
        else:
            following = ends if posterior[0] > DOUBT else _middle(posterior, can_be_taken)
    else:
        following = ends
    if taken.total() >= most:
        return search("undecided", inside)
    return search("running", inside, following)


def _between(
    posterior: Sequence[float], can_be_taken: Sequence[int], confidence: float
) -> tuple[int, int]:
    """The fewest commits that can be captured around the first bad one, with `confidence` of all
    that a slowdown has."""
    slower = math.fsum(posterior[1:])
    share = [0.0]
    for one in posterior[1:]:
        share.append(share[-1] + one / slower)
    best = (can_be_taken[0], can_be_taken[-1])
    at = 0
    for low in can_be_taken:
        while at < len(can_be_taken) and share[can_be_taken[at]] - share[low] < confidence:
            at += 1
        if at == len(can_be_taken):
            break
        if can_be_taken[at] - low < best[1] - best[0]:
            best = (low, can_be_taken[at])
    return best


def _neighbours(between: tuple[int, int], can_be_taken: Sequence[int]) -> bool:
    """Whether nothing in between can be captured."""
    return can_be_taken.index(between[1]) - can_be_taken.index(between[0]) == 1


def _middle(posterior: Sequence[float], can_be_taken: Sequence[int]) -> int:
    slower = math.fsum(posterior[1:])
    share = 0.0
    best, distance = can_be_taken[0], 1.0
    allowed = frozenset(can_be_taken)
    for commit in range(1, len(posterior) - 1):
        share += posterior[commit] / slower
        if commit in allowed and abs(share - 0.5) < distance:
            best, distance = commit, abs(share - 0.5)
    return best
