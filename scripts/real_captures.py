"""Captures of the demo model, each summarised once, some beside a noisy neighbour."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo_captures import KEPT_STEPS, is_taken, processes, take_capture

from marin_profile import load_summary, summarize
from marin_profile.schema import ProfileSummary

# About as long as a training of KEPT_STEPS on two busy cores.
RAMP_S = 15.0
_SLICE_S = 0.1


@dataclass(frozen=True)
class Neighbour:
    """A process for each core, busy for this share of the time at the start of the training, and
    RAMP_S later."""

    first: float = 0.0
    last: float = 0.0


def summary_of(
    folder: Path,
    *flags: str,
    kept_steps: int = KEPT_STEPS,
    neighbour: Neighbour | None = None,
) -> ProfileSummary:
    """Of the capture in `folder`, which is taken unless it is there."""
    kept = folder / "profile_summary.json"
    if not (is_taken(folder) and kept.exists()):
        started = time.monotonic()
        with _beside(neighbour):
            profiles = take_capture(folder, *flags, kept_steps=kept_steps)
        kept.write_text(summarize(str(profiles)).to_json())
        seconds = time.monotonic() - started
        print(f"{folder.name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return load_summary(str(kept))


@contextmanager
def _beside(neighbour: Neighbour | None) -> Iterator[None]:
    if neighbour is None:
        yield
        return
    spinners = [
        processes().Process(target=_spin, args=(neighbour,), daemon=True)
        for _ in range(os.cpu_count() or 1)
    ]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.terminate()
            spinner.join()


def _spin(neighbour: Neighbour) -> None:
    started = time.monotonic()
    while True:
        now = time.monotonic()
        passed = min(1.0, (now - started) / RAMP_S)
        busy = neighbour.first + (neighbour.last - neighbour.first) * passed
        while time.monotonic() < now + busy * _SLICE_S:
            pass
        time.sleep((1.0 - busy) * _SLICE_S)
