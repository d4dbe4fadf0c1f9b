"""Small Levanter trainings under the profile callback: `python tiny_training.py OUTDIR NAME...`.

Runs the named scenarios one after the other in this process, each with OUTDIR/NAME as its log
folder, and writes OUTDIR/results.json: per scenario the finished steps and the log lines.
"""

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import haliax as hax
import jax
import numpy as np
from levanter.callbacks.watch import WatchConfig
from levanter.checkpoint import CheckpointerConfig
from levanter.data.dataset import ListAsyncDataset
from levanter.optim.config import AdamConfig
from levanter.tracker import NoopConfig
from levanter.tracker.tracker import Tracker, TrackerConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter import ProfilerConfig, Window, install

Features = hax.Axis("features", 16)
Outputs = Features.alias("outputs")
BATCH_SIZE = 4


class KeepingTracker(Tracker):
    """Keeps the artifacts in a folder, and says which."""

    name = "keeping"

    def __init__(self, broken: bool) -> None:
        self._broken = broken

    def log_artifact(self, artifact_path, *, name=None, type=None):
        if self._broken:
            raise ConnectionError("down")
        LOGGED.append([name, type, sorted(path.name for path in Path(artifact_path).rglob("*.*"))])

    def log_summary(self, metrics):
        LOGGED.append(sorted(key for key in metrics if key.startswith("profile/")))

    def log_hyperparameters(self, hparams):
        pass

    def log(self, metrics, *, step, commit=None):
        pass

    def finish(self):
        pass


LOGGED: list[list] = []


@dataclass(frozen=True)
class KeepingConfig(TrackerConfig):
    broken: bool = False

    def init(self, run_id):
        return KeepingTracker(self.broken)


@dataclass(frozen=True)
class Scenario:
    config: ProfilerConfig
    train_steps: int = 8
    batches: int | None = None  # the data ends after so many
    crash_at: int | None = None
    broken: str | None = None  # the function of jax.profiler that raises
    do: dict[int, Callable[[Path], object]] = field(default_factory=dict)  # after that step
    watch: bool = False
    evaluates_every: int = 1000
    tracker: TrackerConfig = field(default_factory=NoopConfig)


def profile(start_step: int = 3, num_steps: int = 3, **settings) -> ProfilerConfig:
    return ProfilerConfig(
        **({"ingest": False, "ingest_timeout": 600.0} | settings),
        start_step=start_step,
        num_steps=num_steps,
    )


def on_demand(**settings) -> ProfilerConfig:
    return profile(start_step=50, triggered_steps=2, **settings)


def touch(run_dir: Path) -> None:
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "profile_now").touch()
    time.sleep(1)  # longer than the callback takes to look


def block(folder: Path) -> None:
    """Puts a file where the folder should be."""
    folder.parent.mkdir(parents=True)
    folder.touch()


def terminate(run_dir: Path) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def other_profiler(out: Path) -> None:
    jax.profiler.start_trace(str(out / "other"))


def in_step(seconds: float) -> Callable[[Path], object]:
    """Makes the next step slow: it waits for its data."""
    return lambda _: SLEEPS.append(seconds)


SLEEPS: list[float] = []
EVALUATION_SECONDS = 2.0
WINDOWS = [Window(3, 2), Window(5, 1), Window(30, 2)]

SCENARIOS = {
    "logged": Scenario(profile(ingest=True), tracker=KeepingConfig()),
    "tracker_down": Scenario(profile(ingest=True), tracker=KeepingConfig(broken=True)),
    "windows": Scenario(profile(windows=WINDOWS), train_steps=10),
    "every": Scenario(profile(num_steps=2, every=4), train_steps=12),
    "inline": Scenario(profile(windows=WINDOWS[:2], ingest=True, ingest_in="inline")),
    "thread": Scenario(profile(ingest=True, ingest_in="thread")),
    "touched": Scenario(on_demand(), train_steps=12, do={4: touch, 8: touch}),
    "signalled": Scenario(
        on_demand(),
        do={4: lambda _: os.kill(os.getpid(), signal.SIGUSR2)},
    ),
    "slow_steps": Scenario(
        on_demand(anomaly_factor=20, max_anomalies=1),
        train_steps=30,
        do={14: in_step(1), 20: in_step(1)},
    ),
    "other_process": Scenario(profile(process_index=[1, 2])),
    "busy": Scenario(
        profile(windows=WINDOWS),
        train_steps=34,
        do={2: other_profiler, 8: lambda _: jax.profiler.stop_trace()},
    ),
    "no_folder": Scenario(profile(), do={2: lambda run_dir: block(run_dir / "profiler")}),
    "recompiles": Scenario(profile(num_steps=8), train_steps=12, watch=True),
    "too_early": Scenario(profile(start_step=1)),
    "ingested": Scenario(profile(ingest=True), train_steps=10),
    "clamped": Scenario(profile(num_steps=25), train_steps=6),
    "late": Scenario(profile(start_step=8)),
    "off": Scenario(profile(enabled=False)),
    "data_ends": Scenario(profile(num_steps=25), train_steps=20, batches=5),
    "data_ends_before": Scenario(profile(start_step=10), train_steps=20, batches=5),
    "start_raises": Scenario(profile(), broken="start_trace"),
    "stop_raises": Scenario(profile(), broken="stop_trace"),
    "terminated_in_capture": Scenario(profile(ingest=True), do={4: terminate}),
    "terminated_in_ingestion": Scenario(profile(ingest=True), train_steps=30, do={11: terminate}),
    "crash": Scenario(profile(num_steps=25), train_steps=20, crash_at=5),
    "crash_after": Scenario(profile(ingest=True), train_steps=20, crash_at=7),
    "in_the_middle": Scenario(profile(start_step=10, num_steps=8, ingest=True), train_steps=40),
    "evaluated": Scenario(
        profile(start_step=5, num_steps=8, ingest=True),
        train_steps=14,
        evaluates_every=8,
    ),
    "full_disk": Scenario(profile(ingest=True)),
    "read_only": Scenario(profile(ingest=True)),
}


