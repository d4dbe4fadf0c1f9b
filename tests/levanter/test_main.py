"""`python -m marin_profile.levanter.main MODULE`: which of Levanter's mains are profiled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.levanter.main import USAGE, main
from needs import needs_levanter
from patience import PATIENCE

MAINS = Path(__file__).with_name("mains.py")
# The main, the class of its config, and where the Trainer is named that it builds.
TRAINING = [
    ("train_lm", "TrainLmConfig", "train_lm"),
    ("train_dpo", "TrainDpoConfig", "train_dpo"),
    ("train_asr", "TrainASRConfig", "train_asr"),
    ("lora_lm", "LoraLmConfig", "lora_lm"),
    ("lora_dpo", "LoraDpoConfig", "train_dpo"),
]
OTHERS = (
    "eval_lm",
    "sample_lm",
    "perplexity_gap",
    "viz_logprobs",
    "export_hf_to_lm",
    "export_lm_to_hf",
    "model_init",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("mains")
    ask(folder)
    return json.loads((folder / "told.json").read_text())


def ask(folder: Path) -> None:
    names = [f"levanter.main.{name}" for name in (*(one for one, *_ in TRAINING), *OTHERS, "no")]
    child = subprocess.run(
        [sys.executable, str(MAINS), *names],
        env=os.environ | {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    (folder / "told.json").write_text(child.stdout.splitlines()[-1])


@needs_levanter
@pytest.mark.slow
@pytest.mark.parametrize(("name", "config", "where"), TRAINING)
def test_mains_that_train_get_our_trainer_and_our_settings(told, name, config, where):
    assert told[f"levanter.main.{name}"] == {
        "config": f"Profiled{config}",
        "modules": [f"levanter.main.{where}"],
        "steps": [7, 40],
        "while it runs": ["ProfiledTrainer"],
        "afterwards": ["Trainer"],
    }


@needs_levanter
@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_mains_that_do_not_train_are_refused_in_one_sentence(told, name):
    refusal = told[f"levanter.main.{name}"]["refused"]
    assert refusal.startswith(f"levanter.main.{name} has no main(config) that builds a Trainer")
    assert "marin_profile.profiler" in refusal


@needs_levanter
@pytest.mark.slow
def test_a_module_that_does_not_exist_is_named(told):
    assert told["levanter.main.no"]["refused"] == "There is no module levanter.main.no."


@pytest.mark.parametrize("arguments", [[], ["--config_path", "x.yaml"]])
def test_the_module_comes_first(arguments):
    with pytest.raises(SystemExit, match=USAGE.partition("[")[0]):
        main(arguments)
