"""Loops under `marin_profile.profiler`: `python stepper_loops.py OUTDIR`.

Runs every scenario in this process, each with OUTDIR/NAME as its run folder, and writes
OUTDIR/results.json: what each returned, and its log lines.
"""

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp

from marin_profile import ProfilerConfig, Window, profiler

PRODUCTS = 3  # matrix products in a step


@jax.jit
def product(x):
    return x @ x / 1000.0


START = jnp.ones((256, 256))


def carried() -> Callable[[], object]:
    """Nobody waits for a step; each takes the results of the one before, whose buffers it gets."""
    donating = jax.jit(product, donate_argnums=0)
    now = START + 0

    def step():
        nonlocal now
        for _ in range(PRODUCTS):
            now = donating(now)

    return step


def dropped() -> None:
    """Nobody holds the results."""
    for _ in range(PRODUCTS):
        product(START)


def config(**settings) -> ProfilerConfig:
    return ProfilerConfig(**{"start_step": 3, "num_steps": 4, "ingest_in": "inline"} | settings)


def only_taken(**settings) -> ProfilerConfig:
    return config(ingest=False, **settings)


def taken(p) -> list[list]:
    return [[r.start_step, r.stop_step, r.trigger, str(r.state), r.planned_for] for r in p.records]


def plain(folder: Path) -> None:
    step = carried()
    with profiler(folder, config(), num_steps=12) as p:
        for i in range(12):
            step()
            p.step(i)


def drops_results(folder: Path) -> None:
    with profiler(folder, config()) as p:
        for _ in range(12):
            dropped()
            p.step()


def marked_itself(folder: Path, **options) -> None:
    with profiler(folder, config(), **options) as p:
        for i in range(12):
            with jax.profiler.StepTraceAnnotation("train", step_num=100 + i):
                dropped()
            p.step(i)


def marked_alone(folder: Path) -> None:
    marked_itself(folder, mark_steps=False)


def ends_inside(folder: Path) -> list:
    with profiler(folder, config(num_steps=25)) as p:
        for i in range(50):
            dropped()
            if i == 6:
                break
            p.step(i)
        held = p.profiler
    p.step(99)  # after the block: nothing
    return taken(held)


def raises(folder: Path) -> list:
    held = None
    step = carried()
    try:
        with profiler(folder, config(num_steps=25, ingest_in="subprocess")) as p:
            held = p.profiler
            for i in range(6):
                step()
                p.step(i)
            raise KeyError("mine")
    except KeyError:
        return taken(held)


def goes_on(folder: Path) -> list:
    """The next start of the run that raised."""
    folder = folder.with_name("raises")
    with profiler(folder, config(num_steps=25)) as p:
        held = p.profiler
        for i in range(200, 203):
            dropped()
            p.step(i)
    return taken(held)


def resumed(folder: Path) -> list:
    with profiler(folder, only_taken(num_steps=2, every=10)) as p:
        for i in range(5000, 5020):
            dropped()
            p.step(i)
        return taken(p.profiler)


def nested(folder: Path) -> list:
    with profiler(folder, only_taken(num_steps=2)) as p:
        with profiler(folder) as inner, profiler(folder.with_name("other")) as other:
            for i in range(8):
                dropped()
                p.step(i)
                inner.step(i)
                other.step(i)
        return [*taken(p.profiler), inner.profiler, other.profiler]


def off(folder: Path) -> list:
    with profiler(folder, ProfilerConfig(enabled=False)) as p:
        p.step(0)
        return [p.profiler, folder.exists()]


def other_process(folder: Path) -> list:
    with profiler(folder, ProfilerConfig(process_index=1)) as p:
        p.step(0)
        return [p.profiler, folder.exists()]


def stepped_until(p, wanted: int) -> Iterator[int]:
    """Steps, until so many captures are over."""
    deadline = time.monotonic() + 300
    i = 0
    while len(taken(p.profiler)) < wanted or p.profiler.is_tracing:
        assert time.monotonic() < deadline
        dropped()
        p.step(i)
        yield i
        i += 1


def on_demand(folder: Path) -> list:
    with profiler(folder, only_taken(start_step=1 << 40, triggered_steps=2)) as p:
        folder.mkdir()
        (folder / "profile_now").touch()
        for _ in stepped_until(p, 1):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in stepped_until(p, 2):
            pass
        return [one[2:4] for one in taken(p.profiler)]


def slow_step(folder: Path) -> list:
    wanted = only_taken(start_step=1 << 40, triggered_steps=2, anomaly_factor=20, max_anomalies=1)
    with profiler(folder, wanted) as p:
        for i in range(40):
            product(START).block_until_ready()
            time.sleep(3 if i == 30 else 0.001)
            p.step(i)
        return taken(p.profiler)


def broken_profiler(folder: Path) -> list:
    with profiler(folder, only_taken(windows=[Window(2, 1)])) as p:
        jax.profiler.start_trace(str(folder / "other"))
        for i in range(4):
            p.step(i)
        jax.profiler.stop_trace()
        return [one[3] for one in taken(p.profiler)]


SCENARIOS = [
    plain,
    drops_results,
    marked_itself,
    marked_alone,
    ends_inside,
    raises,
    goes_on,
    resumed,
    nested,
    off,
    other_process,
    on_demand,
    slow_step,
    broken_profiler,
]


@contextmanager
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"{record.levelname} {record.getMessage()}")
    logger = logging.getLogger("marin_profile")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def main(out: Path) -> None:
    dropped()
    results = {}
    for scenario in SCENARIOS:
        with logged() as lines:
            returned = scenario(out / scenario.__name__)
        results[scenario.__name__] = {"returned": returned, "log": lines}
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
