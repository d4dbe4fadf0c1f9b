"""`marin-profile compare`: two summaries -> what changed, and what accounts for it."""

from __future__ import annotations

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, emit, note, output_option, top_k_option

OBJECTED = 1


@click.command(cls=Verb)
@click.option("--before", metavar="F", help="The summary before: a file or an fsspec URL.")
@click.option("--after", metavar="F", help="The summary after.")
@click.option(
    "--strict-provenance",
    is_flag=True,
    help="Exit 1 if both are one capture, or on any caveat about the comparison.",
)
@top_k_option(10, "How many rows a list holds.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["json", "md"]),
    default="json",
    show_default=True,
    help="json, or md: Markdown.",
)
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    before: str | None,
    after: str | None,
    strict_provenance: bool,
    top_k: int,
    output_format: str,
    output: str | None,
) -> None:
    """Compare two summaries: what changed per step and device, and which ops and regions account
    for it."""
    if before is None or after is None:
        raise UsageError("Name the two summaries to compare with --before and --after.")
    from marin_profile.comparison import compare
    from marin_profile.schema import load_summary

    found = compare(load_summary(before), load_summary(after), top_k=top_k)
    if output_format == "md":
        from marin_profile.reports.comparison import render_comparison

        emit(render_comparison(found), output)
    else:
        emit(found.to_json(), output)
    state = found.comparability
    if state.same_capture:
        note("Both summaries are of the same capture.")
    for caveat in state.caveats:
        note(caveat.sentence)
    if strict_provenance and (state.same_capture or state.caveats):
        ctx.exit(OBJECTED)
