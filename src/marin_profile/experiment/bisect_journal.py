"""A bisection's journal: what it is about, what was asked, and what was tried.

Contract
* The head holds what tries depend on: commits and commands, and of the values of variables a salted
  digest. What is asked of the same tries (direction, thresholds, how many captures) may change from
  start to start; the last question counts.
* A record is written when a try is over: what was under way when a process was killed is tried
  again, and nothing else is.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from marin_profile.base.errors import BrokenInputError, NotFoundError
from marin_profile.experiment.bisection import Question, Try
from marin_profile.experiment.commands import digest_of
from marin_profile.experiment.commits import Commit, CommitRange
from marin_profile.experiment.folder import JOURNAL_FILE
from marin_profile.experiment.journal import Entry, Journal, converted, read_journal
from marin_profile.experiment.trying import Commands

SCHEMA = "profile_bisect_journal.v1"
_ASKED, _TRIED, _AGAIN = "asked", "tried", "failures_forgotten"


@dataclass(frozen=True)
class Kept:
    """What a journal says."""

    commits: CommitRange
    question: Question
    tries: tuple[Try, ...]


class BisectJournal:
    def __init__(self, folder: Path, commits: CommitRange, commands: Commands) -> None:
        """Begin it, or go on with it. Raises what `Journal` raises."""
        path = folder / JOURNAL_FILE
        known = read_journal(path)
        salt = str(known[0].get("salt", "")) if known else secrets.token_hex(8)
        self._journal = Journal(path, _head(commits, commands, salt))

    @property
    def tries(self) -> tuple[Try, ...]:
        return _tries(self._journal.records)

    @property
    def num_tried(self) -> int:
        """With those whose failure was forgotten."""
        return sum(one.get("kind") == _TRIED for one in self._journal.records)

    def ask(self, question: Question) -> None:
        if _asked(self._journal.records) != question:
            self._journal.append({"kind": _ASKED, **msgspec.to_builtins(question)})

    def forget_failures(self) -> None:
        """What failed until now is no reason to skip a commit."""
        if any(one.outcome != "measured" for one in self.tries):
            self._journal.append({"kind": _AGAIN})

    def add(self, tried: Try) -> None:
        self._journal.append({"kind": _TRIED, **msgspec.to_builtins(tried)})


def kept_in(folder: Path) -> Kept:
    """Raises NotFoundError, and BrokenInputError for what is no such journal."""
    path = folder / JOURNAL_FILE
    found = read_journal(path)
    if not found:
        raise NotFoundError(f"There is no journal {path}; name the folder of a bisection.")
    head, *records = found
    if head.get("schema_version") != SCHEMA:
        raise BrokenInputError(f"{path} is no journal of a bisection; name another folder.")
    commits = CommitRange(
        tuple(converted(one, Commit) for one in head.get("commits", ())), head.get("merged", 0)
    )
    question = _asked(records) or Question()
    return Kept(commits, question, _tries(records))


def _head(commits: CommitRange, commands: Commands, salt: str) -> Entry:
    given = commands.environment or {}
    return {
        "schema_version": SCHEMA,
        "commits": msgspec.to_builtins(commits.commits),
        "merged": commits.merged,
        "run": commands.run,
        "build": commands.build,
        "environment": sorted(given),
        "environment_values": digest_of(sorted(given.items()), salt),
        "salt": salt,
        "leaves": commands.leaves,
        "warmup_steps": commands.warmup_steps,
    }


def _asked(records: Sequence[Entry]) -> Question | None:
    asked = [one for one in records if one.get("kind") == _ASKED]
    return converted(asked[-1], Question) if asked else None


def _tries(records: Sequence[Entry]) -> tuple[Try, ...]:
    """Without failures that were forgotten."""
    found: list[Try] = []
    for record in records:
        if record.get("kind") == _TRIED:
            found.append(converted(record, Try))
        elif record.get("kind") == _AGAIN:
            found = [one for one in found if one.outcome == "measured"]
    return tuple(found)
