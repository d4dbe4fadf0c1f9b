"""What an experiment is to run: a base command, its arms, and how often; checked as a whole.

Contract
* A plan is made of nested texts, as a YAML file's words stand there (`plan_file`) or as the command
  line's options are put together. What does not fit raises UsageError with the field's name.
* The first arm is the control. A command is a list of arguments, taken literally; with `shell` it
  is one text for /bin/sh, in which "$@" stands for the arm's arguments.
* `described` is the plan without the values of environment variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from marin_profile.base.errors import UsageError
from marin_profile.base.text import either, visible
from marin_profile.experiment.commands import OUT, OUT_VARIABLE, WORKTREE, WORKTREE_VARIABLE
from marin_profile.experiment.fields import Fields

CONTROL = "control"
COMMAND, QUOTED_COMMAND, ARGUMENTS = "{command}", "{quoted_command}", "{arguments}"
SHELL_ARGUMENTS = '"$@"'
FEWEST_ROUNDS, MOST_ROUNDS = 3, 20  # a race has looks at these numbers of rounds
MOST_ARMS = 64

Order = Literal["turned", "latin"]
Measure = Literal["typical", "mean"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Arm:
    """What differs from the base command. `timeout`: seconds of each run, None: unlimited."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    patch: Path | None
    commit: str | None
    timeout: float | None

    @property
    def is_of_git(self) -> bool:
        return self.patch is not None or self.commit is not None


@dataclass(frozen=True)
class Plan:
    """`warmup_rounds` run before the rounds that count, `warmup_steps` are left out of each
    capture. `worthwhile`: the least gain that is looked for, per cent. `launcher`: the template
    that each command goes through. `outputs`: where captures go, where that is not the experiment's
    folder. `base`: the commit that arms without one run, where any arm has a patch or a commit."""

    command: tuple[str, ...]
    shell: bool
    folder: Path
    arms: tuple[Arm, ...]
    environment: Mapping[str, str]
    warmup_rounds: int
    rounds: int
    order: Order
    seed: int
    warmup_steps: int
    measure: Measure
    worthwhile: float
    launcher: tuple[str, ...]
    outputs: str | None
    base: str | None

    @property
    def control(self) -> Arm:
        return self.arms[0]

    @property
    def others(self) -> tuple[Arm, ...]:
        return self.arms[1:]

    @property
    def is_of_git(self) -> bool:
        """Whether arms run in worktrees: if one does, all do."""
        return self.base is not None or any(arm.is_of_git for arm in self.arms)

    def arm(self, name: str) -> Arm:
        return next(arm for arm in self.arms if arm.name == name)

    def environment_of(self, arm: Arm) -> dict[str, str]:
        return {**self.environment, **arm.environment}

    def described(self) -> dict[str, Any]:
        """All that decides what is run and how it is judged, but the values of variables."""
        return {
            "command": list(self.command),
            "shell": self.shell,
            "folder": str(self.folder),
            "environment": sorted(self.environment),
            "arms": {
                arm.name: {
                    "arguments": list(arm.arguments),
                    "environment": sorted(arm.environment),
                    "patch": None if arm.patch is None else str(arm.patch),
                    "commit": arm.commit,
                    "timeout": arm.timeout,
                }
                for arm in self.arms
            },
            "order_of_arms": [arm.name for arm in self.arms],
            "warmup_rounds": self.warmup_rounds,
            "rounds": self.rounds,
            "order": self.order,
            "seed": self.seed,
            "warmup_steps": self.warmup_steps,
            "measure": self.measure,
            "worthwhile": self.worthwhile,
            "launcher": list(self.launcher),
            "outputs": self.outputs,
            "base": self.base,
        }


def plan_of(texts: Mapping[str, Any], *, named: str, files_from: Path, folder: Path) -> Plan:
    """`named`: what errors call the plan; relative paths in it count from `files_from`; commands
    run in `folder` unless it names another. Raises UsageError."""
    fields = Fields(texts, named)
    shell = fields.switch("shell")
    timeout = fields.seconds("timeout")
    given = fields.text("folder", None)
    plan = Plan(
        command=_command(fields, shell),
        shell=shell,
        folder=(folder if given is None else files_from / given).absolute(),
        arms=_arms(fields.below("arms"), files_from, timeout),
        environment=_environment(fields),
        warmup_rounds=fields.count("warmup", 1, least=0, most=MOST_ROUNDS),
        rounds=fields.count("rounds", MOST_ROUNDS, least=FEWEST_ROUNDS, most=MOST_ROUNDS),
        order=cast(Order, fields.one_of("order", ("turned", "latin"))),
        seed=fields.count("seed", 0, least=0, most=1 << 32),
        warmup_steps=fields.count("warmup_steps", 1, least=0, most=1 << 32),
        measure=cast(Measure, fields.one_of("measure", ("typical", "mean"))),
        worthwhile=fields.number("worthwhile", 1.0, above=0.0, below=100.0),
        launcher=fields.texts("launcher"),
        outputs=fields.text("outputs", None),
        base=fields.text("base", None),
    )
    fields.refuse_rest()
    _check(plan, fields)
    return plan


