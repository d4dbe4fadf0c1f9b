"""`marin-profile experiment`: arms of a command, run in turn and judged against a control."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.text import duration
from marin_profile.cli.options import Verb, all_of, emit, note, print_path

if TYPE_CHECKING:
    from marin_profile.experiment.findings import Experiment
    from marin_profile.experiment.outcome import Outcome, Run
    from marin_profile.experiment.plan import Plan

FAILED_OR_UNDECIDED = 1
PLAN_ENDINGS = (".yaml", ".yml", ".json")

_ARMS = (
    click.option(
        "--arm",
        "arms",
        metavar="NAME[=ARGUMENTS]",
        multiple=True,
        help="An arm, with what it adds to the command, quoted as in a shell. Repeat it.",
    ),
    click.option(
        "--env",
        "variables",
        metavar="NAME:VARIABLE[=VALUE]",
        multiple=True,
        help="A variable of an arm; without a value, the one that is set here. Repeat it.",
    ),
    click.option(
        "--patch",
        "patches",
        metavar="NAME=F",
        multiple=True,
        help="A patch for an arm, applied in a worktree of its own. Repeat it.",
    ),
    click.option(
        "--commit",
        "commits",
        metavar="NAME=SHA",
        multiple=True,
        help="The commit of an arm, checked out in a worktree of its own. Repeat it.",
    ),
)
# Name -> the plan's field.
_OF_THE_PLAN = {
    "rounds": "rounds",
    "warmup": "warmup",
    "timeout": "timeout",
    "warmup_steps": "warmup_steps",
    "measure": "measure",
    "worthwhile": "worthwhile",
    "order": "order",
    "seed": "seed",
    "base": "base",
}
_PLAN = (
    click.option("--rounds", metavar="N", help="The most rounds, 3 to 20; default: 20."),
    click.option("--warmup", metavar="N", help="Rounds before those that count; default: 1."),
    click.option("--timeout", metavar="TIME", help="Of each run, as 90s, 15m or 2h."),
    click.option("--warmup-steps", metavar="N", help="Steps to leave out; default: 1."),
    click.option(
        "--measure", metavar="M", help="What is judged: typical (default) or mean step time."
    ),
    click.option(
        "--worthwhile", metavar="PCT", help="The least gain worth finding, per cent; default: 1."
    ),
    click.option(
        "--order", metavar="O", help="turned (default: every second round backwards) or latin."
    ),
    click.option("--seed", metavar="N", help="Of the latin order."),
    click.option(
        "--base", metavar="SHA", help="The commit of arms without one; default: HEAD, if clean."
    ),
)


@click.command(
    cls=Verb,
    epilog="Example: marin-profile experiment --arm 'big=--batch 64' --dry-run -- python train.py",
)
@click.argument("words", metavar="F.yaml | -- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", metavar="D", help="The experiment's folder; goes on where it was.")
@click.option("--dry-run", is_flag=True, help="Show schedule, power and cost; start nothing.")
@click.option(
    "--minutes",
    metavar="M",
    type=click.FloatRange(min=0, min_open=True),
    help="With --dry-run: minutes per run, where none has been measured.",
)
@click.option(
    "--spread",
    metavar="PCT",
    type=click.FloatRange(min=0, min_open=True),
    help="With --dry-run: how far step times differ from run to run, per cent (one sd).",
)
@all_of(*_ARMS, *_PLAN)
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    minutes: float | None,
    spread: float | None,
    **given: Any,
) -> None:
    """Run arms of a command in turn, and rank them against the command as it is.

    Name a plan, a YAML file (docs/experiment.md), or the base command behind --, with its arms as
    options. Each run must leave a profile in the folder that {out} in its arguments, or the
    variable MARIN_PROFILE_OUT, names. Arms stop when they are decided. In the folder experiment.md,
    .html and .json rank them; the same command goes on where it was stopped. The exit code is 1
    where something failed or stayed undecided.
    """
    plan = _plan(words, given)
    if not dry_run and (minutes is not None or spread is not None):
        raise UsageError("--minutes and --spread are for a forecast; add --dry-run.")
    if dry_run:
        emit(_forecast(plan, output, minutes, spread), None)
        return
    if output is None:
        raise UsageError("Name the folder of the experiment with --output.")
    from marin_profile.experiment.report import REPORT_FILE, write_report
    from marin_profile.experiment.runner import conduct
    from marin_profile.experiment.words import headline

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves no worktree, as Ctrl-C
    sources = conduct(plan, Path(output), _told)
    found = write_report(plan, sources, Path(output))
    note(headline(found))
    print_path(str(Path(output) / REPORT_FILE))
    ctx.exit(_exit_code(found))


def _plan(words: tuple[str, ...], given: Mapping[str, Any]) -> Plan:
    from marin_profile.experiment.plan import plan_of

    options = any(given.values())
    if len(words) == 1 and words[0].lower().endswith(PLAN_ENDINGS):
        if options:
            raise UsageError(
                f"{words[0]} is the plan; write into it what the other options say, or name a "
                "command behind --."
            )
        from marin_profile.experiment.plan_file import texts_of

        path = Path(words[0])
        return plan_of(texts_of(path), named=words[0], files_from=path.parent, folder=Path.cwd())
    if not words:
        raise UsageError("Name a plan (F.yaml), or a command behind -- and its arms with --arm.")
    texts = {
        "command": list(words),
        "arms": _arms(given),
        **{field: given[name] for name, field in _OF_THE_PLAN.items() if given[name] is not None},
    }
    return plan_of(texts, named="the options", files_from=Path.cwd(), folder=Path.cwd())


def _arms(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    arms: dict[str, dict[str, Any]] = {}
    for text in given["arms"]:
        name, _, arguments = text.partition("=")
        if name in arms:
            raise UsageError(f"--arm names {name} twice; give each arm a name of its own.")
        try:
            arms[name] = {"arguments": shlex.split(arguments)}
        except ValueError as error:
            raise UsageError(f"--arm {text}: {error}; quote as in a shell.") from error
    for option, field in (("patches", "patch"), ("commits", "commit")):
        for text in given[option]:
            name, sign, value = text.partition("=")
            if not sign or not value:
                raise UsageError(f"--{field} {text}: write it as NAME=VALUE.")
            arms.setdefault(name, {})[field] = value
    for text in given["variables"]:
        name, sign, variable = text.partition(":")
        variable, has_value, value = variable.partition("=")
        if not sign or not variable:
            raise UsageError(f"--env {name}: write it as NAME:VARIABLE=VALUE.")
        if not has_value and variable not in os.environ:
            raise UsageError(f"--env {name}:{variable}: the variable is not set here; set it.")
        own = arms.setdefault(name, {}).setdefault("environment", {})
        own[variable] = value if has_value else os.environ[variable]
    return arms


def _forecast(plan: Plan, output: str | None, minutes: float | None, spread: float | None) -> str:
    from marin_profile.experiment.forecast import Costs, forecast, measured_costs
    from marin_profile.experiment.places import WORKTREES_FOLDER, sources_of
    from marin_profile.experiment.runner import progress_in

    folder = Path(output or "D").absolute()
    sources = sources_of(plan)
    progress = progress_in(plan, folder)
    measured = measured_costs(progress)
    costs = Costs(minutes or measured.minutes, spread or measured.spread)
    folders = {
        arm.name: folder / WORKTREES_FOLDER / arm.name / sources.inside
        if plan.is_of_git
        else plan.folder
        for arm in plan.arms
    }
    return "\n".join(forecast(plan, costs, folder, folders, progress.rounds)) + "\n"


def _told(run: Run, outcome: Outcome | None) -> None:
    if outcome is None:
        return
    step = duration(outcome.typical) if outcome.problem is None else outcome.problem
    note(f"{run.folder}: {step} ({outcome.seconds:.0f} s)")


def _exit_code(found: Experiment) -> int:
    is_settled = found.control.problem is None and all(
        arm.standing in ("wins", "no_win", "slower") for arm in found.arms
    )
    return 0 if is_settled else FAILED_OR_UNDECIDED
