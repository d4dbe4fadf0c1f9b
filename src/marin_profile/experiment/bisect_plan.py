"""Before a bisection: what will be run, how many captures will it take, and how long?

The number of captures is drawn, not derived: bisections of so many commits, each with one change of
a given size at a drawn place and normal noise of a given spread, run by the rules of `bisection`.
The draws are seeded. The plan holds no value of a variable.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from marin_profile.base.text import plural
from marin_profile.experiment.bisect_journal import kept_in
from marin_profile.experiment.bisect_result import percent
from marin_profile.experiment.bisection import Question, Standing, Try, bisect
from marin_profile.experiment.commands import MASK
from marin_profile.experiment.commits import Commit, CommitRange
from marin_profile.experiment.folder import JOURNAL_FILE
from marin_profile.experiment.trying import Commands

SEED = 1
BISECTIONS = 40
OFTEN = 0.9
# Where nobody says what the spread from run to run is.
SPREAD = 0.02


@dataclass(frozen=True)
class Expected:
    """`captures`: the median; `often`: no more than that in nine of ten."""

    captures: int
    often: int


def expected(commits: int, question: Question, change: float) -> Expected:
    """`change`: a logarithm above zero, at one of the commits 1 ... `commits`."""
    rng = np.random.default_rng(SEED)
    taken = sorted(
        _captures(commits, question, change, int(place), rng)
        for place in rng.integers(1, commits + 1, BISECTIONS)
    )
    return Expected(taken[(len(taken) - 1) // 2], taken[math.ceil(OFTEN * len(taken)) - 1])


def _captures(
    commits: int, question: Question, change: float, first: int, rng: np.random.Generator
) -> int:
    searched = CommitRange(tuple(Commit(str(at), "") for at in range(commits + 1)), 0)
    spread = SPREAD if question.spread is None else question.spread
    sign = 1.0 if question.direction == "slower" else -1.0

    def take(now: Standing, at: int) -> Try:
        log = sign * change * (at >= first) + rng.normal(0.0, spread)
        time = math.exp(log)
        return Try(commit=str(at), outcome="measured", seconds=0.0, log="", typical=time, mean=time)

    return len(bisect(searched, question, (), take))


def plan_lines(
    commits: CommitRange,
    question: Question,
    commands: Commands,
    change: float,
    folder: Path,
    minutes: float | None,
) -> Iterator[str]:
    """`minutes`: of one build and run; None: what those in the folder's journal took, if any."""
    good, bad = commits.commits[0], commits.commits[-1]
    merges = sum(one.is_merge for one in commits.commits[1:])
    yield (
        f"{plural(commits.last, 'commit')} by first parents, after {good.short} '{good.subject}' "
        f"up to {bad.short} '{bad.subject}'"
        + (
            f"; {plural(merges, 'merge')}, whose {plural(commits.merged, 'commit')} are not "
            "searched one by one"
            if merges
            else ""
        )
    )
    for what, words in (("build", commands.build), ("run", commands.run)):
        if words:
            yield f"{what}: {shlex.join(words)}"
    if commands.environment:
        yield "with " + " ".join(f"{name}={MASK}" for name in sorted(commands.environment))
    expect = expected(commits.last, question, change)
    spread = SPREAD if question.spread is None else question.spread
    yield (
        f"about {plural(expect.captures, 'capture')}, in nine of ten cases at most {expect.often}, "
        f"where a commit made the step {percent(math.expm1(change))} {question.direction} and runs "
        f"differ by {percent(math.expm1(spread))}; never more than {question.most_captures}"
    )
    if minutes is None:
        minutes = _minutes_so_far(folder)
    if minutes is not None:
        about, often = (count * minutes for count in (expect.captures, expect.often))
        yield (
            f"about {_minutes(about)}, in nine of ten cases at most {_minutes(often)}, at "
            f"{_minutes(minutes)} for a build and a run"
        )
    else:
        yield "minutes: not known before the first capture; --minutes says what one takes"


def _minutes(value: float) -> str:
    return f"{value:,.0f} min" if value >= 10 else f"{value:.1f} min"


def _minutes_so_far(folder: Path) -> float | None:
    if not (folder / JOURNAL_FILE).exists():
        return None
    taken = [one.seconds for one in kept_in(folder).tries if one.outcome == "measured"]
    return median(taken) / 60 if taken else None
