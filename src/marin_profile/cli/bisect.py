"""`marin-profile bisect`: a good and a bad commit -> the commit that made the step slower."""

from __future__ import annotations

import math
import shlex
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.text import plural, visible
from marin_profile.cli.options import Verb, note, warmup_option

if TYPE_CHECKING:
    from marin_profile.comparison import Comparison
    from marin_profile.experiment.bisect_journal import Kept
    from marin_profile.experiment.bisect_result import BisectResult
    from marin_profile.experiment.bisection import Question
    from marin_profile.experiment.commits import CommitRange
    from marin_profile.experiment.trying import Commands
    from marin_profile.experiment.worktrees import Repository

NOT_FOUND_OUT = 1
# A plan is made for a change of so many least ones: those just as large as that are hard to tell.
PLANNED_CHANGES = 2.0


@click.command(
    cls=Verb,
    epilog="Example: marin-profile bisect --good v1.2 --bad main -o bisect -- python train.py "
    "--log-dir {out}",
)
@click.argument("run", nargs=-1, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option("--good", required=True, metavar="REV", help="A commit before the change.")
@click.option("--bad", metavar="REV", default="HEAD", show_default=True, help="A commit after it.")
@click.option(
    "-o",
    "--output-dir",
    "output_dir",
    required=True,
    metavar="D",
    help="A folder for journal, captures and answer; one there is gone on with.",
)
@click.option(
    "--repository", "folder", metavar="DIR", default=".", help="A folder of the checkout."
)
@click.option("--build", metavar="COMMAND", help="What builds a commit, run in its checkout.")
@click.option(
    "--env", "variables", metavar="NAME=VALUE", multiple=True, help="For the commands. Repeatable."
)
@click.option(
    "--captures",
    "leaves",
    metavar="PATH",
    help="The folder of the checkout that a run leaves its capture in, if not {out}.",
)
@click.option("--faster", is_flag=True, help="Look for what made the step faster.")
@click.option(
    "--step",
    "measure",
    type=click.Choice(["typical", "mean"]),
    default="typical",
    show_default=True,
    help="The step time to compare.",
)
@click.option(
    "--change",
    metavar="PCT",
    type=click.FloatRange(0.1, 900),
    default=5.0,
    show_default=True,
    help="The least change of the step time to look for.",
)
@click.option(
    "--spread",
    metavar="PCT",
    type=click.FloatRange(0.01, 100),
    help="How much the step time differs from run to run, where you know.",
)
@click.option(
    "--most-captures",
    metavar="N",
    type=click.IntRange(min=4),
    default=40,
    show_default=True,
    help="Stop after so many.",
)
@click.option("--skip", metavar="REV", multiple=True, help="Leave a commit out. Repeatable.")
@click.option("--retry-failed", is_flag=True, help="Try again what failed at an earlier start.")
@click.option(
    "--build-timeout",
    metavar="MIN",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Minutes that a build may take.",
)
@click.option(
    "--run-timeout",
    metavar="MIN",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Minutes that a run may take.",
)
@warmup_option("How many steps at the start of each window to leave out.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and run nothing.")
@click.option(
    "--minutes",
    metavar="MIN",
    type=click.FloatRange(0, min_open=True),
    help="What build and run take together, for the plan.",
)
@click.pass_context
def command(
    ctx: click.Context,
    run: tuple[str, ...],
    good: str,
    bad: str,
    output_dir: str,
    folder: str,
    build: str | None,
    variables: tuple[str, ...],
    leaves: str | None,
    faster: bool,
    measure: str,
    change: float,
    spread: float | None,
    most_captures: int,
    skip: tuple[str, ...],
    retry_failed: bool,
    build_timeout: float,
    run_timeout: float,
    warmup_steps: int,
    dry_run: bool,
    minutes: float | None,
) -> None:
    """Find the commit that made the step slower.

    COMMAND runs the training of a commit in a worktree of it, and leaves a capture below {out}
    (also in MARIN_PROFILE_OUT). Captures are taken where they tell most, as many as the noise asks
    for. A commit that cannot be built or run is skipped. Your checkout stays as it is; a bisection
    that was killed goes on with the same command line. Exit code 1 where no commit was found.
    """
    from marin_profile.experiment.commits import commit_range
    from marin_profile.experiment.trying import Commands
    from marin_profile.experiment.worktrees import Repository

    if not run:
        raise UsageError("Name the command that runs the training behind --.")
    repository = Repository.around(_folder(folder))
    commits = commit_range(repository, good, bad)
    question = _question(
        faster, measure, change, spread, most_captures, _skipped(repository, commits, skip)
    )
    commands = Commands(
        run=run,
        build=tuple(shlex.split(build or "")),
        environment=_environment(variables),
        leaves=_below_checkout(leaves),
        build_timeout=60 * build_timeout,
        run_timeout=60 * run_timeout,
        warmup_steps=warmup_steps,
    )
    if dry_run:
        _print_plan(commits, question, commands, Path(output_dir), minutes)
        return
    if changed := repository.changed_files():
        note(
            f"{plural(len(changed), 'file')} of the checkout with changes that no commit holds: "
            "no run sees them."
        )
    from marin_profile.base.startup import ready_to_read
    from marin_profile.experiment.bisect_run import run_bisection

    ready_to_read()
    kept = run_bisection(
        Path(output_dir),
        repository,
        commits,
        commands,
        question,
        forget_failures=retry_failed,
        say=note,
    )
    if not _answer(kept, Path(output_dir), warmup_steps):
        ctx.exit(NOT_FOUND_OUT)


def _folder(named: str) -> Path:
    from marin_profile.base.errors import NotFoundError

    if not Path(named).is_dir():
        raise NotFoundError(f"There is no folder {named}; name one of a git checkout.")
    return Path(named)


def _question(
    faster: bool,
    measure: str,
    change: float,
    spread: float | None,
    most_captures: int,
    skip: tuple[str, ...],
) -> Question:
    from marin_profile.experiment.bisection import Question

    return Question(
        direction="faster" if faster else "slower",
        measure="mean" if measure == "mean" else "typical",
        least_change=_log_of(change, faster),
        spread=None if spread is None else math.log1p(spread / 100),
        most_captures=most_captures,
        skip=skip,
    )


def _log_of(change: float, faster: bool) -> float:
    """Above zero."""
    if not faster:
        return math.log1p(change / 100)
    if change >= 100:
        raise UsageError(f"No step gets {change:g} % faster; name a --change below 100.")
    return -math.log1p(-change / 100)


def _skipped(
    repository: Repository, commits: CommitRange, names: tuple[str, ...]
) -> tuple[str, ...]:
    from marin_profile.experiment.commits import resolved

    found = []
    for name in names:
        sha = resolved(repository, name)
        at = commits.index(sha)
        if at in (None, 0, commits.last):
            what = "not between the two" if at is None else "one of the two ends"
            raise UsageError(f"{visible(name)} is {what}; skip a commit between them.")
        found.append(sha)
    return tuple(sorted(set(found)))


def _environment(variables: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in variables:
        name, equals, value = word.partition("=")
        if not equals or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise UsageError(f"--env takes NAME=VALUE, not {visible(name)}.")
        found[name] = value
    return found


def _below_checkout(leaves: str | None) -> str | None:
    if leaves is None:
        return None
    path = PurePath(leaves)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UsageError(f"--captures names a folder of the checkout, not {visible(leaves)}.")
    return str(path)


def _explained(result: BisectResult, folder: Path, warmup_steps: int) -> Comparison | None:
    """Of the newest captures before and after the commit that was found."""
    from marin_profile.experiment.explained import explained

    captures = [result.newest_capture(at) for at in (result.before, result.after)]
    if result.state != "found" or captures[0] is None or captures[1] is None:
        return None
    before, after = (str(folder / one) for one in captures if one is not None)
    return explained(before, after, warmup_steps=warmup_steps)


def _answer(kept: Kept, folder: Path, warmup_steps: int) -> bool:
    """Write it and print it; whether a commit was found."""
    from marin_profile.base.durable import write_whole
    from marin_profile.documents import html, markdown
    from marin_profile.experiment.bisect_document import bisect_document
    from marin_profile.experiment.bisect_result import figures, result_of, sentence
    from marin_profile.schema import canonical_json

    result = result_of(kept)
    comparison = _explained(result, folder, warmup_steps)
    document = bisect_document(result, comparison)
    told = figures(result)
    if comparison is not None and comparison.hlo is not None:
        told["hlo"] = comparison.hlo.model_dump(mode="python", by_alias=True)
    files = {
        "bisect.json": canonical_json(told),
        "bisect.md": markdown.render(document),
        "bisect.html": html.render(document),
    }
    try:
        write_whole(folder, {name: text.encode() for name, text in files.items()})
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}.") from error
    click.echo(visible(sentence(result), None))
    click.echo(visible(str(folder / "bisect.html"), None))
    return result.state == "found"


def _print_plan(
    commits: CommitRange,
    question: Question,
    commands: Commands,
    folder: Path,
    minutes: float | None,
) -> None:
    from marin_profile.experiment.bisect_plan import plan_lines

    planned = PLANNED_CHANGES * question.least_change
    for line in plan_lines(commits, question, commands, planned, folder, minutes):
        click.echo(visible(line, None))
