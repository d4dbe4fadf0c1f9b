"""`marin-profile skill`: how an agent makes a training faster, step by step."""

from __future__ import annotations

from importlib.resources import files

import click

from marin_profile.cli.options import Verb, emit


@click.command(cls=Verb, epilog="Example: marin-profile skill")
def command() -> None:
    """Print how an agent makes a training faster with this: measure, change one thing, compare.

    The text is Markdown, for an agent's instructions.
    """
    emit(files("marin_profile.mcp").joinpath("recipe.md").read_text("utf-8"), None)
