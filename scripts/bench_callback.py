"""What a training notices of its callback: step time while a capture is summarised, and blocking.

A small Levanter training (on the CPU, unless JAX_PLATFORMS says otherwise) captures windows with
Python frames in them, so that captures are large, and trains on while they are summarised; quiet
stretches lie between. Per mode of ingestion, from one run each:
  beside    median step while a capture is summarised, over the median of the other steps
  blocked   the longest call of the callback, less what JAX's own start_trace and stop_trace took
`counting` is what any work beside training costs on this machine: nothing is ingested, a process
counts for as long instead, at the priority that ingestion has. It is 1.00 where processors are
free; where two of them are threads of one core, no priority brings it there.
`--end`, instead: how long the end of training waits for one summary (of the real TPU v6e capture
below MARIN_PROFILE_TRACES, begun when training ends), as this user, as another one that may not
raise a priority (for root alone, by setpriv), and by a process that never rests.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COUNTING = "counting"
MODES = ("subprocess", "thread", COUNTING)
START = 40
# Steps that are not looked at: the first ones compile, a process that counts has to start.
COMPILING, STARTING = 10, 5
COUNT = """
from marin_profile.profiling.worker import yield_to_training
yield_to_training()
while True: pass
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=300_000, help="at least, in each capture")
    parser.add_argument("--captures", type=int, default=4)
    parser.add_argument("--every", type=int, default=500, help="steps from capture to capture")
    parser.add_argument("--window", type=int, default=8, help="steps to profile in each")
    parser.add_argument("--end", action="store_true", help="how long the end of training waits")
    parser.add_argument("--end-repeat", dest="repeat", type=int, default=5, help="times, for --end")
    parser.add_argument("--frames-per-step", type=int, default=2000)


def bench_callback(options: argparse.Namespace) -> None:
    if options.end:
        bench_end(options.repeat)
        return
    print(
        f"{'beside it':12} {'events':>9} {'quiet ms':>9} {'beside ms':>9} {'ratio':>6} "
        f"{'steps':>5} {'ingest s':>8} {'stop_trace s':>12} {'blocked ms':>10}",
        flush=True,
    )
    for mode in MODES:
        result = _train(mode, options)
        quiet, beside = result["quiet"], result["beside"]
        middle, other = statistics.median(quiet), statistics.median(beside)
        events, seconds = "-", "-"
        if mode != COUNTING:
            events, seconds = f"{result['events']:,}", f"{sum(beside) / options.captures:.1f}"
        print(
            f"{mode:12} {events:>9} {middle * 1e3:9.1f} {other * 1e3:9.1f} {other / middle:6.3f} "
            f"{len(beside):5} {seconds:>8} {result['stop_trace']:12.2f} "
            f"{result['blocked'] * 1e3:10.1f}",
            flush=True,
        )
        if mode != COUNTING and result["events"] < options.events:
            sys.exit(
                f"the capture has fewer than {options.events:,} events: raise --frames-per-step"
            )


NEVER_RESTS = """
import sys
from marin_profile.profiling import worker
worker.FEW_PROCESSORS = 0
sys.exit(worker.main(sys.argv[2:]))
"""
# An interpreter below root's home must be found.
CAPABILITIES = "-all,+dac_read_search"
OTHER_USER = (
    *("setpriv", "--reuid", "65534", "--clear-groups"),
    *(f"--inh-caps={CAPABILITIES}", f"--ambient-caps={CAPABILITIES}"),
)
ENDS = {"never rests": (), "this user": (), "other user": OTHER_USER}


def bench_end(repeat: int) -> None:
    traces = os.environ.get("MARIN_PROFILE_TRACES")
    if not traces:
        sys.exit("MARIN_PROFILE_TRACES names no folder with real profiles")
    (capture,) = Path(traces, "tpu_v6e_4dev", "plugins", "profile").iterdir()
    print(f"{'the end waits for':18} {'median s':>8}  all")
    for mode, prefix in ENDS.items():
        if prefix and os.geteuid() != 0:
            continue
        seconds = [_end(mode, prefix, capture) for _ in range(repeat + 1)][1:]  # compiled by then
        listed = " ".join(f"{one:.2f}" for one in seconds)
        print(f"{mode:18} {statistics.median(seconds):8.2f}  {listed}", flush=True)


def _end(mode: str, prefix: tuple[str, ...], capture: Path) -> float:
    cache = Path(tempfile.gettempdir(), f"marin-profile-numba-{mode.replace(' ', '-')}")
    cache.mkdir(exist_ok=True)
    cache.chmod(0o777)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        command = [*prefix, sys.executable, __file__, "end", mode, folder, str(capture)]
        child = subprocess.run(
            command,
            env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
            capture_output=True,
            text=True,
            cwd=folder,
        )
        if child.returncode:
            sys.exit(child.stderr)
        return float(child.stdout)


def wait_at_the_end(mode: str, out: Path, capture: Path) -> None:
    """In a child: the seconds that one summary takes once training waits for it."""
    import time

    from marin_profile.profiling import ingestion
    from marin_profile.profiling.job import Job

    if mode == "never rests":
        ingestion._SAFE_PYTHON = (sys.executable, "-P", "-c", NEVER_RESTS)
    jobs = ingestion.Ingestions("subprocess", ingestion.Limits(600, 32))
    started = time.perf_counter()
    jobs.hurry()
    jobs.add(Job(capture, out / "summary"))
    while not (ended := jobs.advance()):
        time.sleep(0.01)
    if ended[0].reason is not None:
        sys.exit(ended[0].reason)
    print(time.perf_counter() - started)


