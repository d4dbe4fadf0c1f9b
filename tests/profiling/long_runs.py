"""Loops of one small step under the Profiler, for test_long_runs: `python long_runs.py OUTDIR`.

OUTDIR/results.json then holds, per scenario, the log lines and the states of the captures.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.profiler import Profiler
from marin_profile.profiling.run import Run

STEP = jax.jit(lambda x: x + 1.0)
QUICK, SLOW = 0.001, 1.0  # what a step is said to have taken
PATIENCE = 600.0


class Loop:
    def __init__(self, out: Path, config: ProfilerConfig, num_steps: int = 100) -> None:
        self.profiler = Profiler(config, Run(run_id="run", folder=out, num_steps=num_steps))
        self.beside = self.profiler._keeper.beside
        self._step = 0

    def steps(self, count: int, seconds: float = QUICK) -> None:
        for _ in range(count):
            with jax.profiler.StepTraceAnnotation("train", step_num=self._step):
                state = jax.block_until_ready(STEP(jnp.ones(8)))
            self.profiler.after_step(self._step, seconds, state)
            self._step += 1

    def until(self, condition) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def published(self) -> int:
        return sum(record.state == "published" for record in self.profiler.records)

    def end(self) -> list[str]:
        self.profiler.training_ended()
        self.profiler.close()
        return [str(record.state) for record in self.profiler.records]


def config(**settings) -> ProfilerConfig:
    return ProfilerConfig(
        **({"start_step": 2, "num_steps": 2, "ingest_timeout": PATIENCE} | settings)
    )


def size_limit(out: Path) -> list[str]:
    loop = Loop(out, config(every=4, max_capture_gb=1e-9, ingest=False))
    loop.steps(4)
    loop.until(lambda: loop.beside.why_not)
    loop.steps(5)
    return loop.end()


def disk_floor(out: Path) -> list[str]:
    loop = Loop(out, config(min_free_disk_gb=1e9, ingest=False))
    loop.until(lambda: loop.beside.why_not)
    loop.steps(6)
    return loop.end()


def kept(out: Path) -> list[str]:
    loop = Loop(out, config(every=8, keep_captures=1, ingest_in="thread"))
    for count, steps in ((1, 10), (2, 8), (3, 7)):
        loop.steps(steps)
        loop.until(lambda count=count: loop.published() >= count)
    return loop.end()


def adjacent(out: Path) -> list[str]:
    """The second window is taken while the first capture waits, the fourth while it is summarised:
    then it is held open until that is begun."""
    loop = Loop(out, config(every=2, ingest_in="thread"), num_steps=12)
    loop.steps(9)
    loop.until(lambda: loop.beside.num_ingestions)
    loop.steps(1)
    loop.until(lambda: loop.published() >= 1)
    loop.steps(2)
    return loop.end()


def anomalies(out: Path) -> list[str]:
    """One slow step while a limit holds, two without it: the second is the one that counts."""
    loop = Loop(
        out,
        config(start_step=90, anomaly_factor=5.0, max_anomalies=1, triggered_steps=1, ingest=False),
    )
    loop.steps(20)
    loop.beside.why_not = "no room"
    loop.steps(1, SLOW)
    loop.until(lambda: loop.beside.why_not is None or loop.profiler._keeper._look())
    loop.beside.why_not = None
    loop.steps(5)
    loop.steps(1, SLOW)
    loop.steps(5)
    loop.steps(1, SLOW)
    loop.steps(5)
    return loop.end()


def ends_at_start(out: Path) -> list[str]:
    loop = Loop(out, config())
    loop.steps(2)
    return loop.end()


SCENARIOS = (ends_at_start, size_limit, disk_floor, kept, adjacent, anomalies)


def main(out: Path) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"{record.levelname} {record.getMessage()}")
    logger = logging.getLogger("marin_profile")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    results = {}
    for scenario in SCENARIOS:
        lines.clear()
        states = scenario(out / scenario.__name__)
        results[scenario.__name__] = {"states": states, "log": [*lines]}
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
