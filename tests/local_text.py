"""Local text and a tokenizer for it, so that train_lm needs no network; trainings on them."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

CONFIG = Path(__file__).parents[1] / "configs" / "train_lm_profile.yaml"
SPECIAL = ("<unk>", "<s>", "</s>")
WORDS = 200
DOCUMENTS = 200
DOCUMENT_WORDS = 100


def write_text(folder: Path) -> None:
    """`train.jsonl` and `tokenizer/` in the folder."""
    folder.mkdir(parents=True)
    rng = random.Random(0)
    texts = (
        " ".join(f"w{rng.randrange(WORDS)}" for _ in range(DOCUMENT_WORDS))
        for _ in range(DOCUMENTS)
    )
    (folder / "train.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    _write_tokenizer(folder / "tokenizer")


def _write_tokenizer(folder: Path) -> None:
    folder.mkdir()
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *(f"w{i}" for i in range(WORDS))])}
    special = [
        {"id": i, "content": word, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for i, word in enumerate(SPECIAL)
    ]
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIAL[0]},
    } | dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": SPECIAL[0],
        "bos_token": SPECIAL[1],
        "eos_token": SPECIAL[2],
        "model_max_length": 1024,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def start(folder: Path, config: Path, run_id: str, *flags: str) -> subprocess.Popen[str]:
    """A training in the folder, where `data/` holds the text."""
    command = [sys.executable, "-m", "marin_profile.levanter.train_lm"]
    command += ["--config_path", str(config), "--trainer.id", run_id, *flags]
    command += ["--data.cache_dir", f"cache/{run_id}"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


if __name__ == "__main__":
    write_text(Path(sys.argv[1]))