def _train(mode: str, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        numbers = (options.captures, options.every, options.window, options.frames_per_step)
        command = [sys.executable, __file__, mode, folder, *map(str, numbers)]
        environment = {"JAX_PLATFORMS": "cpu"} | os.environ
        environment |= {
            "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
            "WANDB_MODE": "disabled",
        }
        child = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
        if child.returncode:
            sys.exit(child.stderr)
        return json.loads((Path(folder) / "result.json").read_text())


# The training, in a child


def train(mode: str, out: Path, captures: int, every: int, window: int, frames: int) -> None:
    import time
    from itertools import cycle

    import demo
    import jax
    import levanter.trainer
    from levanter.callbacks import StepInfo
    from levanter.data.dataset import ListAsyncDataset
    from levanter.optim.config import AdamConfig
    from levanter.tracker import NoopConfig
    from levanter.trainer import Trainer, TrainerConfig

    from marin_profile import load_summary
    from marin_profile.capture.context import read_context
    from marin_profile.levanter import ProfileOptions, ProfilerConfig, install

    steps = captures * every
    trainer_config = TrainerConfig(
        id="bench",
        log_dir=out,
        tracker=NoopConfig(),
        num_train_steps=steps,
        train_batch_size=32,
        load_checkpoint=False,
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    config = demo.DemoConfig(trainer=trainer_config, optimizer=AdamConfig())
    levanter.trainer.initialize(config)
    profiler = ProfilerConfig(
        start_step=START,
        num_steps=window,
        every=every,
        ingest=mode != COUNTING,
        ingest_in="subprocess" if mode == COUNTING else mode,
        profile_options=ProfileOptions(python_tracer_level=1),
    )
    data = ListAsyncDataset(demo.made_up_text(config.model, 128))
    with Trainer(trainer_config, config.optimizer.build(steps), demo.loss_fn) as trainer:
        callback = install(trainer, profiler)
        assert callback is not None
        calls: list[tuple[int, float]] = []
        ours = callback.on_step

        def timed(info: StepInfo, force: bool = False) -> None:
            jax.block_until_ready(info.state)
            started = time.perf_counter()
            ours(info, force)
            if not force:
                calls.append((info.step, time.perf_counter() - started))

        callback.on_step = timed
        if mode == COUNTING:
            trainer.add_hook(Counting(START + window, every), every=1)
        trainer.add_hook(lambda info: frames_made(frames), every=1)
        state = trainer.initial_state(
            jax.random.PRNGKey(0),
            model_init=lambda: demo.NextToken.init(config.model, jax.random.PRNGKey(1)),
        )
        trainer.train(state, cycle(trainer.data_loader(data)))
    folders = sorted((out / "bench" / "profiler" / "plugins" / "profile").iterdir())
    assert len(folders) == captures
    contexts = [read_context(str(folder / "profile_context.json")) for folder in folders]
    own: dict[int, float] = {}
    for context in contexts:
        assert context is not None
        first, *_, last = context.window.steps
        own |= {
            first - 1: context.profiler.start_trace_seconds,
            last: context.profiler.stop_trace_seconds,
        }
    outside = contexts[-1].outside
    quiet = [
        pair for pair in zip(outside.steps, outside.seconds, strict=True) if pair[0] >= COMPILING
    ]
    if mode == COUNTING:
        count = Counting(START + window, every)
        events = 0
        beside = [seconds for step, seconds in quiet if count.is_steady(step)]
        quiet = [pair for pair in quiet if not count.covers(pair[0])]
    else:
        summaries = [load_summary(str(folder / "profile_summary.json")) for folder in folders]
        events = min(summary.trace_overview.num_events_total for summary in summaries)
        beside = contexts[-1].outside_while_ingesting.seconds
    result = {
        "events": events,
        "quiet": [seconds for _, seconds in quiet],
        "beside": beside,
        "stop_trace": statistics.median(c.profiler.stop_trace_seconds for c in contexts),
        "blocked": max(seconds - own.get(step, 0.0) for step, seconds in calls),
    }
    (out / "result.json").write_text(json.dumps(result))


class Counting:
    """A hook: between two captures a process that only counts runs for half of the steps."""

    def __init__(self, first: int, every: int) -> None:
        self._first, self._every = first, every
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, info: Any) -> None:
        if self.covers(info.next_step) and self._process is None:
            command = [sys.executable, "-c", COUNT]
            self._process = subprocess.Popen(command, process_group=0)
        elif not self.covers(info.next_step) and self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def covers(self, step: int) -> bool:
        return self._after_capture(step) < self._every // 2

    def is_steady(self, step: int) -> bool:
        return STARTING <= self._after_capture(step) < self._every // 2

    def _after_capture(self, step: int) -> int:
        return (step - self._first) % self._every


def frames_made(count: int) -> None:
    """Python frames for the tracer, outside the step that is timed."""
    for _ in range(count):
        _frame()


def _frame() -> None:
    pass


if __name__ == "__main__":
    if sys.argv[1] == "end":
        wait_at_the_end(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        sys.exit()
    train(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
