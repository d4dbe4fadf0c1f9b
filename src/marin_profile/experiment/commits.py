"""The commits between a good and a bad one, along first parents: what a bisection searches.

Contract
* The first commit is the good one, the last one the bad one, each one's first parent the one before
  it. What a merge brought in counts as the merge's.
* Names are those that git knows. What does not make a range is an error that says what would.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.base.text import visible
from marin_profile.experiment.git import git
from marin_profile.experiment.worktrees import Repository

SHORT = 12


@dataclass(frozen=True)
class Commit:
    sha: str
    subject: str
    parents: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        return self.sha[:SHORT]

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


@dataclass(frozen=True)
class CommitRange:
    """`merged`: how many commits the merges brought in, which are not searched one by one."""

    commits: tuple[Commit, ...]
    merged: int

    @property
    def last(self) -> int:
        """The index of the bad end; the good one's is 0."""
        return len(self.commits) - 1

    def index(self, sha: str) -> int | None:
        return self._places.get(sha)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one.sha: at for at, one in enumerate(self.commits)}


def commit_range(repository: Repository, good: str, bad: str) -> CommitRange:
    """Raises NotFoundError where a name is no commit, UsageError where the two make no range."""
    first, last = (resolved(repository, name) for name in (good, bad))
    if first == last:
        raise UsageError(f"{good} and {bad} are the same commit {first[:SHORT]}; name two.")
    base = merge_base(repository, first, last)
    if base != first:
        raise UsageError(_no_range(repository, good, bad, last, base))
    top = repository.top
    between = _described(repository, "--first-parent", "--reverse", f"{first}..{last}")
    start = between[0].parents[:1]
    if start != (first,):
        where = f"leaves it at {start[0][:SHORT]}" if start else "begins elsewhere"
        raise UsageError(
            f"{good} ({first[:SHORT]}) came into {bad} through a merge: the line of first parents "
            f"{where}; name a commit of that line as good, or bisect the merged branch."
        )
    total = int(git(top, "rev-list", "--count", f"{first}..{last}"))
    [start_commit] = _described(repository, "--no-walk", first)
    return CommitRange((start_commit, *between), total - len(between))


def resolved(repository: Repository, name: str) -> str:
    """The hash of a commit by any name that git knows. Raises NotFoundError."""
    with suppress(UsageError):
        return repository.commit(name)
    raise NotFoundError(
        f"There is no commit {visible(name)} in {repository.top}; name one that git log shows."
    )


def merge_base(repository: Repository, one: str, other: str) -> str | None:
    """The newest commit that both have in their history, or None."""
    with suppress(UsageError):
        return git(repository.top, "merge-base", one, other).strip()
    return None


def _no_range(repository: Repository, good: str, bad: str, last: str, base: str | None) -> str:
    if base == last:
        return (
            f"{bad} is older than {good}; exchange --good and --bad. --faster looks for what made "
            "the step faster."
        )
    if base is not None:
        return (
            f"{good} is not in the history of {bad}; name a commit of it as good: they part at "
            f"{base[:SHORT]}."
        )
    shallow = git(repository.top, "rev-parse", "--is-shallow-repository").strip() == "true"
    instead = "get the whole of it with git fetch --unshallow" if shallow else "name other ones"
    return f"{good} and {bad} have no history in common in this clone; {instead}."


def _described(repository: Repository, *which: str) -> list[Commit]:
    told = git(
        repository.top,
        *("log", "-z", "--no-show-signature", "--no-color", "--no-decorate", "--encoding=UTF-8"),
        *("--format=tformat:%H%x00%P%x00%s", *which, "--"),
    )
    parts = told.split("\0")[:-1]
    return [
        Commit(sha, _readable(subject), tuple(parents.split()))
        for sha, parents, subject in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def _readable(subject: str) -> str:
    """Bytes that are no UTF-8 become what stands for such."""
    return subject.encode(errors="surrogateescape").decode(errors="replace")
