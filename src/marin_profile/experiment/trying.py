"""One commit, checked out, built and run -> what became of it.

Contract
* There is one worktree, always at the same path: commands that install into an environment that
  all commits share are run again whenever another commit's ran since.
* In a try's texts and in its log the values of variables are masked (`commands`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from marin_profile.experiment.bisection import Outcome, Try
from marin_profile.experiment.commands import (
    OUT,
    OUT_VARIABLE,
    WORKTREE,
    WORKTREE_VARIABLE,
    filled,
    mask_file,
    masked,
    why_failed,
)
from marin_profile.experiment.commits import Commit
from marin_profile.experiment.git import git
from marin_profile.experiment.lock import Lock
from marin_profile.experiment.measured import left_in
from marin_profile.experiment.process import Command, Ended, run
from marin_profile.experiment.worktrees import Repository, Worktrees
from marin_profile.facts.step_time import StepLength

TREE, CAPTURES, LOGS = "tree", "captures", "logs"


@dataclass(frozen=True)
class Commands:
    """Lists of arguments, which no shell reads; in them and in the environment's values {out} and
    {worktree} stand for paths. `build` is empty where nothing is built. `leaves`: the folder of the
    checkout in which a run leaves its capture, None: below {out}. Timeouts are seconds of one build
    and one run."""

    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    leaves: str | None = None
    build_timeout: float | None = None
    run_timeout: float | None = None
    warmup_steps: int = 1


class Trier:
    """Tries commits one after the other below the folder of a lock."""

    def __init__(
        self,
        repository: Repository,
        commands: Commands,
        worktrees: Worktrees,
        lock: Lock,
    ) -> None:
        self._repository = repository
        self._commands = commands
        self._worktrees = worktrees
        self._lock = lock
        self._built: tuple[str, Path] | None = None

    def take(self, commit: Commit, number: int) -> Try:
        """The number, from 1, names the capture's folder and the log."""
        began = time.monotonic()
        name = f"{number:03d}-{commit.short}"
        out = self._lock.folder / CAPTURES / name
        log = Path(LOGS) / f"{name}.log"
        for old in (out, self._lock.folder / log):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        out.mkdir(parents=True)

        def ended(outcome: Outcome, why: str | None = None, found: StepLength | None = None) -> Try:
            return Try(
                commit=commit.sha,
                outcome=outcome,
                seconds=round(time.monotonic() - began, 3),
                log=str(log),
                length=found.measure if found else None,
                typical=found.typical if found else None,
                mean=found.mean if found else None,
                steps=found.steps if found else None,
                capture=f"{CAPTURES}/{name}" if found else None,
                why=why,
            )

        tree, problem = self._built_tree(commit, out, log)
        if tree is None:
            return ended("build_failed", problem)
        done = self._run(self._commands.run, tree, out, log, self._commands.run_timeout)
        self._collect(tree, out)
        if not done.succeeded:
            why = self._why("the run", done, self._commands.run_timeout, log)
            return ended("run_failed", why)
        left = left_in(str(out), warmup_steps=self._commands.warmup_steps)
        if left.length is None:
            return ended("run_failed", f"the run {left.problem}")
        return ended("measured", found=left.length)

    def _built_tree(self, commit: Commit, out: Path, log: Path) -> tuple[Path | None, str | None]:
        """The commit's folder, or why there is none."""
        if self._built is not None and self._built[0] == commit.sha:
            return self._built[1], None
        self._built = None
        inside = self._repository.inside
        if inside.parts and not _has_folder(self._repository, commit.sha, inside):
            return None, f"it has no folder {inside}"
        tree = self._worktrees.add(TREE, commit.sha)
        if self._commands.build:
            timeout = self._commands.build_timeout
            done = self._run(self._commands.build, tree, out, log, timeout)
            if not done.succeeded:
                return None, self._why("the build", done, timeout, log)
        self._built = commit.sha, tree
        return tree, None

    def _run(
        self, words: tuple[str, ...], tree: Path, out: Path, log: Path, timeout: float | None
    ) -> Ended:
        places = {OUT: str(out), WORKTREE: str(tree)}
        given = self._commands.environment or {}
        variables = {name: filled(value, places) for name, value in given.items()}
        path = self._lock.folder / log
        done = run(
            Command(
                arguments=tuple(filled(word, places) for word in words),
                folder=tree,
                log=path,
                environment={**variables, OUT_VARIABLE: str(out), WORKTREE_VARIABLE: str(tree)},
                timeout=timeout,
            ),
            self._lock,
        )
        mask_file(path, self._values)
        return done

    def _collect(self, tree: Path, out: Path) -> None:
        """What the run left in its checkout; the next run of it finds nothing there."""
        left = None if self._commands.leaves is None else tree / self._commands.leaves
        if left is not None and left.is_dir():
            shutil.move(left, out / left.name)

    def _why(self, what: str, done: Ended, timeout: float | None, log: Path) -> str:
        return f"{what} {masked(why_failed(done, timeout, self._lock.folder / log), self._values)}"

    @property
    def _values(self) -> Collection[str]:
        return (self._commands.environment or {}).values()


def _has_folder(repository: Repository, sha: str, inside: Path) -> bool:
    return bool(git(repository.top, "ls-tree", "-d", "-z", sha, "--", f"{inside}"))
