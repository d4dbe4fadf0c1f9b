"""A real refactor on the CPU, captured in turn four times a side: what is told from noise?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.comparison import compare
from marin_profile.comparison.model import Comparison
from real.captures import summarize

MAKE_REFACTOR = Path(__file__).parents[1] / "make_refactor.py"
CAPTURES = 4

pytestmark = [pytest.mark.long, pytest.mark.timed]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Comparison:
    folder = tmp_path_factory.mktemp("refactor")
    sides: dict[str, list] = {"before": [], "after": []}
    for at in range(CAPTURES):
        for side, summaries in sides.items():
            made = folder / f"{side}{at}"
            subprocess.run([sys.executable, MAKE_REFACTOR, made, side], check=True)
            summaries.append(summarize(made))
    return compare(sides["before"], sides["after"], top_k=1000)


def test_scopes_are_followed(found):
    assert [(one.before, one.after) for one in found.attribution.renames] == [
        ("jit(train_step)", "jit(train_step_v2)"),
        ("jit(train_step)=>blocks", "jit(train_step_v2)=>layers"),
    ]
    assert found.attribution.ops.matches["renamed"] > 10
    assert {"exact", "renumbered"}.isdisjoint(
        row.match for row in found.attribution.ops.rows if row.before_op and row.before_op.scope
    )


def test_the_recomputation_stands_first_and_most_else_is_noise(found):
    """Ops that one side only has are what recomputing adds and saves. Of some forty that both have,
    two or three save less for the backward pass and are told; on a busy machine a few more are."""
    told = [row for row in found.attribution.ops.rows if not row.noise]
    first = told[0].after_op
    assert (told[0].match, first.pass_) == ("only_after", "recompute")
    assert first.scope == "jit(train_step_v2)/layers/up/dot_general"
    of_both = [row for row in told if row.before_op and row.after_op]
    assert len(of_both) < found.attribution.ops.noise_rows / 2
    assert found.attribution.ops.noise_rows > 20
