"""`marin-profile compare`: summaries before and after -> what changed, and what accounts for it."""

from __future__ import annotations

import click

from marin_profile.cli.inputs import load_sides, named_sides
from marin_profile.cli.options import (
    Verb,
    cache_option,
    emit,
    is_page,
    note,
    output_option,
    top_k_option,
)

OBJECTED = 1


@click.command(cls=Verb, epilog="Example: marin-profile compare runs/a runs/b --format md")
@click.argument("targets", nargs=-1, metavar="[BEFORE AFTER]")
@click.option(
    "--before",
    metavar="F",
    multiple=True,
    help="A summary before: a file or an fsspec URL; repeat it for repeats.",
)
@click.option("--after", metavar="F", multiple=True, help="A summary after; repeatable.")
@click.option(
    "--strict-provenance",
    is_flag=True,
    help="Exit 1 if both are one capture, or on any caveat about the comparison.",
)
@top_k_option(10, "How many rows a list holds.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["json", "md", "html"]),
    help="md: Markdown; html: one page that works offline. Default: html if the output is so "
    "named, else json.",
)
@output_option
@cache_option
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    strict_provenance: bool,
    top_k: int,
    output_format: str | None,
    output: str | None,
    use_cache: bool,
) -> None:
    """Compare summaries or profiles: what changed per step and device, and which ops and regions
    account for it, and of profiles what XLA compiled differently. Several captures a side show what
    is more than noise."""
    sides = named_sides(targets, before, after)
    one, two, programs = load_sides(sides, use_cache=use_cache)
    from marin_profile.comparison import compare

    found = compare(one, two, top_k=top_k, programs=programs)
    if output_format is None:
        output_format = "html" if is_page(output) else "json"
    if output_format == "md":
        from marin_profile.reports.comparison import render_comparison

        emit(render_comparison(found), output)
    elif output_format == "html":
        from marin_profile.reports.comparison import render_comparison_html

        emit(render_comparison_html(found), output)
    else:
        emit(found.to_json(), output)
    state = found.comparability
    if state.same_capture:
        note("Both summaries are of the same capture.")
    for caveat in state.caveats:
        note(caveat.sentence)
    if strict_provenance and (state.same_capture or state.caveats):
        ctx.exit(OBJECTED)
