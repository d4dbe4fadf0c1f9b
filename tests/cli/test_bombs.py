"""What is made to exhaust a machine ends with an error, in little memory."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bombs.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bombs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bombs"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


bombs = load_script()


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("kind", list(bombs.BOMBS))
def test_a_bomb_is_refused_within_its_memory(tmp_path: Path, kind: str) -> None:
    found = bombs.outcome(kind, tmp_path)
    assert found.code == 4, found.said
    assert found.said.startswith("error: ")
    assert found.peak <= found.allowed
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize("kind", list(bombs.ODD_PROGRAMS))
def test_what_is_odd_in_a_program_is_left_out(tmp_path: Path, kind: str) -> None:
    found = bombs.outcome(kind, tmp_path)
    assert found.code == 0, found.said
    assert found.peak <= found.allowed
    (op,) = json.loads((tmp_path / "summary.json").read_text())["hot_ops"]
    assert (op["name"], op["category"]) == ("all-reduce.1", "all-reduce")


@pytest.mark.parametrize("kind", list(bombs.NO_FILES))
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    found = bombs.outcome(kind, tmp_path)
    assert (found.code, found.said.count("is a pipe or a device")) == (2, 1)
    assert found.peak <= found.allowed


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "code"), [("1,000,000 metadata names", 4), ("300,000 lines", 5)])
def test_names_and_lines_without_end_take_bounded_memory(
    tmp_path: Path, kind: str, code: int
) -> None:
    found = bombs.outcome(kind, tmp_path)
    assert found.code == code, found.said
    assert found.peak <= found.allowed
