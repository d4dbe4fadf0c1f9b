"""What is made to exhaust a machine ends with an error, in little memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bombs.py"


def script():
    spec = importlib.util.spec_from_file_location("bombs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.parametrize("kind", list(script().BOMBS))
def test_a_bomb_is_refused_within_its_memory(tmp_path: Path, kind: str) -> None:
    bombs = script()
    found = bombs.outcome(kind, tmp_path)
    assert found.code == 4, found.said
    assert found.said.startswith("error: ")
    assert found.peak <= found.allowed
    assert not (tmp_path / "summary.json").exists()
