"""The command line: `marin-profile VERB`.

Contract
* One file per verb, loaded when the verb is called; a verb parses, calls the library, prints.
* Results go to stdout or --output (then its path is printed), notes to stderr.
* Exit codes: 0 done; 1 the verdict is fail or inconclusive, a history got slower, or anything
  else; 2 usage or an unknown question; 3 not found; 4 broken input or no JAX profile; 5 sound, but
  cannot answer; 6 a remote service failed; 130 interrupted.
* An error is one sentence on stderr; --debug adds the traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import ProfileError
from marin_profile.base.startup import skip_pydantic_plugins
from marin_profile.base.text import visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Verb -> its short help: the listing must not load what the verbs need.
VERBS = {
    "show": "Show where the step time goes, on one screen; the verb may be left out.",
    "summarize": "Summarize a profile into one JSON file.",
    "report": "Render a summary for people to read.",
    "query": "Ask a summary a question in words.",
    "compare": "Compare two summaries: what changed, and why.",
    "track": "Judge a change: is the step slower?",
    "bundle": "Write everything about a change into one folder.",
    "experiment": "Run variants of a command in turn: which one is faster?",
    "bisect": "Find the commit that made the step slower.",
    "history": "Show trend, noise and changes of step times over time.",
    "publish": "Publish a summary to W&B.",
    "finish": "Finish what a training left of its captures.",
    "doctor": "Say what to change before the next capture.",
    "captures": "List the captures below a folder.",
    "events": "Write every device event into a table for SQL: Parquet, CSV or JSON lines.",
    "trace": "Open a capture in Perfetto, at a step or an op.",
    "fleet": "Compare many captures: who stands out, and how it developed.",
    "schema": "Print the JSON Schema of a summary.",
    "mcp": "Serve captures to agents (Model Context Protocol).",
    "skill": "Print how an agent makes a training faster with this.",
    "completion": "Print what makes a shell complete verbs, options and paths.",
}

FAILED, USAGE, INTERRUPTED = 1, 2, 130
# Set by a shell that asks for completions (cli/completion.py).
COMPLETING = "_MARIN_PROFILE_COMPLETE"


DEFAULT_VERB = "show"


class LazyGroup(click.Group):
    """Loads `marin_profile.cli.<verb>` when the verb is called; what is no verb is shown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"marin_profile.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS:
            _refuse_near_verb(ctx, args[0])
            args = [DEFAULT_VERB, *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs by the table, without loading them, and options; else a path, which is shown."""
        from click.shell_completion import CompletionItem

        verbs = [
            CompletionItem(verb, help=text)
            for verb, text in VERBS.items()
            if verb.startswith(incomplete)
        ]
        found = verbs + click.Command.shell_complete(self, ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _refuse_near_verb(ctx: click.Context, word: str) -> None:
    """A slip in a verb is no name of a profile, unless there is one of that name."""
    if os.path.exists(word) or not word.isalpha():
        return
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), VERBS, n=1, cutoff=0.7)
    if near:
        raise click.UsageError(f"There is no verb {word!r}; did you mean {near[0]!r}?", ctx)


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from marin_profile.version import package_version

        click.echo(f"marin-profile {package_version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="",
    subcommand_metavar="[VERB] [OPTIONS]...",
    epilog="'marin-profile DIR' shows the newest capture below a folder; 'marin-profile VERB "
    "--help' lists a verb's options.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """JAX profiles as one typed summary, and views of it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point; exits the process."""
    if COMPLETING in os.environ:
        from marin_profile.cli.completion import complete

        sys.exit(complete(os.environ[COMPLETING]))
    gc.disable()  # one command and gone: looking for cycles takes a tenth of its time
    skip_pydantic_plugins()
    code = run(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # Python would look for cycles once more at its end
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        with cli.make_context("marin-profile", list(arguments)) as context:
            cli.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. What is written at exit must find somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if "--debug" in arguments:
            import traceback

            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        sentence, exit_code = _explain(error)
        click.echo(f"error: {visible(' '.join(sentence.split()), None)}", err=True)
        return exit_code


def _explain(error: Exception) -> tuple[str, int]:
    """One sentence and the exit code for an error."""
    if isinstance(error, ProfileError):
        return str(error), error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" See '{context.command_path} --help'." if context else ""
        return error.format_message() + hint, error.exit_code
    if isinstance(error, MemoryError):
        return "Out of memory: capture fewer steps, or use a larger machine.", FAILED
    cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{cause} (this is a defect; --debug shows where)", FAILED


__all__ = ["VERBS", "cli", "main", "run"]
