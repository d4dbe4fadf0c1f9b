"""What a step outside all windows costs: microseconds a call, late in a run of many windows.

The hook of a Levanter training and the stepper of a loop, at step 400,000 with a window of 5 steps
every 30 (those steps are left out), against a hook that reads the step's number and duration, as
any does. Each call has a step number of its own on the device, as in training. Medians of rounds
that take turns.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FIRST = 400_000
EVERY, WINDOW = 30, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=9)


def bench_step(options: argparse.Namespace) -> None:
    import jax.numpy as jnp
    from levanter.callbacks import StepInfo

    from marin_profile.levanter import ProfilerConfig
    from marin_profile.levanter.callback import ProfileCallback
    from marin_profile.profiling.profiler import Profiler
    from marin_profile.profiling.run import Run

    logging.disable(logging.CRITICAL)
    config = ProfilerConfig(start_step=5, num_steps=WINDOW, every=EVERY, ingest=False)
    with tempfile.TemporaryDirectory() as folder:
        run = Run("bench", Path(folder))
        profiler = Profiler(config, run)
        hook = ProfileCallback(profiler, SimpleNamespace(_cmanagers=[]))
        steps = [
            step
            for step in range(FIRST, FIRST + options.steps)
            if (step + 1 - config.start_step) % EVERY >= WINDOW
        ]
        hook.on_step(_info(StepInfo, jnp, FIRST - 1))  # it makes the schedule

        def bare(info: Any) -> None:
            _ = info.step, info.step_duration

        costs: dict[str, list[float]] = {"bare": [], "ours": [], "bare, read": [], "ours, read": []}
        for turn in range(options.rounds):
            order = [("bare", bare), ("ours", hook.on_step)]
            for name, call in order if turn % 2 else reversed(order):
                infos = [_info(StepInfo, jnp, step) for step in steps]
                costs[name].append(_cost(call, infos))
                costs[f"{name}, read"].append(_cost(call, infos))
        profiler.close(wait=False)
    print(f"{'us a step':34} {'bare hook':>9} {'ours':>6} {'over':>6}")
    for title, mark in (
        ("step number still on the device", ""),
        ("read by a hook before", ", read"),
    ):
        theirs, ours = (statistics.median(costs[f"{name}{mark}"]) for name in ("bare", "ours"))
        print(f"{title:34} {theirs:9.2f} {ours:6.2f} {ours - theirs:+6.2f}")


def _info(kind: Any, jnp: Any, step: int) -> Any:
    return kind(SimpleNamespace(step=jnp.array(step + 1).block_until_ready()), 0.0, 0.05)


def _cost(hook: Callable[[Any], object], infos: list[Any]) -> float:
    """Microseconds a call."""
    since = time.perf_counter()
    for info in infos:
        hook(info)
    return 1e6 * (time.perf_counter() - since) / len(infos)
