"""Signs of life while a profile is read: what it will take, and that it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from marin_profile.capture.formats import format_named
from marin_profile.capture.sources import Capture
from marin_profile.cli.options import note

# From this size on there is a note before the work starts.
LARGE_BYTES = 500_000_000
QUIET_SECONDS = 4.0


@contextmanager
def working_on(capture: Capture) -> Iterator[None]:
    """Notes on stderr: for large files at once, for others once the work takes long."""
    size = sum(host.size for host in capture.hosts)
    if size >= LARGE_BYTES:
        memory = max(
            host.size * format_named(host.format).memory_per_byte for host in capture.hosts
        )
        note(f"reading {size / 1e9:.1f} GB; this takes about {memory / 1e9:.1f} GB of memory.")
    timer = threading.Timer(QUIET_SECONDS, _still_working, [size])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _still_working(size: int) -> None:
    note(f"still reading {size / 1e6:.1f} MB; the first run on a machine also compiles its loops.")
