"""Pairs of real Levanter trainings on the CPU with one flag between them, for `hlo_pairs.py`.

Each training has a process of its own. XLA writes what it compiled beside its captures.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from local_text import CONFIG, start, write_text

MODEL = (
    *("--model.num_layers", "4", "--model.max_seq_len", "64"),
    *("--trainer.train_batch_size", "16", "--trainer.num_train_steps", "8"),
)


@dataclass(frozen=True)
class Training:
    """A pair: the value of one flag before and after; the rest as a `hlo_pairs_cases.Case`."""

    name: str
    edit: str
    kind: str
    flag: str
    values: tuple[str, str]
    scope: str = ""
    before: str = ""
    after: str = ""
    also: tuple[str, ...] = ()


TRAININGS = (
    Training(
        "checkpointing",
        "gradient checkpointing off",
        "remat_off",
        "--model.gradient_checkpointing",
        ("true", "false"),
        before="rematted_computation",
    ),
    Training(
        "mlp",
        "an MLP of 128 hidden units -> 384",
        "shape",
        "--model.intermediate_dim",
        ("128", "384"),
        "LlamaMlp",
        before=r"[\[,]128[\],].*LlamaMlp",
        after=r"[\[,]384[\],].*LlamaMlp",
    ),
    Training(
        "activation",
        "silu -> gelu in the MLP",
        "op_replaced",
        "--model.activation_function",
        ("silu", "gelu_new"),
        "LlamaMlp",
        before=r"/jit\(silu\)/",
        after="LlamaMlp/tanh",
        also=("op_added", "op_removed"),
    ),
)


def train(one: Training, side: str, place: Path) -> None:
    """Captures in `place`, and what XLA compiled in `place`.hlo.txt."""
    data = place.parents[1] / "data"
    if not data.exists():
        write_text(data)
    place.mkdir(parents=True)
    value = one.values[side == "after"]
    dump = place / "compiled"
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={dump} --xla_dump_hlo_module_re=jit__train_step"
    child = start(data.parent, CONFIG, f"{side}_{place.name}", *MODEL, one.flag, value)
    output = child.communicate()[0]
    if child.returncode:
        sys.exit(f"{one.name}, {side}: the training failed\n{output[-4000:]}")
    texts = sorted(dump.glob("*jit__train_step*cpu_after_optimizations.txt"))
    Path(f"{place}.hlo.txt").write_text(texts[0].read_text())
    shutil.rmtree(dump)
    run = data.parent / "runs" / f"{side}_{place.name}"
    first = min((run / "profiler" / "plugins" / "profile").iterdir())
    shutil.copytree(first, place / "plugins" / "profile" / first.name)
