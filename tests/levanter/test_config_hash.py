"""The hash of real configs of train_lm: read as it reads them, without a training."""

import json
import os
import subprocess
import sys
from pathlib import Path

from needs import needs_levanter
from patience import PATIENCE

CONFIG = Path(__file__).parents[2] / "configs" / "train_lm_profile.yaml"
CODE = """
import json, sys
from types import SimpleNamespace
from levanter.main.train_lm import TrainLmConfig
from marin_profile.levanter.facts import training_hash
from marin_profile.levanter.entry import profiled_main

read_config = profiled_main("levanter.main.train_lm").read_config
wandb = ["--trainer.tracker", "{type: wandb, project: p, mode: offline}"]
flags = {
    "first": ["--trainer.id", "a"],
    "again": ["--trainer.id", "b", "--trainer.log_dir", "/x", "--data.cache_dir", "/y"],
    "profiled": ["--trainer.profiler.start_step", "9", "--trainer.profiler.windows", "[]"],
    "with_wandb": wandb,
    "rate": ["--optimizer.learning_rate", "0.002"],
    "model": ["--model.hidden_dim", "128"],
    "data": ["--data.train_weights", "{local: 0.5}"],
    "steps": ["--trainer.num_train_steps", "15"],
}
configs = {name: read_config(["--config_path", sys.argv[1], *f]) for name, f in flags.items()}
found = {name: training_hash(None, config) for name, config in configs.items()}
for name in ("first", "rate"):
    trainer = SimpleNamespace(config=configs[name].trainer)
    found[f"trainer_of_{name}"] = training_hash(trainer, None)
print(json.dumps(found))
"""


@needs_levanter
def test_repeats_are_alike_and_other_trainings_are_not(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", CODE, str(CONFIG)],
        cwd=tmp_path,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    found = json.loads(child.stdout.splitlines()[-1])
    alike = {found[name] for name in ("first", "again", "profiled", "with_wandb")}
    assert len(alike) == 1
    others = [found[name] for name in ("rate", "model", "data", "steps")]
    assert len(alike | {*others}) == 5
    # The trainer's config alone holds no learning rate.
    assert found["trainer_of_first"] == found["trainer_of_rate"]
