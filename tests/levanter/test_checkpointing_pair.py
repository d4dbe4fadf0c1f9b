"""A real Levanter model with checkpointed blocks and without: what memory changed at the peak."""

from pathlib import Path

import pytest

from local_text import CONFIG, start, write_text
from marin_profile import Comparison, compare, summarize
from needs import needs_levanter
from patience import PATIENCE

pytestmark = [needs_levanter, pytest.mark.long]

# Wide enough that the activations of the blocks, not the weights, make the peak.
MODEL = (
    *("--model.num_layers", "4", "--model.max_seq_len", "64"),
    *("--trainer.train_batch_size", "16", "--trainer.num_train_steps", "8"),
)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> Comparison:
    folder = tmp_path_factory.mktemp("checkpointing")
    write_text(folder / "data")
    children = {
        name: start(folder, CONFIG, name, *MODEL, "--model.gradient_checkpointing", flag)
        for name, flag in (("again", "true"), ("kept", "false"))
    }
    for child in children.values():
        output = child.communicate(timeout=PATIENCE)[0]
        assert child.returncode == 0, output[-4000:]
    return compare(*(one_capture(folder / "runs" / name) for name in children))


def one_capture(run: Path):
    (first, *_) = sorted(run.glob("profiler/plugins/profile/*"))
    return summarize(first)


def test_what_blocks_keep_is_the_change_of_the_peak(comparison):
    memory = comparison.memory
    assert memory is not None
    assert memory.is_complete
    assert memory.delta_size == memory.after_size - memory.before_size > 0
    assert sum(row.delta_size for row in memory.rows) + memory.others_size == memory.delta_size
    again = [row for row in memory.rows if row.pass_ == "recompute"]
    assert len(again) >= 3
    assert all(row.before_size and row.after_size is None for row in again)
    (forward,) = (
        row
        for row in memory.rows
        if row.pass_ == "forward" and (row.scope or "").endswith("/scan(layer)")
    )
    assert forward.delta_size > 0
