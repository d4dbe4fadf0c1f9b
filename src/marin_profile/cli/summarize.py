"""`marin-profile summarize`: a profile -> profile_summary.v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.startup import ready_to_read
from marin_profile.base.text import either
from marin_profile.capture.formats import FORMATS
from marin_profile.cli.crews import hosts_reader, jobs_options
from marin_profile.cli.options import (
    Verb,
    emit,
    note,
    output_option,
    wandb_options,
    warmup_option,
)

if TYPE_CHECKING:
    from marin_profile.inputs import Kind
    from marin_profile.schema import ProfileSummary
    from marin_profile.wandb.download import Fetched

MODE_CHOICES = ("device_ledger", "exclusive_per_track", "exclusive_global")


def _file_options(command: Callable[..., None]) -> Callable[..., None]:
    for one in reversed(FORMATS):
        text = f"One {one.called} ({one.patterns[0]})."
        command = click.option(one.option, metavar="F", help=text)(command)
    return command


@click.command(
    cls=Verb, epilog="Example: marin-profile summarize --profile-dir runs/mine -o summary.json"
)
@click.option("--profile-dir", metavar="DIR", help="A folder above plugins/profile/<timestamp>/.")
@_file_options
@click.option("--artifact", metavar="REF", help="A W&B artifact: entity/project/name:alias.")
@click.option(
    "--run-target", metavar="T", help="A W&B run: its id, entity/project/run_id, or its URL."
)
@wandb_options("Take the artifact with this alias or version.")
@click.option("--host", "hosts", metavar="NAME", multiple=True, help="Only this host; repeatable.")
@warmup_option("How many steps at the start of the window to leave out.")
@click.option(
    "--hot-op-limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    help="How many hot ops to list.",
)
@click.option(
    "--breakdown-mode",
    type=click.Choice(MODE_CHOICES),
    default=MODE_CHOICES[0],
    show_default=True,
    help="How to divide time_breakdown; the others reproduce older numbers.",
)
@click.option("--stamp", is_flag=True, help="Write the current time as generated_at_utc.")
@jobs_options
@click.option(
    "--cache/--no-cache",
    "use_cache",
    default=True,
    help="Take copies of remote files, and of many hosts those that were read before, from the "
    "user's cache, and keep others.",
)
@output_option
def command(
    profile_dir: str | None,
    artifact: str | None,
    run_target: str | None,
    entity: str | None,
    project: str | None,
    alias: str | None,
    download_root: str | None,
    trust_references: bool,
    hosts: tuple[str, ...],
    warmup_steps: int,
    hot_op_limit: int,
    breakdown_mode: str,
    stamp: bool,
    jobs: int | None,
    scheduler: str | None,
    use_cache: bool,
    output: str | None,
    **files: str | None,
) -> None:
    """Summarize a profile into one JSON file.

    Name one folder (its newest capture is taken), file, artifact or run.
    """
    remote = (artifact, run_target)
    if sum(source is not None for source in (profile_dir, *files.values(), *remote)) != 1:
        file_options = (one.option for one in FORMATS)
        known = either(("--profile-dir", *file_options, "--artifact", "--run-target"))
        raise UsageError(f"Name exactly one profile: with {known}.")
    fetched = None
    if any(source is not None for source in remote):
        from marin_profile.cli.inputs import TERMINAL
        from marin_profile.inputs import Input, Wandb, fetch_named

        kind: Kind = "artifact" if artifact is not None else "run_target"
        given = Input(kind, artifact or run_target or "")
        wandb = Wandb(entity, project, alias, download_root, trust_references)
        fetched = fetch_named(given, wandb, TERMINAL)
        profile_dir = fetched.folder
    elif trust_references or any((entity, project, alias, download_root)):
        raise UsageError(
            "--entity, --project, --alias, --download-root and --trust-references go with "
            "--artifact or --run-target."
        )
    if fetched is not None and fetched.summary is not None:
        emit(_with_run(fetched.summary, fetched).to_json(), output)
        return
    from marin_profile.capture.sources import resolve

    capture, notes = resolve(profile_dir=profile_dir, hosts=hosts, **files)
    for line in notes:
        note(line)
    ready_to_read()
    from marin_profile.cli.progress import working_on
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    options = SummarizeOptions(
        warmup_steps=warmup_steps,
        hot_op_limit=hot_op_limit,
        breakdown_mode=breakdown_mode,
        stamp=stamp,
    )
    with working_on(capture), hosts_reader(capture, jobs, scheduler, use_cache=use_cache) as read:
        summary = summarize_capture(capture, options, read=read, keep_copies=use_cache)
    emit(_with_run(summary, fetched).to_json(), output)


def _with_run(summary: ProfileSummary, fetched: Fetched | None) -> ProfileSummary:
    if fetched is None:
        return summary
    from marin_profile.wandb.download import with_metadata

    return with_metadata(summary, fetched.metadata)
