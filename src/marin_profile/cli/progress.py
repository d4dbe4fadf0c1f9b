"""Signs of life while a profile is fetched or read: what it will take, and how far it is.

Contract: all goes to stderr. A terminal gets a bar once the work takes longer than BAR_SECONDS,
which is gone when it ends; nothing else gets one, but a note after QUIET_SECONDS. rich is imported
when a bar is drawn.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from marin_profile.base.progress import Work, watched
from marin_profile.base.text import size, visible
from marin_profile.capture.formats import format_named
from marin_profile.capture.sources import Capture
from marin_profile.cli.options import note

# From this size on there is a note before the work starts.
LARGE_BYTES = 500_000_000
QUIET_SECONDS = 4.0
BAR_SECONDS = 1.0
TICK_SECONDS = 0.1


@contextmanager
def working_on(capture: Capture) -> Iterator[None]:
    """While a capture is read: a note at once if it is large; then a bar, or a note."""
    total = sum(host.size for host in capture.hosts)
    if total >= LARGE_BYTES:
        memory = max(
            host.size * format_named(host.format).memory_per_byte for host in capture.hosts
        )
        note(f"reading {total / 1e9:.1f} GB; this takes about {memory / 1e9:.1f} GB of memory.")
    if sys.stderr.isatty():
        with _bar():
            yield
    else:
        with _note_after(
            f"still reading {total / 1e6:.1f} MB; the first run on a machine also "
            "compiles its loops."
        ):
            yield


@contextmanager
def fetching() -> Iterator[None]:
    """While something is looked up and downloaded: a bar, on a terminal."""
    if sys.stderr.isatty():
        with _bar():
            yield
    else:
        yield


@contextmanager
def _note_after(text: str) -> Iterator[None]:
    timer = threading.Timer(QUIET_SECONDS, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _bar() -> Iterator[None]:
    over = threading.Event()
    with watched() as work:
        drawing = threading.Thread(target=_draw, args=(work, over), daemon=True)
        drawing.start()
        try:
            yield
        finally:
            over.set()
            drawing.join()


def _draw(work: Work, over: threading.Event) -> None:
    if over.wait(BAR_SECONDS):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[come]}", markup=False),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
    ) as progress:
        task = progress.add_task("", total=None, come="")
        while True:
            done = _done(work)
            progress.update(
                task,
                description=visible(work.what) or "working",
                total=work.size or None,
                completed=done,
                come=_come(work, done),
                refresh=True,
            )
            if over.wait(TICK_SECONDS):
                return


def _done(work: Work) -> int:
    done = work.done if work.look is None else work.look()
    return min(done, work.size) if work.size else done


def _come(work: Work, done: int) -> str:
    """How far it has come: "3.1 of 9.0 MB, 1,200,000 events"."""
    parts = []
    if work.size:
        parts.append(f"{size(done)} of {size(work.size)}")
    elif done:
        parts.append(size(done))
    if work.events:
        parts.append(f"{work.events:,} events")
    return ", ".join(parts)
