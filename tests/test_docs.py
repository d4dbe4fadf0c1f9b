"""Generated pages are what the code says; links lead somewhere, command lines and YAML parse."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from marin_profile.cli import VERBS, cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_generated_pages_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_lead_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def blocks(page: Path, language: str | None = None) -> list[str]:
    """The fenced blocks of a page, of one language or of any, without what a list indents."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for _, named, text in found if language is None or named == language]


def command_lines(page: Path) -> list[str]:
    """Every `marin-profile ...` in a block; not those that show options in brackets."""
    joined = "".join(blocks(page)).replace("\\\n", " ")
    lines = [line.strip().removeprefix("- run: ") for line in joined.splitlines()]
    found = [line[line.find("marin-profile ") :] for line in lines if "marin-profile " in line]
    return [line for line in found if "[" not in line and "VERB" not in line]


def parse(line: str) -> str:
    """The verb of a command line whose options all exist and fit."""
    _, *words = shlex.split(line, comments=True)
    verb, command, arguments = cli.resolve_command(click.Context(cli), words)
    assert command is not None, line
    assert verb is not None, line
    command.make_context(verb, arguments)
    return verb


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_command_lines_parse(page: Path) -> None:
    for line in command_lines(page):
        assert parse(line) in VERBS


def test_the_recipes_use_what_they_are_about() -> None:
    used = {parse(line) for line in command_lines(ROOT / "docs/recipes.md")}
    assert used >= {"summarize", "report", "query", "bundle", "track", "history"}
    for broken in ("marin-profile bundel", "marin-profile track --befor x"):
        with pytest.raises((AssertionError, click.UsageError)):
            parse(broken)


def test_recipes_are_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    gate, main, cache = (yaml.safe_load(text) for text in blocks(ROOT / "docs/recipes.md", "yaml"))
    steps = gate["jobs"]["step-time"]["steps"]
    [judge] = [step["run"] for step in steps if step.get("name") == "Judge"]
    line = judge.replace("\\\n", " ")
    assert parse(line) == "bundle"
    assert line.count("--before-profile-dir") == line.count("--after-profile-dir") == 3
    [add] = [one["run"] for one in main["jobs"]["history"]["steps"] if one.get("name") == "Add"]
    assert parse(add.replace("\\\n", " ")) == "history"
    # Main's captures enter the history, those of pull requests do not.
    assert "--no-append" in line
    assert add.count("--add") == 3
    uses = [step["uses"] for step in cache["steps"]]
    assert uses == ["actions/cache/restore@v4", "actions/cache/save@v4"]
