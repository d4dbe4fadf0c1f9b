"""A bisection from start to end below one folder, or on from where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from marin_profile.base.text import duration
from marin_profile.experiment.bisect_journal import BisectJournal, Kept, kept_in
from marin_profile.experiment.bisection import Question, Standing, Try, bisect
from marin_profile.experiment.commits import CommitRange
from marin_profile.experiment.folder import check_folder
from marin_profile.experiment.lock import only_runner
from marin_profile.experiment.trying import Commands, Trier
from marin_profile.experiment.worktrees import Repository, worktrees

WORKTREES = "worktrees"


def run_bisection(
    folder: Path,
    repository: Repository,
    commits: CommitRange,
    commands: Commands,
    question: Question,
    *,
    forget_failures: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Kept:
    """What its journal says in the end. Raises what the lock, the journal and git raise; on an
    interrupt, too, no worktree is left, and the journal holds all that was tried."""
    check_folder(folder, "the bisection")
    with only_runner(folder) as lock:
        journal = BisectJournal(folder, commits, commands)
        journal.ask(question)
        if forget_failures:
            journal.forget_failures()
        if journal.tries:
            say(f"going on after {journal.num_tried} tries.")
        with worktrees(repository, lock.folder / WORKTREES) as trees:
            trier = Trier(repository, commands, trees, lock)

            def take(now: Standing, at: int) -> Try:
                commit = commits.commits[at]
                say(f"{_how_far(now)}: {commit.short} {commit.subject}")
                tried = _of_one_length(trier.take(commit, journal.num_tried + 1), journal.tries)
                journal.add(tried)
                say(_became(tried, question))
                return tried

            bisect(commits, question, journal.tries, take)
    return kept_in(folder)


def _of_one_length(tried: Try, before: tuple[Try, ...]) -> Try:
    """A step's period holds what lies between steps, its duration does not: they never mix."""
    lengths = [one.length for one in before if one.length is not None]
    if tried.length is None or not lengths or tried.length == lengths[0]:
        return tried
    why = f"the capture has a step {tried.length}, where the first one has a step {lengths[0]}"
    return msgspec.structs.replace(tried, outcome="run_failed", why=why)


def _how_far(now: Standing) -> str:
    assert now.search is not None
    low, high = now.search.between
    left = high - low
    return f"{left:,} commits left" if left > 1 else "1 commit left"


def _became(tried: Try, question: Question) -> str:
    if tried.outcome == "measured":
        length = duration(tried.step_time(question.measure))
        return f"step {length}, {tried.steps:,} steps, in {tried.seconds:.0f} s"
    return f"{tried.why}; see {tried.log}"
