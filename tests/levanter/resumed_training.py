"""A Levanter training of 5,000 steps that is not profiled, and its next start, which is:
`python resumed_training.py OUT`. OUT/told.json holds the steps that the second one's hooks saw, and
its log lines."""

import json
import logging
import os
import sys
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

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
from patience import PATIENCE

Features = hax.Axis("features", 4)
Outputs = Features.alias("outputs")
STEPS, MORE = 5_000, 20


def loss_fn(model, batch, *, key=None):
    return hax.mean((model(batch) - batch.rename({"features": "outputs"})) ** 2)


def train(out: Path, num_steps: int, profiler: ProfilerConfig | None) -> list[int]:
    config = TrainerConfig(
        id="run",
        log_dir=out,
        tracker=NoopConfig(),
        watch=WatchConfig(watch_targets=[]),
        num_train_steps=num_steps,
        train_batch_size=1,
        checkpointer=CheckpointerConfig(
            base_path=str(out / "checkpoints"), save_interval=None, keep=[{"every": STEPS}]
        ),
        log_jaxprs=False,
        log_xla_hlo=False,
        require_accelerator=False,
    )
    row = hax.named(np.ones(Features.size, dtype=np.float32), Features)
    seen: list[int] = []
    with Trainer(config, AdamConfig().build(num_steps), loss_fn) as trainer:
        trainer.add_hook(lambda info: seen.append(int(info.step)), every=1)
        if profiler is not None:
            install(trainer, profiler)
        state = trainer.initial_state(
            jax.random.PRNGKey(0),
            model_init=lambda: hax.nn.Linear.init(Features, Outputs, key=jax.random.PRNGKey(1)),
        )
        trainer.train(state, trainer.data_loader(ListAsyncDataset([row] * num_steps)))
    return seen


def wait_for_checkpoint(out: Path) -> None:
    """Levanter writes the last checkpoint beside what follows the training."""
    last_possible = time.monotonic() + PATIENCE
    while not list(out.glob(f"checkpoints/run/step-{STEPS - 1}/metadata.json")):
        if time.monotonic() > last_possible:
            sys.exit("no checkpoint of the last step")
        time.sleep(0.05)


def main(out: Path) -> None:
    train(out, STEPS, None)
    wait_for_checkpoint(out)
    log: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: log.append(record.getMessage())
    logger = logging.getLogger("marin_profile")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    profiler = ProfilerConfig(start_step=5, num_steps=6, ingest_timeout=PATIENCE)
    seen = train(out, STEPS + MORE, profiler)
    (out / "told.json").write_text(json.dumps({"steps": seen, "log": log}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
