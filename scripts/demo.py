"""From a training to answers: `python scripts/demo.py`, or with Levanter's flags.

Trains a small model with Levanter on the CPU, data parallel over eight forced host devices,
profiles a window of steps, lets the capture be summarised while training goes on, then prints the
head of the report, the answers to three questions, and what the W&B run holds. That run is kept
offline (WANDB_MODE=online uploads it). Needs no accelerator, account or network.
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("WANDB_DIR", "demo_out")  # W&B makes the folder `wandb` in it
os.environ.setdefault("WANDB_DATA_DIR", "demo_out/wandb")
os.environ.setdefault("WANDB_SILENT", "true")

import logging
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import equinox as eqx
import haliax as hax
import jax
import levanter.config
import levanter.trainer
import numpy as np
from haliax.jax_utils import named_call
from levanter.data.dataset import ListAsyncDataset
from levanter.optim.config import AdamConfig
from levanter.trainer import Trainer, TrainerConfig

from marin_profile.levanter import ProfilerConfig, install
from marin_profile.levanter.tracker import wandb_run

CONFIG = Path(__file__).parent.parent / "configs" / "demo.yaml"
PAGE = "profile_report.html"
WRITTEN = ("profile_summary.json", "profile_report.md", PAGE)
REPORT_LINES = 40
BLOCK = 32768
NEARLY_NOTHING = 1e-6
QUESTIONS = (
    "what are the top 5 ops by exclusive time?",
    "is communication or compute dominating, and which collective is worst?",
    "what should we try next?",
)


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int = 512
    features: int = 128
    hidden: int = 512
    blocks: int = 2
    sequence_length: int = 64
    # Deliberate changes for scripts/real_change.py; at 0 the program is as without them.
    slow_region_repeats: int = 0  # products more in mlp_up of block_0
    extra_psums: int = 0  # all-reduces more, one after the other

    @property
    def Vocab(self) -> hax.Axis:
        return hax.Axis("vocab", self.vocab_size)

    @property
    def Features(self) -> hax.Axis:
        return hax.Axis("features", self.features)

    @property
    def Hidden(self) -> hax.Axis:
        return hax.Axis("hidden", self.hidden)

    @property
    def Pos(self) -> hax.Axis:
        return hax.Axis("position", self.sequence_length)


@dataclass
class DemoConfig:
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    optimizer: AdamConfig = field(default_factory=AdamConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    profiler: ProfilerConfig = field(default_factory=ProfilerConfig)


class Block(eqx.Module):
    norm: hax.nn.LayerNorm
    up: hax.nn.Linear
    down: hax.nn.Linear
    repeats: int = eqx.field(static=True)

    @staticmethod
    def init(config: ModelConfig, key, repeats: int) -> "Block":
        up_key, down_key = jax.random.split(key)
        return Block(
            norm=hax.nn.LayerNorm.init(config.Features),
            up=hax.nn.Linear.init(config.Features, config.Hidden, key=up_key),
            down=hax.nn.Linear.init(config.Hidden, config.Features, key=down_key),
            repeats=repeats,
        )

    def __call__(self, x):
        with jax.named_scope("norm"):
            h = self.norm(x)
        with jax.named_scope("mlp_up"):
            if self.repeats:
                h = h + NEARLY_NOTHING * self._repeated(h)
            h = hax.nn.gelu(self.up(h))
        with jax.named_scope("mlp_down"):
            return x + self.down(h)

    def _repeated(self, h):
        """Each product needs the one before it, so that XLA can neither merge nor drop it; without
        gradients, which would bring all-reduces."""
        up = jax.tree.map(jax.lax.stop_gradient, self.up)

        def once_more(h, _):
            return h + NEARLY_NOTHING * hax.max(up(h), up.Out), None

        return jax.lax.scan(once_more, jax.lax.stop_gradient(h), length=self.repeats)[0]


class NextToken(eqx.Module):
    embedding: hax.nn.Embedding
    blocks: list[Block]
    head: hax.nn.Linear
    extra_psums: int = eqx.field(static=True)

    @staticmethod
    def init(config: ModelConfig, key) -> "NextToken":
        embed_key, head_key, *block_keys = jax.random.split(key, config.blocks + 2)
        return NextToken(
            embedding=hax.nn.Embedding.init(config.Vocab, config.Features, key=embed_key),
            blocks=[
                Block.init(config, k, config.slow_region_repeats if i == 0 else 0)
                for i, k in enumerate(block_keys)
            ],
            head=hax.nn.Linear.init(config.Features, config.Vocab, key=head_key),
            extra_psums=config.extra_psums,
        )

    @named_call
    def __call__(self, tokens):
        with jax.named_scope("embed"):
            x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            with jax.named_scope(f"block_{i}"):
                x = block(x)
        with jax.named_scope("head"):
            return self.head(x)


class Example(eqx.Module):
    tokens: hax.NamedArray
    targets: hax.NamedArray


def loss_fn(model: NextToken, batch: Example, *, key=None):
    logits = model(batch.tokens)
    Vocab = model.embedding.Vocab
    with jax.named_scope("loss"):
        targets = hax.nn.one_hot(batch.targets, Vocab, dtype=logits.dtype)
        loss = hax.nn.cross_entropy_loss(logits, Vocab, targets)
    if model.extra_psums:
        with jax.named_scope("extra_psums"):
            loss = loss + NEARLY_NOTHING * summed_often(logits.array, model.extra_psums)
    return loss


def summed_often(values: jax.Array, times: int) -> jax.Array:
    """Sums over the devices `times` times, each needing the one before and what a device holds
    itself, so that XLA can neither merge nor drop one."""
    by_device = jax.sharding.PartitionSpec("data")

    def on_device(own: jax.Array) -> jax.Array:
        def once_more(total, _):
            return jax.lax.pmean(total, "data") + NEARLY_NOTHING * own, None

        return jax.lax.scan(once_more, own, length=times)[0]

    summed = jax.shard_map(on_device, in_specs=by_device, out_specs=by_device)
    return jax.numpy.mean(summed(jax.lax.stop_gradient(values)))


def made_up_text(config: ModelConfig, count: int) -> list[Example]:
    """Sequences where most tokens follow from the one before, so that there is a loss to lower."""
    rng = np.random.default_rng(0)
    size = (count, config.sequence_length + 1)
    text = rng.integers(config.vocab_size, size=size, dtype=np.int32)
    follows = rng.random(size) < 0.9
    for i in range(config.sequence_length):
        text[:, i + 1] = np.where(
            follows[:, i], (3 * text[:, i] + 1) % config.vocab_size, text[:, i + 1]
        )
    return [
        Example(hax.named(row[:-1], config.Pos), hax.named(row[1:], config.Pos)) for row in text
    ]


@dataclass(frozen=True)
class Trained:
    """The folder that holds summary and report, and that of the W&B run, if there is one."""

    output_dir: Path
    offline_run: Path | None


def train(config: DemoConfig) -> Trained:
    """Train and profile."""
    levanter.trainer.initialize(config)
    optimizer = config.optimizer.build(config.trainer.num_train_steps)
    data = ListAsyncDataset(made_up_text(config.model, 128))
    losses: list[float] = []
    beside: list[int] = []
    with Trainer(config.trainer, optimizer, loss_fn) as trainer:
        callback = install(trainer, config.profiler, training_config=config)
        if callback is None:
            sys.exit("the profiler is off, or its window lies behind the last step")
        trainer.add_hook(lambda info: losses.append(info.loss), every=1)
        trainer.add_hook(
            lambda info: beside.append(info.step) if callback.profiler.ingesting else None, every=1
        )
        model_key, training_key = jax.random.split(jax.random.PRNGKey(config.trainer.seed))
        state = trainer.initial_state(
            training_key, model_init=lambda: NextToken.init(config.model, model_key)
        )
        trainer.train(state, cycle(trainer.data_loader(data)))
    run = wandb_run(trainer.tracker)
    offline_run = Path(run.dir).parent if run is not None and run.offline else None
    trainer.tracker.finish()
    heading(
        f"trained {config.trainer.num_train_steps} steps, loss {losses[0]:.2f} -> {losses[-1]:.2f}"
    )
    heading(f"{len(beside)} training steps ran while the profile was being summarised")
    return Trained(callback.profiler.output_dir, offline_run)


def artifacts_of(offline_run: Path) -> list[tuple[str, str]]:
    """(type, name) of each artifact that an offline run holds, as `wandb sync` will find them."""
    from wandb.proto.wandb_internal_pb2 import Record

    (log,) = offline_run.glob("*.wandb")
    records = [Record.FromString(data) for data in records_in(log.read_bytes())]
    return sorted((r.artifact.type, r.artifact.name) for r in records if r.HasField("artifact"))


def records_in(log: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log: blocks of 32 KiB; a record may be cut into several pieces, each
    after its checksum (4 bytes), length (2) and kind (1: whole, 2: first, 3: middle, 4: last)."""
    at, record = 7, b""  # after W&B's own header
    while at + 7 <= len(log):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        record += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def show(output_dir: Path) -> None:
    summary, report = output_dir / "profile_summary.json", output_dir / "profile_report.md"
    heading(f"{report}, first {REPORT_LINES} lines:")
    print("\n".join(report.read_text().splitlines()[:REPORT_LINES]))
    for question in QUESTIONS:
        heading(question)
        query = [sys.executable, "-m", "marin_profile", "query", "--summary", str(summary)]
        subprocess.run([*query, "--question", question], check=True)


def heading(line: str) -> None:
    print(f"\n== {line}", flush=True)


def main() -> None:
    arguments = sys.argv[1:] or ["--config_path", str(CONFIG)]
    started = time.time()
    trained = levanter.config.main(args=arguments)(train)()
    output_dir = trained.output_dir
    missing = [
        path
        for name in WRITTEN
        if not (path := output_dir / name).exists() or path.stat().st_mtime < started
    ]
    if missing:
        sys.exit(f"not written: {', '.join(map(str, missing))}; the log above says why")
    show(output_dir)
    if trained.offline_run is not None:
        heading(f"the W&B run in {trained.offline_run} (upload it with wandb sync) holds")
        for kind, name in artifacts_of(trained.offline_run):
            print(f"{kind:16} {name}")
    heading(f"done in {time.time() - started:.0f} s; everything is in {output_dir}/")
    heading("the page, for a browser:")
    print(output_dir / PAGE)


if __name__ == "__main__":
    logging.getLogger("marin_profile").setLevel(logging.INFO)
    main()
