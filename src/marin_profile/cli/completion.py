"""`marin-profile completion`: what makes a shell complete verbs, options, names and paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from marin_profile.cli import COMPLETING, cli
from marin_profile.cli.options import Verb, emit

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

PROGRAM = "marin-profile"
SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Verb, epilog="Example: marin-profile completion bash")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what makes a shell complete verbs, options and paths.

    In ~/.bashrc: eval "$(marin-profile completion bash)"; in ~/.zshrc the same with zsh; for fish:
    marin-profile completion fish > ~/.config/fish/completions/marin-profile.fish
    """
    emit(_completer(shell).source(), None)


def _completer(shell: str) -> ShellComplete:
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, shell
    return made(cli, {}, PROGRAM, COMPLETING)


def complete(instruction: str) -> int:
    """Answer the shell's question, which stands in the environment: "bash_complete". A command line
    that is wrong so far has no completion, and nothing else is said in the middle of a prompt."""
    shell, _, asked = instruction.partition("_")
    if shell not in SHELLS or asked != "complete":
        return 1
    try:
        text = _completer(shell).complete()
    except Exception:
        return 1
    os.write(1, text.encode() + b"\n")
    return 0
