"""`marin-profile doctor`: a capture, or this machine -> what to change before the next capture."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, cache_option, emit, output_option

if TYPE_CHECKING:
    from marin_profile.facts.health import Check

FOUND_BAD = 1
NARROWEST, WIDEST = 60, 110
STATE, NAME = 9, 21


@click.command(cls=Verb, epilog="Example: marin-profile doctor runs/mine")
@click.argument("target", required=False, metavar="[TARGET]")
@click.option("--env", "of_machine", is_flag=True, help="Check this machine: versions, caches.")
@click.option(
    "--log-dir", metavar="DIR", help="With --env: is DIR writable, and how much is free there?"
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)
@cache_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    of_machine: bool,
    log_dir: str | None,
    output_format: str,
    use_cache: bool,
    output: str | None,
) -> None:
    """Say what to change before the next capture.

    TARGET is a summary, a profile, a folder above one, or a W&B run. Each check is ok, warn, bad or
    unknown, and says what to do. Exit code 1: something is bad.
    """
    if target is None and not of_machine:
        raise UsageError("Name a summary or profile, or ask with --env about this machine.")
    if log_dir is not None and not of_machine:
        raise UsageError("--log-dir goes with --env.")
    from marin_profile.facts.health import BAD, health
    from marin_profile.schema import canonical_json

    checks: list[Check] = []
    if target is not None:
        from marin_profile.cli.inputs import load_named

        checks += health(load_named(target, use_cache=use_cache))
    if of_machine:
        from marin_profile.cli.environment import environment

        checks += environment(log_dir)
    if output_format == "json":
        emit(canonical_json({"checks": [check.to_dict() for check in checks]}), output)
    else:
        emit("".join(f"{line}\n" for line in _lines(checks)), output)
    if any(check.state == BAD for check in checks):
        ctx.exit(FOUND_BAD)


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    width = min(max(shutil.get_terminal_size().columns - 1, NARROWEST), WIDEST)
    for check in checks:
        first = f"{check.state:<{STATE}}{check.check:<{NAME}}"
        yield from _wrapped(check.seen, width, first)
        yield from _wrapped(check.do, width, f"{'':<{STATE + NAME}}-> ")
    yield ""
    yield _total(checks)


def _wrapped(text: str, width: int, first: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _total(checks: Sequence[Check]) -> str:
    counts = {
        state: sum(check.state == state for check in checks)
        for state in ("bad", "warn", "unknown", "ok")
    }
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
