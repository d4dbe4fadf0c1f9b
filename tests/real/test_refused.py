"""Files that are no JAX profile: one clear sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.errors import BrokenInputError
from real.captures import summarize


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("bad/utf8_damaged.xplane.pb", "damaged by a text conversion"),
        ("bad/catapult_demo.trace.json", "not a JAX profile"),
        ("foreign_pytorch/mi250_minitoy.json.gz", "PyTorch"),
        ("foreign_pytorch/large_integer.pt.trace.json.gz", "PyTorch"),
        ("bad/derived_tool_output", "overview_page"),
        ("foreign_pytorch", ""),
    ],
)
def test_refused_in_one_sentence(traces: Path, path, reason):
    with pytest.raises(BrokenInputError) as caught:
        summarize(traces / path)
    message = str(caught.value)
    assert reason in message
    assert "\n" not in message
