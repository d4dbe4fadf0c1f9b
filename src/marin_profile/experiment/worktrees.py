"""Git worktrees below a folder of ours: a commit, or a commit with a patch, without the checkout.

Contract
* The user's checkout, index, branches and stash stay as they are: a worktree has a detached head,
  and no hook runs. What git notes of it in the repository goes with it.
* All are below one folder, and gone when the block ends. What a killed process left there is
  removed at the next start.
* What git refuses raises UsageError with git's own words.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.experiment.git import git

HEAD = "HEAD"


@dataclass(frozen=True)
class Repository:
    """The checkout that a folder lies in. `inside`: the folder, from the checkout's top."""

    top: Path
    inside: Path

    @staticmethod
    def around(folder: Path) -> Repository:
        """Raises UsageError where there is none."""
        top = Path(git(folder, "rev-parse", "--show-toplevel").removesuffix("\n"))
        return Repository(top, folder.resolve().relative_to(top.resolve()))

    def commit(self, name: str) -> str:
        """The hash of a commit by any name that git knows. Raises UsageError."""
        word = f"{name}^{{commit}}"
        return git(self.top, "rev-parse", "--verify", "--end-of-options", word).strip()

    def changed_files(self) -> list[str]:
        """What git tracks and the checkout has otherwise than its head."""
        found = git(self.top, "status", "--porcelain", "--untracked-files=no", "-z")
        return [entry[3:] for entry in found.split("\0") if entry[2:3] == " "]


class Worktrees:
    """The worktrees of one repository below one folder, by name."""

    def __init__(self, repository: Repository, below: Path) -> None:
        self._repository = repository
        self._below = below.absolute()

    def add(self, name: str, commit: str, patch: Path | None = None) -> Path:
        """A new worktree, in place of one of the same name; in it the folder that the repository
        was named by. Raises UsageError, also where the patch does not apply, and NotFoundError."""
        path = self._below / name
        self._remove(path)
        top = self._repository.top
        git(top, "worktree", "add", "--detach", "--force", "--quiet", str(path), commit)
        if patch is not None:
            if not patch.is_file():
                raise NotFoundError(f"There is no patch {patch}; name a file of `git diff`.")
            git(path, "apply", "--index", "--whitespace=nowarn", str(patch.absolute()))
        inside = path / self._repository.inside
        if not inside.is_dir():
            raise UsageError(f"{commit[:12]} has no folder {self._repository.inside}.")
        return inside

    def remove_all(self) -> None:
        for path in sorted(self._below.iterdir()) if self._below.is_dir() else ():
            self._remove(path)
        shutil.rmtree(self._below, ignore_errors=True)

    def _remove(self, path: Path) -> None:
        """It may be half there, or known to git alone, or to nobody."""
        for _ in range(2):
            with suppress(UsageError):
                git(self._repository.top, "worktree", "remove", "--force", "--force", str(path))
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def worktrees(repository: Repository, below: Path) -> Iterator[Worktrees]:
    """None is left when the block ends, nor is what was left there before."""
    made = Worktrees(repository, below)
    made.remove_all()
    try:
        yield made
    finally:
        made.remove_all()
