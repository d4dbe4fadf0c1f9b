"""`marin-profile events`: every device event of a profile -> a table in a file."""

from __future__ import annotations

import click

from marin_profile.base.startup import ready_to_read
from marin_profile.base.text import plural
from marin_profile.cli.inputs import capture_named
from marin_profile.cli.options import Verb, note, print_path


@click.command(cls=Verb, epilog="Example: marin-profile events runs/mine -o events.parquet")
@click.argument("target", metavar="TARGET")
@click.option(
    "-o",
    "--output",
    metavar="F",
    required=True,
    help="Write here (a file or an fsspec URL): .parquet, which needs pyarrow, .csv or .jsonl.",
)
def command(target: str, output: str) -> None:
    """Write every device event into a table, one row each: host, device, step, program, op, kind,
    pass, region, start and lengths in picoseconds.

    TARGET is a profile, a folder above one (its newest capture is taken), or a W&B run, as
    entity/project/run_id or by its URL.
    """
    ready_to_read()
    from marin_profile.cli.progress import working_on
    from marin_profile.export import format_of_file, write_events

    format_of_file(output)  # before the profile is looked for
    capture = capture_named(target)
    with working_on(capture):
        count = write_events(capture, output, note=note)
    note(f"{plural(count, 'event')} of {capture.source_path}.")
    print_path(output)