def _command(fields: Fields, shell: bool) -> tuple[str, ...]:
    if shell:
        text = fields.text("command", None)
        if not text:
            raise fields.error("command", "with shell it is one text")
        return (text,)
    command = fields.texts("command")
    if not command or not command[0]:
        raise fields.error("command", "name the base command, as a list of arguments")
    return command


def _arms(fields: Fields, files_from: Path, timeout: float | None) -> tuple[Arm, ...]:
    arms = {name: _arm(name, fields.below(name), files_from, timeout) for name in fields.names}
    if CONTROL not in arms:
        arms = {CONTROL: _arm(CONTROL, Fields({}, fields.named), files_from, timeout), **arms}
    if len(arms) == 1:
        raise fields.error("", "name one arm or more besides the control")
    if len(arms) > MOST_ARMS:
        raise fields.error("", f"there are {len(arms)} arms, at most {MOST_ARMS} can be judged")
    if len({name.casefold() for name in arms}) < len(arms):
        raise fields.error("", "two names differ in capitals alone")
    control = arms.pop(CONTROL)
    return (control, *arms.values())


def _arm(name: str, fields: Fields, files_from: Path, timeout: float | None) -> Arm:
    if not _NAME.fullmatch(name):
        raise fields.error(
            "", "a name is up to 64 letters, digits, _, . and -, and begins with a letter or digit"
        )
    patch = fields.text("patch", None)
    path = None if patch is None else (files_from / patch).absolute()
    if path is not None and not path.is_file():
        raise fields.error("patch", f"there is no file {path}")
    arm = Arm(
        name=name,
        arguments=fields.texts("arguments"),
        environment=_environment(fields),
        patch=path,
        commit=fields.text("commit", None),
        timeout=fields.seconds("timeout") if fields.has("timeout") else timeout,
    )
    fields.refuse_rest()
    return arm


def _environment(fields: Fields) -> dict[str, str]:
    below = fields.below("environment")
    found = {name: below.text(name, "") or "" for name in below.names}
    for name in found:
        if not _VARIABLE.fullmatch(name):
            raise below.error(name, "this is no name of an environment variable")
        if name in (OUT_VARIABLE, WORKTREE_VARIABLE):
            raise below.error(name, "the runner sets it")
    return found


def _check(plan: Plan, fields: Fields) -> None:
    """What single fields cannot show."""
    if not plan.folder.is_dir():
        raise fields.error("folder", f"there is no folder {plan.folder}")
    words = (*plan.command, *plan.launcher, *(one for arm in plan.arms for one in arm.arguments))
    values = [value for arm in plan.arms for value in plan.environment_of(arm).values()]
    if any("\0" in one for one in (*words, *values)):
        raise UsageError(f"{fields.named}: no argument and no variable can hold a NUL.")
    if plan.shell:
        _check_shell(plan, fields)
    if plan.launcher:
        _check_launcher(plan, fields, words)


def _check_shell(plan: Plan, fields: Fields) -> None:
    [text] = plan.command
    if any(arm.arguments for arm in plan.arms) and SHELL_ARGUMENTS not in text:
        raise fields.error("command", f"write {SHELL_ARGUMENTS} where the arms' arguments go")
    for placeholder, variable in ((OUT, OUT_VARIABLE), (WORKTREE, WORKTREE_VARIABLE)):
        if placeholder in text:
            raise fields.error("command", f'in a shell write "${variable}" for {placeholder}')


def _check_launcher(plan: Plan, fields: Fields, words: tuple[str, ...]) -> None:
    places = (COMMAND, QUOTED_COMMAND, ARGUMENTS)
    if not any(
        word == ARGUMENTS or COMMAND in word or QUOTED_COMMAND in word for word in plan.launcher
    ):
        raise fields.error("launcher", f"write {either(places)} where the command goes")
    for word in plan.launcher:
        if ARGUMENTS in word and word != ARGUMENTS:
            raise fields.error("launcher", f"{ARGUMENTS} stands for several words: write it alone")
    if plan.is_of_git and not any(WORKTREE in word for word in words):
        raise fields.error(
            "launcher",
            f"arms have patches or commits, so say with {WORKTREE} where their code lies, which "
            "all machines must see",
        )


def gain(plan: Plan) -> float:
    """The least gain that is looked for, as a logarithm (below zero)."""
    return math.log1p(-plan.worthwhile / 100)


def shown_names(names: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(visible(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
