"""Bounds on waiting that hold on a machine which is busy with other things."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

# How long anything may take that takes seconds when the machine is idle.
PATIENCE = 600.0  # seconds


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running_with(*words: str) -> list[int]:
    """The processes whose command line holds all of `words`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(int(process.name))
    return found
