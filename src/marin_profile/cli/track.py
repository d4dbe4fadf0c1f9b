"""`marin-profile track`: summaries before and after a change -> a verdict, and an exit code."""

from __future__ import annotations

from typing import Any

import click

from marin_profile.cli.options import Verb, emit, note, output_option
from marin_profile.errors import UsageError


def _threshold(name: str, default: float, text: str) -> Any:
    return click.option(
        name, type=click.FloatRange(min=0), default=default, show_default=True, help=text
    )


@click.command(cls=Verb)
@click.option(
    "--before", multiple=True, metavar="F", help="A summary before the change; repeatable."
)
@click.option("--after", multiple=True, metavar="F", help="A summary after it; repeatable.")
@click.option("--label", metavar="L", help="A name for this comparison, kept in the verdict.")
@_threshold("--max-step-median-regression-pct", 5.0, "Step time: more is a fail, in per cent.")
@_threshold("--max-step-p90-regression-pct", 10.0, "p90 of the step time, in per cent.")
@_threshold(
    "--max-communication-share-regression-abs", 0.05, "Exposed communication, share of device time."
)
@_threshold("--max-stall-share-regression-abs", 0.05, "Idle time, share of device time.")
@click.option("--allow-inconclusive", is_flag=True, help="Exit 0 if the verdict is inconclusive.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    before: tuple[str, ...],
    after: tuple[str, ...],
    label: str | None,
    allow_inconclusive: bool,
    output: str | None,
    **thresholds: float,
) -> None:
    """Judge a change: is the step slower?

    The verdict is JSON on stdout, its sentence a note on stderr. Exit code 0: pass or warn; 1: fail
    or inconclusive.
    """
    from marin_profile.schema import load_summary
    from marin_profile.verdict import Thresholds, assess

    if not before or not after:
        raise UsageError("Name summaries with --before and --after.")
    assessment = assess(
        [load_summary(path) for path in before],
        [load_summary(path) for path in after],
        Thresholds(**thresholds),
    ).model_copy(update={"label": label})
    emit(assessment.to_json(), output)
    note(assessment.sentence)
    accepted = {"pass", "warn"} | ({"inconclusive"} if allow_inconclusive else set())
    if assessment.status not in accepted:
        ctx.exit(1)
