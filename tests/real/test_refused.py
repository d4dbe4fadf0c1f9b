"""Files that are no JAX profile: one clear sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_profile.base.errors import BrokenInputError
from marin_profile.cli import run
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


@pytest.mark.parametrize(
    ("path", "exit_code"),
    [
        ("cpu_host_only", 5),
        ("bad", 4),
        ("bad/derived_tool_output", 4),
        ("foreign_pytorch", 4),
        ("gpu_mi300x_conv", 0),
        ("nowhere", 3),
    ],
)
def test_exit_codes_of_the_command(traces: Path, tmp_path, capsys, path, exit_code):
    output = tmp_path / "summary.json"
    command = ["summarize", "--profile-dir", str(traces / path), "--output", str(output)]
    assert run(command) == exit_code
    assert output.exists() == (exit_code == 0)
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (exit_code != 0)
