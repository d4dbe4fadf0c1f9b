"""`marin-profile summarize`: a profile -> profile_summary.v1."""

from __future__ import annotations

import click

from marin_profile.cli.options import Verb, emit, note, output_option
from marin_profile.cli.startup import import_numba, return_large_blocks

BREAKDOWN_MODES = ("device_ledger", "exclusive_per_track", "exclusive_global")


@click.command(cls=Verb)
@click.option("--profile-dir", metavar="DIR", help="A folder above plugins/profile/<timestamp>/.")
@click.option("--trace-file", metavar="F", help="One trace JSON (*.trace.json.gz).")
@click.option("--xplane-file", metavar="F", help="One XPlane protobuf (*.xplane.pb).")
@click.option("--host", "hosts", metavar="NAME", multiple=True, help="Only this host; repeatable.")
@click.option(
    "--warmup-steps",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How many steps at the start of the window to leave out.",
)
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
    type=click.Choice(BREAKDOWN_MODES),
    default=BREAKDOWN_MODES[0],
    show_default=True,
    help="How to divide time_breakdown; the others are older rules, for old numbers.",
)
@click.option("--stamp", is_flag=True, help="Write the clock's time as generated_at_utc.")
@output_option
def command(
    profile_dir: str | None,
    trace_file: str | None,
    xplane_file: str | None,
    hosts: tuple[str, ...],
    warmup_steps: int,
    hot_op_limit: int,
    breakdown_mode: str,
    stamp: bool,
    output: str | None,
) -> None:
    """Summarize a profile into one JSON file.

    Name one of --profile-dir (its newest capture is taken), --trace-file and --xplane-file.
    """
    from marin_profile.sources import resolve

    capture, notes = resolve(
        profile_dir=profile_dir, trace_file=trace_file, xplane_file=xplane_file, hosts=hosts
    )
    for line in notes:
        note(line)
    return_large_blocks()
    import_numba()
    from marin_profile.cli.progress import working_on
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    options = SummarizeOptions(
        warmup_steps=warmup_steps,
        hot_op_limit=hot_op_limit,
        breakdown_mode=breakdown_mode,
        stamp=stamp,
    )
    with working_on(capture):
        summary = summarize_capture(capture, options)
    emit(summary.to_json(), output)
