"""What the verbs share: their class, common options, and the output of results and notes.

Contract: every result goes through `emit`, or where it is written as it is made its path through
`print_path`, and everything on stderr but errors through `note`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from marin_profile.base.text import visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Place(click.types.StringParamType):
    """A file or a folder, or the name of something elsewhere: a shell completes it as a path."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


PLACE = Place()
FLEET = "DIR|RUNS.txt|wandb:PROJECT"
# The metavars of places; a verb need not say more of them.
PLACES = ("F", "DIR", "D", "H", "TARGET", "[TARGET]", "[BEFORE AFTER]", FLEET, "F.parquet")


class Verb(click.Command):
    """A verb; it takes -h and --debug as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {})["help_option_names"] = ["-h", "--help"]
        super().__init__(*args, **kwargs)
        for param in self.params:
            if param.metavar in PLACES:
                param.type = PLACE
        self.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                help="Show the traceback of an error.",
            )
        )


summary_option = click.option(
    "--summary", "summary_path", metavar="F", help="A summary: a file, an fsspec URL, or -."
)
cache_option = click.option(
    "--cache/--no-cache",
    "use_cache",
    default=True,
    help="Take a profile's summary from the user's cache, and keep it there.",
)
output_option = click.option(
    "-o", "--output", metavar="F", help="Write here (a file or an fsspec URL) instead of to stdout."
)

trust_option = click.option(
    "--trust-references",
    is_flag=True,
    help="Read what a W&B artifact or config names wherever it is, also in a local folder.",
)


def top_k_option(default: int | None, text: str) -> Any:
    return click.option(
        "--top-k", type=click.IntRange(min=1), default=default, show_default=True, help=text
    )


def all_of(*options: Any) -> Callable[[Any], Any]:
    """Several options as one decorator, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def wandb_options(alias: str) -> Callable[[Any], Any]:
    """Where W&B names are looked up, and downloads go; `alias` is the help of --alias."""
    return all_of(
        click.option("--entity", metavar="E", help="W&B entity, where the name has none."),
        click.option("--project", metavar="P", help="W&B project, where the name has none."),
        click.option("--alias", metavar="A", help=alias),
        click.option(
            "--download-root",
            metavar="D",
            help="Where W&B downloads go; default: the user's cache.",
        ),
        trust_option,
    )


def warmup_option(text: str) -> Any:
    return click.option(
        "--warmup-steps",
        metavar="N",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help=text,
    )


def is_page(output: str | None) -> bool:
    """Whether the output is named as an HTML page."""
    return (output or "").lower().endswith((".html", ".htm"))


def emit(text: str, output: str | None) -> None:
    """Write a result to a file, whose path is printed, or to stdout. A terminal gets no character
    that cannot be seen; files and pipes get the text as it is."""
    if output is None:
        click.echo(_for_terminal(text) if sys.stdout.isatty() else text.encode(), nl=False)
        return
    from marin_profile.base.storage import write_file

    write_file(output, text.encode())
    print_path(output)


def print_path(output: str) -> None:
    """Of a result that was written."""
    click.echo(visible(output, None) if sys.stdout.isatty() else output)


def _for_terminal(text: str) -> str:
    """The same JSON, and text that means the same, in characters that can be seen."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
        for character in text
    ).replace("\x7f", "\\u007f")


def note(text: str) -> None:
    click.echo(f"note: {visible(text, None)}", err=True)
