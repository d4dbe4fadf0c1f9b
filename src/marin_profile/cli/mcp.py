"""`marin-profile mcp`: captures below folders, for agents."""

from __future__ import annotations

import gc
import signal

import click

from marin_profile.base.errors import UsageError
from marin_profile.cli.options import Verb, cache_option


@click.command(cls=Verb, epilog="Example: marin-profile mcp --root runs")
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    multiple=True,
    required=True,
    help="Serve the captures below this folder, and nothing else; repeatable.",
)
@cache_option
def command(roots: tuple[str, ...], use_cache: bool) -> None:
    """Serve captures to an agent over the Model Context Protocol, on stdin and stdout.

    Agents list, ask and compare; they cannot run, write, publish or fetch anything.
    """
    gc.enable()  # this one does not end after one command
    from marin_profile.cache import cache_folder
    from marin_profile.mcp.roots import Roots
    from marin_profile.mcp.tools import Service

    service = Service(Roots(roots), cache_folder() if use_cache else None)
    try:
        from marin_profile.mcp.server import serve
    except ImportError as error:
        raise UsageError(
            "The SDK of MCP is not installed: pip install 'marin-profile[mcp]'."
        ) from error
    # The SDK waits for stdin in a thread that an interrupt does not reach; nothing is half done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(service)
