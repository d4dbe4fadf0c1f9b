"""The recipe for agents: one text, in the package and in the documentation."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from marin_profile.cli import run
from marin_profile.mcp.tools import TOOL_NAMES

RECIPE = files("marin_profile.mcp").joinpath("recipe.md").read_text("utf-8")
PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")


def test_the_page_ends_with_the_recipe() -> None:
    assert PAGE.endswith(RECIPE.replace("# ", "### ", 1))


def test_the_verb_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill"]) == 0
    assert capsys.readouterr().out == RECIPE


def test_it_names_tools_that_there_are() -> None:
    named = {name for line in re.findall(r"Tools?: ([^.]*)\.", RECIPE) for name in
             re.findall(r"`(\w+)`", line)}  # fmt: skip
    assert named == set(TOOL_NAMES)
    assert all(f"| `{name}` |" in PAGE for name in TOOL_NAMES)
