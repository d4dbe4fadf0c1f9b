"""README and docs as tests read them: their blocks, links, and the command lines in both."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from marin_profile.cli import cli

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")
# Where a line of a block may begin with something else than the command.
_BEFORE = re.compile(r"""^(?:- run: |[A-Z_]+=\S+ |eval "\$\()""")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str | None = None) -> list[str]:
    """The fenced blocks of a page, of one language or of any, without what a list indents."""
    found = _BLOCK.findall(page.read_text())
    return [
        re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
        for indent, named, text in found
        if language is None or named == language
    ]


def inline_code(page: Path) -> list[str]:
    return [" ".join(text.split()) for text in _INLINE.findall(_BLOCK.sub("", page.read_text()))]


def lines(page: Path) -> list[str]:
    """Every line of a block, those that a backslash continues in one, and all inline code."""
    joined = "".join(blocks(page)).replace("\\\n", " ")
    found = [_BEFORE.sub("", line.strip()) for line in joined.splitlines()]
    return [*found, *inline_code(page)]


def command_lines(page: Path) -> list[str]:
    """Every `marin-profile VERB ...`, or `marin-profile DIR`; not those that show options in
    brackets, a part that the reader fills in, or nothing but a verb."""
    return [
        line
        for line in lines(page)
        if (
            line.startswith("marin-profile ")
            and not re.search(r"\[(?!\w+\])|VERB|<|^marin-profile \w+$|\.\.\.", line)
        )
        or line in ("marin-profile DIR", "marin-profile skill")
    ]


def words(line: str) -> list[str]:
    """The arguments of a command line, without what becomes of its output."""
    line = re.sub(r"\s(?:>|\|)\s.*$", "", line)
    return shlex.split(line.removesuffix(')"'), comments=True)[1:]


def parse(line: str) -> str:
    """The verb of a command line whose options all exist and fit."""
    verb, command, arguments = cli.resolve_command(click.Context(cli), words(line))
    assert command is not None, line
    assert verb is not None, line
    command.make_context(verb, arguments)
    return verb


def examples(verb: str) -> list[str]:
    """The command lines below a verb's help."""
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    return [line.strip() for line in (command.epilog or "").partition(":")[2].split(";")]
