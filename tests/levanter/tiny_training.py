"""Small Levanter trainings under the profile callback: `python tiny_training.py OUTDIR NAME...`.

Runs the named scenarios one after the other in this process, each with OUTDIR/NAME as its log
folder, and writes OUTDIR/results.json: per scenario the finished steps and the log lines.
"""

import json
import logging
import os
import sys
from dataclasses import dataclass
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
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter import ProfilerConfig, install

Features = hax.Axis("features", 16)
Outputs = Features.alias("outputs")
BATCH_SIZE = 4


@dataclass(frozen=True)
class Scenario:
    config: ProfilerConfig
    train_steps: int = 8
    batches: int | None = None  # the data ends after so many
    crash_at: int | None = None
    broken: str | None = None  # the function of jax.profiler that raises


def profile(start_step: int = 3, num_steps: int = 3, **settings) -> ProfilerConfig:
    return ProfilerConfig(
        **({"ingest": False} | settings), start_step=start_step, num_steps=num_steps
    )


SCENARIOS = {
    "ingested": Scenario(profile(ingest=True), train_steps=10),
    "clamped": Scenario(profile(num_steps=25), train_steps=6),
    "late": Scenario(profile(start_step=8)),
    "off": Scenario(profile(enabled=False)),
    "data_ends": Scenario(profile(num_steps=25), train_steps=20, batches=5),
    "data_ends_before": Scenario(profile(start_step=10), train_steps=20, batches=5),
    "start_raises": Scenario(profile(), broken="start_trace"),
    "stop_raises": Scenario(profile(), broken="stop_trace"),
    "crash": Scenario(profile(num_steps=25), train_steps=20, crash_at=5),
}


def loss_fn(model, batch, *, key=None):
    return hax.mean((model(batch) - batch.rename({"features": "outputs"})) ** 2)


def run(scenario: Scenario, out: Path) -> list[int]:
    trainer_config = TrainerConfig(
        id="run",
        log_dir=out,
        tracker=NoopConfig(),
        watch=WatchConfig(watch_targets=[]),
        num_train_steps=scenario.train_steps,
        train_batch_size=BATCH_SIZE,
        checkpointer=CheckpointerConfig(base_path=str(out / "checkpoints")),
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    rows = np.random.default_rng(0).standard_normal((64, Features.size), dtype=np.float32)
    count = BATCH_SIZE * (scenario.batches or scenario.train_steps)
    data = ListAsyncDataset([hax.named(rows[i % len(rows)], Features) for i in range(count)])
    finished: list[int] = []

    def record(info):
        finished.append(info.step)
        if info.step == scenario.crash_at:
            raise RuntimeError("crash")

    optimizer = AdamConfig().build(scenario.train_steps)
    with Trainer(trainer_config, optimizer, loss_fn) as trainer:
        install(trainer, scenario.config)
        trainer.add_hook(record, every=1)
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
    handler.emit = lambda record: lines.append(f"{record.levelname} {record.getMessage()}")
    logger = logging.getLogger("marin_profile")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        if scenario.broken is None:
            return {"steps": run(scenario, out), "log": lines}
        with mock.patch.object(jax.profiler, scenario.broken, side_effect=RuntimeError("broken")):
            return {"steps": run(scenario, out), "log": lines}
    finally:
        logger.removeHandler(handler)
        if scenario.broken == "stop_trace":
            jax.profiler.stop_trace()


def main(out: Path, names: list[str]) -> None:
    results = {name: run_logged(name, out / name) for name in names}
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
