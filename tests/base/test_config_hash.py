"""What counts as the same training."""

from copy import deepcopy

import pytest

from marin_profile.base.config_hash import config_hash

CONFIG = {
    "data": {
        "tokenizer": "/home/a/data/tokenizer",
        "cache_dir": "/home/a/cache",
        "components": {"web": {"source": {"id": "org/web", "train_urls": ["gs://b/web.jsonl"]}}},
    },
    "model": {"type": "llama", "hidden_dim": 64},
    "optimizer": {"type": "adam", "learning_rate": 0.001},
    "trainer": {
        "id": "first",
        "seed": 0,
        "num_train_steps": 14,
        "log_dir": "runs",
        "checkpointer": {"base_path": "runs/checkpoints", "save_interval": "15m"},
        "tracker": {"type": "noop"},
        "profiler": {"start_step": 5},
        "distributed": {"process_id": None},
    },
    "hf_save_path": None,
}


def changed(path: str, value) -> dict:
    config = deepcopy(CONFIG)
    *above, last = path.split(".")
    inner = config
    for key in above:
        inner = inner[key]
    inner[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("trainer.id", "second"),
        ("trainer.log_dir", "/elsewhere"),
        ("trainer.checkpointer.base_path", "/elsewhere"),
        ("trainer.tracker", {"type": "wandb", "project": "p"}),
        ("trainer.profiler", {"start_step": 50, "upload": "never"}),
        ("trainer.distributed", {"process_id": 3}),
        ("data.cache_dir", "gs://cache"),
        ("data.tokenizer", "/tmp/b/tokenizer"),
        ("hf_save_path", "gs://b/hf"),
        ("git_commit", "abc"),
        ("run_id", "first"),
        ("id", "first"),
    ],
)
def test_what_differs_between_repeats_does_not_count(path, value):
    assert config_hash(changed(path, value)) == config_hash(CONFIG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("optimizer.learning_rate", 0.002),
        ("model.hidden_dim", 128),
        ("model.type", "gpt2"),
        ("data.components.web.source.id", "org/other"),
        ("data.components.web.source.train_urls", ["gs://b/other.jsonl"]),
        ("data.tokenizer", "/home/a/data/other"),
        ("trainer.seed", 1),
        ("trainer.checkpointer.save_interval", "5m"),
        ("train_seq_len", 64),
    ],
)
def test_what_is_trained_counts(path, value):
    assert config_hash(changed(path, value)) != config_hash(CONFIG)


def test_neither_order_nor_what_w_and_b_makes_of_a_config_counts():
    assert config_hash({"b": 1, "a": {"d": 2, "c": 3}}) == config_hash(
        {"a": {"c": 3, "d": 2}, "b": 1}
    )
    kept = {"a": 1, "b": [2], "c": {"e": 0.5}}
    assert config_hash({"a": 1.0, "b": (2.0,), "c": {"d": {}, "e": 0.5}}) == config_hash(kept)
    # By hand: the sha256 of "{}".
    assert config_hash({}) == "44136fa355b3678a"
