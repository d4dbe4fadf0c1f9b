"""`marin-profile bundle`: captures before and after a change -> one folder with the answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from marin_profile.base.errors import UsageError
from marin_profile.base.storage import plain
from marin_profile.cli.judging import (
    REFUSED,
    exit_code,
    history_options,
    keep,
    require_history,
    threshold_options,
)
from marin_profile.cli.options import (
    Verb,
    cache_option,
    note,
    top_k_option,
    wandb_options,
    warmup_option,
)

if TYPE_CHECKING:
    from marin_profile.inputs import Kind

_KINDS: dict[Kind, tuple[str, str]] = {
    "run_target": ("T", "A W&B run {}: its id, entity/project/run_id, or its URL."),
    "artifact": ("REF", "A W&B artifact {}."),
    "profile_dir": ("DIR", "A profile folder {}."),
    "summary": ("F", "A summary {}."),
}
_SIDES = {"before": "before the change", "after": "after the change"}


def _side_options(command: Any) -> Any:
    for side, when in reversed(_SIDES.items()):
        for kind, (metavar, text) in reversed(_KINDS.items()):
            name = f"--{side}-{kind.replace('_', '-')}"
            help_text = text.format(when) + " Repeatable."
            option = click.option(name, metavar=metavar, multiple=True, help=help_text)
            command = option(command)
    return command


@click.command(cls=Verb, epilog="Example: marin-profile bundle runs/a runs/b -o bundle")
@click.argument("targets", nargs=-1, metavar="[BEFORE AFTER]")
@_side_options
@click.option(
    "-o", "--output-dir", metavar="D", help="A local folder for the bundle; one there is replaced."
)
@wandb_options("Take W&B artifacts with this alias or version.")
@warmup_option("How many steps at the start of each window to leave out.")
@click.option(
    "--strict-provenance",
    is_flag=True,
    help="Exit 1 on any caveat about the comparison.",
)
@top_k_option(10, "How many rows a list of the comparison holds.")
@history_options
@threshold_options
@cache_option
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    output_dir: str | None,
    entity: str | None,
    project: str | None,
    alias: str | None,
    download_root: str | None,
    trust_references: bool,
    warmup_steps: int,
    strict_provenance: bool,
    top_k: int,
    label: str | None,
    history: str | None,
    commit: str | None,
    no_append: bool,
    stamp: bool,
    allow_inconclusive: bool,
    fail_on_likely: bool,
    pair: bool,
    sequential: bool,
    use_cache: bool,
    **options: Any,
) -> None:
    """Write the answer to "what did my change do?" into one folder.

    It holds summaries and reports of both sides, compare.json, track.json, a manifest, and
    compare_report.md, which leads with the answer. Of several captures a side, all are judged
    and compared. Exit code 0: pass, warn or
    likely fail; 1: fail or inconclusive; 7: likely fail, with --fail-on-likely.
    """
    from marin_profile.cli.inputs import load_sides
    from marin_profile.inputs import Input, Wandb, named

    sides = {
        side: [Input(kind, value) for kind in _KINDS for value in options.pop(f"{side}_{kind}")]
        for side in _SIDES
    }
    if len(targets) == 2 and not any(sides.values()):
        sides = {side: [named(word)] for side, word in zip(_SIDES, targets, strict=True)}
    elif targets or not all(sides.values()):
        raise UsageError(
            "Name at least one capture before and one after the change, as two words or with "
            "--before-... and --after-...."
        )
    require_history(history, stamp, commit, no_append)
    if output_dir is None:
        raise UsageError("Name the folder of the bundle with --output-dir.")
    from marin_profile.bundle import (
        COMPARE_REPORT_FILE,
        bundle_folder,
        make_bundle,
        write_bundle,
    )
    from marin_profile.verdict import Thresholds

    bundle_folder(output_dir)
    wandb = Wandb(entity, project, alias, download_root, trust_references)
    before, after, programs = load_sides(
        (sides["before"], sides["after"]),
        warmup_steps=warmup_steps,
        wandb=wandb,
        use_cache=use_cache,
        about_to_load=lambda side, given: note(f"{side}: reading {given.value}"),
    )
    made = make_bundle(
        before,
        after,
        Thresholds(**options),
        label=label,
        history=history,
        top_k=top_k,
        pair=pair,
        sequential=sequential,
        programs=programs,
    )
    tracked = made.tracked
    for line in tracked.said:
        note(line)
    write_bundle(made.files, output_dir)
    keep(history, after, tracked.assessment, stamp=stamp, commit=commit, no_append=no_append)
    click.echo(str(Path(plain(output_dir)) / COMPARE_REPORT_FILE))
    objects = strict_provenance and tracked.caveats
    code = exit_code(
        tracked.assessment, allow_inconclusive=allow_inconclusive, fail_on_likely=fail_on_likely
    )
    ctx.exit(code or (REFUSED if objects else 0))
