"""`marin-profile trace`: a capture's trace in Perfetto, at a step or an op."""

from __future__ import annotations

import gc

import click

from marin_profile.base.startup import ready_to_read
from marin_profile.base.text import visible
from marin_profile.cli.inputs import capture_named
from marin_profile.cli.options import Verb, emit, note


@click.command(cls=Verb, epilog="Example: marin-profile trace runs/mine --step 7")
@click.argument("target", metavar="TARGET")
@click.option("--step", metavar="N", type=int, help="Show this step, by its number.")
@click.option(
    "--op", metavar="NAME", help="Show the longest execution of this op (with --step: in it)."
)
@click.option("--host", metavar="NAME", help="The host's trace; default: the first host's.")
@click.option("--open", "opens", is_flag=True, help="Open the link in this machine's browser.")
def command(target: str, step: int | None, op: str | None, host: str | None, opens: bool) -> None:
    """Open a capture's trace JSON in Perfetto (ui.perfetto.dev), at a step or an op.

    Prints the link, and serves that one file on 127.0.0.1:9001 to Perfetto's page until it was
    fetched, or until Ctrl-C. The trace goes into the page in your browser and nowhere else.
    """
    gc.enable()  # this one may wait for long
    ready_to_read()
    from marin_profile import perfetto

    capture = capture_named(target)
    file = perfetto.trace_file(capture, host)
    if host is None and len(capture.hosts) > 1:
        note(f"{file.host} of {len(capture.hosts)} hosts; --host names another.")
    place = None
    if step is not None or op is not None:
        place = perfetto.place_of(file, step=step, op=op)
        note(place.what)
    with perfetto.TraceServer(file.path, perfetto.PORT) as server:
        link = server.link(place)
        emit(f"{link}\n", None)
        note(f"serving {visible(file.path, None)} until Perfetto has fetched it; Ctrl-C ends.")
        if opens:
            import webbrowser

            webbrowser.open(link)
        server.wait()
