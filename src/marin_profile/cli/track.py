"""`marin-profile track`: summaries before and after a change -> a verdict, and an exit code."""

from __future__ import annotations

import click

from marin_profile.cli.inputs import two_sides
from marin_profile.cli.judging import (
    exit_code,
    history_options,
    keep,
    require_history,
    threshold_options,
)
from marin_profile.cli.options import Verb, cache_option, emit, note, output_option


@click.command(cls=Verb, epilog="Example: marin-profile track runs/a runs/b")
@click.argument("targets", nargs=-1, metavar="[BEFORE AFTER]")
@click.option(
    "--before", multiple=True, metavar="F", help="A summary before the change; repeatable."
)
@click.option("--after", multiple=True, metavar="F", help="A summary after it; repeatable.")
@history_options
@threshold_options
@output_option
@cache_option
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    label: str | None,
    history: str | None,
    commit: str | None,
    no_append: bool,
    stamp: bool,
    allow_inconclusive: bool,
    fail_on_likely: bool,
    pair: bool,
    sequential: bool,
    output: str | None,
    use_cache: bool,
    **thresholds: float,
) -> None:
    """Judge a change: is the step slower?

    The verdict is JSON on stdout, its sentence a note on stderr. Exit code 0: pass, warn or
    likely fail; 1: fail or inconclusive; 7: likely fail, with --fail-on-likely.
    """
    require_history(history, stamp, commit, no_append)
    one, two = two_sides(targets, before, after, use_cache=use_cache)
    from marin_profile.tracking import track
    from marin_profile.verdict import Thresholds

    tracked = track(
        one,
        two,
        Thresholds(**thresholds),
        label=label,
        history=history,
        pair=pair,
        sequential=sequential,
    )
    for line in tracked.said:
        note(line)
    emit(tracked.assessment.to_json(), output)
    keep(history, two, tracked.assessment, stamp=stamp, commit=commit, no_append=no_append)
    ctx.exit(
        exit_code(
            tracked.assessment,
            allow_inconclusive=allow_inconclusive,
            fail_on_likely=fail_on_likely,
        )
    )
