"""`marin-profile finish`: what a training left of its captures -> summarised and published."""

from __future__ import annotations

from pathlib import Path

import click

from marin_profile.base.errors import NotFoundError
from marin_profile.base.text import plural, visible
from marin_profile.cli.options import Verb, note

FAILED = 1


@click.command(cls=Verb, epilog="Example: marin-profile finish runs/mine")
@click.argument("folder", metavar="DIR")
def command(folder: str) -> None:
    """Finish the captures of a training that ended before it had summarised or logged them.

    DIR is the folder of a capture, of a run, or any folder above. Prints one line per capture; the
    exit code is 1 if one of them is still not finished. What a running process works on, and
    captures that no training recorded, stay as they are.
    """
    from marin_profile.base.startup import ready_to_read
    from marin_profile.profiling.finishing import finish, left_below

    found = left_below(Path(folder))
    for path in found.unrecorded:
        shown = visible(str(path), None)
        note(f"{shown} has no record and stays: marin-profile summarize --profile-dir {shown}")
    if not found.records:
        raise NotFoundError(f"No record of a capture lies below {folder}.")
    ready_to_read()
    outcomes = []
    for record in found.records:
        outcome = finish(record)
        if outcome is not None:
            outcomes.append(outcome)
            click.echo(visible(outcome.line, None))
    if not outcomes:
        click.echo(f"nothing to finish: {plural(len(found.records), 'capture')} done or lost")
    if not all(outcome.is_done for outcome in outcomes):
        raise click.exceptions.Exit(FAILED)
