"""The command of one run: placeholders and the launcher's template filled in, quoted right.

Contract
* An argument stays what the plan says, whatever characters it has. Placeholders are replaced once,
  in the plan's own words alone. Where a launcher takes a text for a shell, the command is quoted
  for it: once as {command}, as one word of it as {quoted_command}.
* Variables reach a launched command as arguments of env(1), since a launcher need not hand its own
  on.
* `shown` and `again` hold MASK in place of the value of each variable of the plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marin_profile.experiment.commands import (
    MASK,
    OUT,
    OUT_VARIABLE,
    WORKTREE,
    WORKTREE_VARIABLE,
    filled,
)
from marin_profile.experiment.plan import ARGUMENTS, COMMAND, QUOTED_COMMAND, Arm, Plan


@dataclass(frozen=True)
class Launch:
    """What to start, and where. `out`: where it is to leave its capture, a folder or a URL."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    out: str


def launch(plan: Plan, arm: Arm, *, out: str, folder: Path) -> Launch:
    """`folder`: the plan's, or the arm's worktree."""
    return _launch(plan, arm, plan.environment_of(arm), out, folder)


def shown(plan: Plan, arm: Arm, *, out: str, folder: Path) -> str:
    """A run's command as one would type it."""
    masked = dict.fromkeys(plan.environment_of(arm), MASK)
    made = _launch(plan, arm, masked, out, folder)
    variables = [f"{name}={shlex.quote(value)}" for name, value in made.environment.items()]
    return " ".join((*variables, shlex.join(made.arguments)))


def again(plan: Plan, arm: Arm, commits: Mapping[str, str]) -> str:
    """What a person types to run an arm once more, from any folder; of arms in worktrees with the
    commit that `commits` names."""
    out, folder = f"/tmp/marin-profile-{arm.name}", plan.folder
    parts = []
    if plan.is_of_git:
        folder = Path(f"/tmp/marin-profile-worktree-{arm.name}")
        where = shlex.quote(str(plan.folder))
        parts.append(f"git -C {where} worktree add --detach {folder} {commits[arm.name]}")
        if arm.patch is not None:
            parts.append(f"git -C {folder} apply --index {shlex.quote(str(arm.patch))}")
        folder = folder / commits.get("inside", "")
    parts.append(f"cd {shlex.quote(str(folder))}")
    parts.append(shown(plan, arm, out=out, folder=folder))
    return " && ".join(parts)


def _launch(plan: Plan, arm: Arm, variables: Mapping[str, str], out: str, folder: Path) -> Launch:
    environment = {**variables, OUT_VARIABLE: out}
    if plan.is_of_git:
        environment[WORKTREE_VARIABLE] = str(folder)
    places = {OUT: out, WORKTREE: str(folder)}
    words = [*plan.command, *arm.arguments]
    if plan.shell:
        words = ["/bin/sh", "-c", *plan.command, "sh", *(filled(w, places) for w in arm.arguments)]
    else:
        words = [filled(word, places) for word in words]
    if plan.launcher:
        words = _launched(plan.launcher, words, environment, places)
    return Launch(tuple(words), environment, folder, out)


def _launched(
    template: tuple[str, ...],
    words: list[str],
    environment: Mapping[str, str],
    places: Mapping[str, str],
) -> list[str]:
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), *words]
    text = shlex.join(words)
    places = {**places, COMMAND: text, QUOTED_COMMAND: shlex.quote(text)}
    found: list[str] = []
    for word in template:
        found += words if word == ARGUMENTS else [filled(word, places)]
    return found
