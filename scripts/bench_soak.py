"""Many captures in one process: whether memory, threads, handles, children or files grow.

A loop of one small jitted step on the CPU captures adjacent windows (`every == num_steps`) of two
steps, with `keep_captures`, beside the same loop with bare start and stop of JAX's profiler; each
in a process of its own. At every tenth of the captures one line: resident memory (MB), threads,
open handles, children and zombies among them, files in the private temp folder, folders that still
hold the profiler's own files. `growth` is per capture, from the second tenth to the last one; that
of memory is the slope of a line through all tenths from the second on.
`--ingest-in off` takes captures only; `subprocess` is the default of ProfilerConfig and takes
about two seconds of processor time for each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

OURS, BARE = "profiler", "bare start/stop"
COLUMNS = ("rss_mb", "threads", "handles", "children", "zombies", "temp_files", "with_files")
TENTHS = 10
WINDOW = 2
START = 3
KEPT = 20
# The loop waits while more captures than that are not summarised: its steps are too short for it.
AT_ONCE = 8
SECONDS = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--captures", type=int, default=1000)
    parser.add_argument(
        "--ingest-in", choices=("subprocess", "thread", "off"), default="subprocess"
    )


def bench_soak(options: argparse.Namespace) -> None:
    for mode in (OURS, BARE):
        print_samples(mode, soaked(mode, options.captures, options.ingest_in))


def print_samples(mode: str, samples: list[dict[str, Any]]) -> None:
    print(f"{mode:16} " + " ".join(f"{name:>10}" for name in ("captures", *COLUMNS)))
    for sample in samples:
        figures = " ".join(f"{sample[name]:10g}" for name in ("captures", *COLUMNS))
        print(f"{'':16} {figures}", flush=True)
    growth = growth_of(samples)
    print(f"{'growth':27} " + " ".join(f"{growth[name]:10.3g}" for name in COLUMNS), flush=True)


def growth_of(samples: list[dict[str, Any]]) -> dict[str, float]:
    """Per capture."""
    steady = samples[1:-1]  # the last one is taken when all is over
    captures = [sample["captures"] for sample in steady]
    return {
        name: float(np.polyfit(captures, [sample[name] for sample in steady], 1)[0])
        for name in COLUMNS
    }


def soaked(mode: str, captures: int, ingest_in: str) -> list[dict[str, Any]]:
    """What the child saw at each tenth of its captures, and when all was over."""
    with tempfile.TemporaryDirectory() as folder:
        private = Path(folder) / "tmp"
        private.mkdir()
        command = [sys.executable, __file__, mode, folder, str(captures), ingest_in]
        environment = {"JAX_PLATFORMS": "cpu"} | os.environ | {"TMPDIR": str(private)}
        child = subprocess.run(command, env=environment, capture_output=True, text=True)
        if child.returncode:
            sys.exit(child.stderr)
        return json.loads((Path(folder) / "samples.json").read_text())


# The loop, in a child


def loop(mode: str, out: Path, captures: int, ingest_in: str) -> None:
    import time
    from datetime import datetime, timedelta

    import jax
    import jax.numpy as jnp

    step_of = jax.jit(lambda x: x * 0.5 + 1.0)
    state = step_of(jnp.ones(64))
    samples: list[dict[str, Any]] = []
    last_step = START + captures * WINDOW
    profiler = _profiler(out, ingest_in, last_step) if mode == OURS else None
    taken = 0
    first = datetime(2026, 1, 1)
    for step in range(last_step):
        while profiler is not None and ingest_in != "off" and _unfinished(profiler) > AT_ONCE:
            time.sleep(0.01)
        started = time.perf_counter()
        begins = profiler is None and step >= START and (step - START) % WINDOW == 0
        if begins:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            options.session_id = f"{first + timedelta(seconds=step):%Y_%m_%d_%H_%M_%S}"
            jax.profiler.start_trace(str(out / "bare"), profiler_options=options)
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            state = step_of(state)
            jax.block_until_ready(state)
        ends = step >= START and (step - START) % WINDOW == WINDOW - 1
        if profiler is not None:
            profiler.after_step(step, time.perf_counter() - started, state)
        elif ends:
            jax.profiler.stop_trace()
        taken += ends
        if ends and taken * TENTHS % captures < TENTHS:
            samples.append(_sample(out, taken))
    if profiler is not None:
        profiler.training_ended(state)
        profiler.close()
        records = profiler.records
        assert all(record.why is None for record in records), records
    samples.append(_sample(out, taken))
    (out / "samples.json").write_text(json.dumps(samples))


def _profiler(out: Path, ingest_in: str, last_step: int) -> Any:
    from marin_profile.profiling.config import ProfilerConfig
    from marin_profile.profiling.profiler import Profiler
    from marin_profile.profiling.run import Run

    config = ProfilerConfig(
        start_step=START,
        num_steps=WINDOW,
        every=WINDOW,
        keep_captures=KEPT,
        ingest=ingest_in != "off",
        ingest_in="subprocess" if ingest_in == "off" else ingest_in,
        ingest_timeout=SECONDS,
    )
    run = Run(run_id="soak", folder=out / "soak", num_steps=last_step)
    return Profiler(config, run)


def _unfinished(profiler: Any) -> int:
    return sum(1 for record in profiler.records if not record.is_over)


def _sample(out: Path, captures: int) -> dict[str, Any]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    states = _states_of_children()
    return {
        "captures": captures,
        "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
        "threads": int(status["Threads"]),
        "handles": len(os.listdir("/proc/self/fd")),
        "children": len(states),
        "zombies": states.count("Z"),
        "temp_files": sum(1 for path in (out / "tmp").rglob("*") if path.is_file()),
        "with_files": sum(1 for _ in out.rglob("*.xplane.pb")),
    }


def _states_of_children() -> list[str]:
    states = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            states.append(state)
    return states


if __name__ == "__main__":
    loop(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
