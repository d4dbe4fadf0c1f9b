"""`marin-profile history`: trend, noise and changes of each configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, emit, note, output_option

if TYPE_CHECKING:
    from marin_profile.history.store import History


@click.command(cls=Verb)
@click.option(
    "--history",
    "target",
    metavar="H",
    help="A JSONL file, or a folder (also an fsspec URL) of one object per record.",
)
@click.option(
    "--tail",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many of the last captures to list per configuration.",
)
@output_option
def command(target: str | None, tail: int, output: str | None) -> None:
    """Summarize a history: counts, trend, noise floor and changes of level by configuration.

    Text for the terminal; with --output F.json figures, with F.html a page.
    """
    if target is None:
        raise UsageError("Name the history with --history.")
    from marin_profile.history.store import read

    history = read(target)
    for problem in history.problems:
        note(problem)
    emit(_rendered(history, tail, (output or "").lower()), output)


def _rendered(history: History, tail: int, output: str) -> str:
    if output.endswith(".json"):
        from marin_profile.history.figures import history_figures
        from marin_profile.schema import canonical_json

        return canonical_json(history_figures(history, tail=tail))
    if output.endswith((".html", ".htm")):
        from marin_profile.history.page import render_page

        return render_page(history, tail=tail)
    from marin_profile.history.terminal import render_text

    return render_text(history, tail=tail)
