"""Where the arms run: the plan's folder, or a worktree for each of them.

Contract
* If one arm has a patch or a commit, all arms run in worktrees, so that they differ in nothing
  else; those without a commit of their own are of the base. What the checkout has and no commit
  does is in none of them: that raises UsageError unless the plan names its base.
* All worktrees are made before anything runs, and gone when the block ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from marin_profile.base.errors import UsageError
from marin_profile.experiment.plan import Plan, shown_names
from marin_profile.experiment.worktrees import HEAD, Repository, worktrees

WORKTREES_FOLDER = "worktrees"
INSIDE = "inside"


@dataclass(frozen=True)
class Sources:
    """`commits`: of each arm, by its name; `patches`: the digest of each arm's patch; `inside`: the
    plan's folder, from the checkout's top. All empty where arms run in the plan's folder."""

    commits: Mapping[str, str]
    patches: Mapping[str, str]
    inside: str


def sources_of(plan: Plan) -> Sources:
    """Raises UsageError for what git does not know, or no commit holds."""
    if not plan.is_of_git:
        return Sources({}, {}, "")
    repository = Repository.around(plan.folder)
    if plan.base is None and (changed := repository.changed_files()):
        raise UsageError(
            f"{repository.top} has changes that no commit holds ({shown_names(tuple(changed))}), "
            "so no worktree would have them; commit or stash them, or name the commit to compare "
            "with as base."
        )
    base = repository.commit(plan.base or HEAD)
    return Sources(
        commits={
            arm.name: base if arm.commit is None else repository.commit(arm.commit)
            for arm in plan.arms
        },
        patches={
            arm.name: hashlib.sha256(arm.patch.read_bytes()).hexdigest()
            for arm in plan.arms
            if arm.patch is not None
        },
        inside=repository.inside.as_posix(),
    )


@contextmanager
def places_of(plan: Plan, sources: Sources, output: Path) -> Iterator[Mapping[str, Path]]:
    """The folder that each arm runs in."""
    if not plan.is_of_git:
        yield dict.fromkeys((arm.name for arm in plan.arms), plan.folder)
        return
    repository = Repository.around(plan.folder)
    with worktrees(repository, output / WORKTREES_FOLDER) as made:
        yield {
            arm.name: made.add(arm.name, sources.commits[arm.name], arm.patch) for arm in plan.arms
        }
