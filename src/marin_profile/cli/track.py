"""`marin-profile track`: summaries before and after a change -> a verdict, and an exit code."""

from __future__ import annotations

import click

from marin_profile.cli.judging import (
    exit_code,
    history_options,
    keep,
    require_history,
    require_sides,
    threshold_options,
)
from marin_profile.cli.options import Verb, emit, note, output_option


@click.command(cls=Verb)
@click.option(
    "--before", multiple=True, metavar="F", help="A summary before the change; repeatable."
)
@click.option("--after", multiple=True, metavar="F", help="A summary after it; repeatable.")
@history_options
@threshold_options
@output_option
@click.pass_context
def command(
    ctx: click.Context,
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
    **thresholds: float,
) -> None:
    """Judge a change: is the step slower?

    The verdict is JSON on stdout, its sentence a note on stderr. Exit code 0: pass, warn or
    likely fail; 1: fail or inconclusive; 7: likely fail, with --fail-on-likely.
    """
    require_sides(before, after, "with --before and --after")
    require_history(history, stamp, commit, no_append)
    from marin_profile.schema import load_summary
    from marin_profile.tracking import track
    from marin_profile.verdict import Thresholds

    one, two = ([load_summary(path) for path in side] for side in (before, after))
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
