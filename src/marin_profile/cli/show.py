"""`marin-profile [show]`: a profile or a summary -> one screen."""

from __future__ import annotations

import os
import shutil
import sys

import click

from marin_profile.cli.crews import jobs_options
from marin_profile.cli.inputs import load_named
from marin_profile.cli.options import Verb, cache_option, emit

# What a terminal shows of each part; NO_COLOR and pipes get none.
STYLES: dict[str, dict[str, str | bool]] = {
    "headline": {"bold": True},
    "doubt": {"fg": "yellow"},
    "advice": {"bold": True},
    "next": {"dim": True},
    "compute": {"fg": "green"},
    "exposed_communication": {"fg": "red"},
    "exposed_transfer": {"fg": "magenta"},
    "idle": {"fg": "bright_black"},
}


@click.command(cls=Verb, epilog="Example: marin-profile runs/mine")
@click.argument("target", metavar="TARGET")
@cache_option
@jobs_options
def command(target: str, use_cache: bool, jobs: int | None, scheduler: str | None) -> None:
    """Show where the step time goes, and what to try first, on one screen.

    TARGET is a summary, a profile, a folder above one (its newest capture is taken), or a W&B run,
    as entity/project/run_id or by its URL.
    """
    summary = load_named(target, use_cache=use_cache, jobs=jobs, scheduler=scheduler)
    from marin_profile.reports.screen import plain, render_screen

    width = shutil.get_terminal_size().columns - 1
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        emit(render_screen(summary, target, width=width, style=plain), None)
    else:
        click.echo(render_screen(summary, target, width=width, style=_style), nl=False)


def _style(part: str, text: str) -> str:
    return click.style(text, **STYLES.get(part, {}))  # type: ignore[arg-type]
