"""Captures as the callback leaves them, small and made by hand."""

from __future__ import annotations

from pathlib import Path

from builders_xspace import Space
from marin_profile.capture.context import Judgement, ProfileContext, ProfilerCost, StepSeconds
from marin_profile.capture.filenames import CONTEXT_FILE

SECOND_NS = 1_000_000_000
STARTED_NS = 1_700_000_000 * SECOND_NS
NOTHING = StepSeconds([], [], None, None)


def space(host: str, *, step_us: int = 80, steps: int = 4) -> Space:
    """Steps 100 us apart, with one op of `step_us` each."""
    made = Space(host)
    tpu = made.tpu(0, device_type_string="TPU v6 Lite")
    for step in range(steps):
        at = 100 * step
        tpu.step(step, at, 99).module("jit_step(7)", at, step_us, run_id=step)
        tpu.op("dot.1", at, step_us, category="convolution fusion")
    return made


def context(index: int = 0, count: int = 1, after_seconds: float = 0) -> ProfileContext:
    start = STARTED_NS + int(after_seconds * SECOND_NS)
    return ProfileContext(
        run_id="run",
        process_index=index,
        process_count=count,
        capturing=list(range(count)),
        trigger="planned",
        profiler=ProfilerCost(start, start + SECOND_NS, 0.25, 0.5),
        judgement=Judgement(True, 1.02, 9, 0.0001, "alike"),
        window=NOTHING,
        outside=NOTHING,
        outside_while_ingesting=NOTHING,
    )


def leave_capture(
    root: Path,
    *,
    host: str = "h",
    stamp: str = "2026_01_02_03_04_05",
    step_us: int = 80,
    note: ProfileContext | None = None,
) -> Path:
    """The session folder of a capture below `root`."""
    folder = root / "plugins" / "profile" / stamp
    folder.mkdir(parents=True)
    space(host, step_us=step_us).write(folder / f"{host}.xplane.pb")
    (folder / CONTEXT_FILE).write_bytes((note or context()).to_json())
    return folder
