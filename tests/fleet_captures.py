"""A fleet of small captures on disk."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from builders_xspace import Space

START_NS = 1_767_323_045_000_000_000
DAY_NS = 86_400_000_000_000


def hours(number: int) -> str:
    """Where the capture lies in its run."""
    return f"plugins/profile/{date(2026, 1, 1) + timedelta(days=number):%Y_%m_%d}_03_04_05"


def run_space(host: str, *, step_us: int, day: int = 1, steps: int = 8) -> Space:
    """Steps of `step_us`, of which 80 % are an op."""
    space = Space(host)
    tpu = space.tpu(0, device_type_string="TPU v6 Lite")
    for step in range(steps):
        at = step_us * step
        tpu.step(step, at, step_us - 1).module("jit_train(7)", at, step_us - 2, run_id=step)
        tpu.op("dot.1", at, step_us * 4 // 5, category="convolution fusion")
    start = START_NS + day * DAY_NS
    space.environment(start, start + 1_000_000_000)
    return space


def write_fleet(root: Path, *, runs: int, slow: tuple[int, ...], broken: tuple[int, ...]) -> Path:
    """`runs` captures run-00, run-01, ... a day apart, of hosts h0, h1, h2 in turn. Steps take
    1000 to 1003 us, slow ones 1200."""
    for number in range(runs):
        step = 1200 if number in slow else 1000 + number % 4
        folder = root / f"run-{number:02}" / hours(number)
        path = folder / f"h{number % 3}.xplane.pb"
        run_space(f"h{number % 3}", step_us=step, day=number).write(path)
        if number in broken:
            path.write_bytes(b"\xff" * 64)
    return root