def nap() -> None:
    if SLEEPS:
        time.sleep(SLEEPS.pop())


def loss_fn(model, batch, *, key=None):
    jax.debug.callback(nap)
    return hax.mean((model(batch) - batch.rename({"features": "outputs"})) ** 2)


def run(scenario: Scenario, out: Path) -> list[int]:
    trainer_config = TrainerConfig(
        id="run",
        log_dir=out,
        tracker=scenario.tracker,
        watch=WatchConfig() if scenario.watch else WatchConfig(watch_targets=[]),
        num_train_steps=scenario.train_steps,
        train_batch_size=BATCH_SIZE,
        steps_per_eval=scenario.evaluates_every,
        per_device_eval_parallelism=BATCH_SIZE // 2,
        checkpointer=CheckpointerConfig(base_path=str(out / "checkpoints")),
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    rows = np.random.default_rng(0).standard_normal((64, Features.size), dtype=np.float32)
    count = BATCH_SIZE * (scenario.batches or scenario.train_steps)
    data = ListAsyncDataset([hax.named(rows[i % len(rows)], Features) for i in range(count)])
    few = ListAsyncDataset([hax.named(row, Features) for row in rows[: 2 * BATCH_SIZE]])
    finished: list[int] = []

    def act(info):
        if len(finished) < 2 or finished[-1] != info.step:
            scenario.do.get(info.step, lambda _: None)(out / "run")

    def record(info):
        finished.append(info.step)
        if info.step == scenario.crash_at:
            raise RuntimeError("crash")

    optimizer = AdamConfig().build(scenario.train_steps)
    with Trainer(trainer_config, optimizer, loss_fn) as trainer:
        trainer.add_hook(act, every=1)
        install(trainer, scenario.config)
        trainer.add_hook(record, every=1)
        if scenario.evaluates_every < scenario.train_steps:
            evaluated = in_step(EVALUATION_SECONDS)
            trainer.add_hook(lambda info: evaluated(out), every=scenario.evaluates_every)
            trainer.add_eval_hook(few)
        state = trainer.initial_state(
            jax.random.PRNGKey(0),
            model_init=lambda: hax.nn.Linear.init(Features, Outputs, key=jax.random.PRNGKey(1)),
        )
        trainer.train(state, trainer.data_loader(data))
    return finished


def run_logged(name: str, out: Path) -> dict:
    scenario = SCENARIOS[name]
    lines: list[str] = []
    handler = logging.Handler()

    def emit(record: logging.LogRecord) -> None:
        lines.append(f"{record.levelname} {record.getMessage()}")
        print(lines[-1], file=sys.stderr, flush=True)

    handler.emit = emit
    logger = logging.getLogger("marin_profile")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        if scenario.broken is None:
            LOGGED.clear()
            return {"steps": run(scenario, out), "log": lines, "logged": [*LOGGED]}
        with mock.patch.object(jax.profiler, scenario.broken, side_effect=RuntimeError("broken")):
            return {"steps": run(scenario, out), "log": lines}
    finally:
        logger.removeHandler(handler)


def refused(scenario: Scenario, out: Path) -> dict:
    try:
        return {"steps": run(scenario, out)}
    except ValueError as error:
        return {"steps": [], "error": str(error)}


def main(out: Path, names: list[str]) -> None:
    results = {name: run_logged(name, out / name) for name in names if name != "too_early"}
    if "too_early" in names:
        results["too_early"] = refused(SCENARIOS["too_early"], out / "too_early")
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
