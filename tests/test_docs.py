"""Generated pages are what the code says; links lead somewhere; code, figures and messages that
pages quote are there."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

import marin_profile
from doc_pages import DOCS, PAGES, ROOT, blocks, command_lines, lines, name_of, parse
from marin_profile.cli import VERBS

SITE = re.compile(r"""(?:src|href|srcset)=["']?(https?:)?//""")


def test_generated_pages_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# links


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_each_page_is_listed_once() -> None:
    listed = re.findall(r"^\| \[(\S+)\]\((\S+)\)", (DOCS / "README.md").read_text(), re.MULTILINE)
    assert all(shown == target for shown, target in listed)
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert sorted(target for _, target in listed) == sorted(pages)


def test_pictures_load_nothing() -> None:
    for picture in DOCS.rglob("*.svg"):
        tree = ElementTree.fromstring(picture.read_text())
        assert not [one for one in tree.iter() if one.tag.endswith(("script", "image", "use"))]
        assert "http" not in picture.read_text().replace("http://www.w3.org/2000/svg", "")


def test_the_site_builds_with_every_link_and_loads_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
            *("-d", str(tmp_path / "state"), str(DOCS), str(tmp_path / "site")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(PAGES) - 1
    for page in pages:
        loads = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text())
        assert not [one for one in loads if SITE.search(one)], page.name


# commands


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_parse(page: Path) -> None:
    for line in command_lines(page):
        assert parse(line) in VERBS


def test_what_does_not_fit_the_command_line_is_found() -> None:
    used = {
        parse(line)
        for page in ("recipes", "start/loop")
        for line in command_lines(DOCS / f"{page}.md")
    }
    assert used >= {"summarize", "query", "bundle", "track", "history"}
    for broken in ("marin-profile bundel", "marin-profile track --befor x"):
        with pytest.raises((AssertionError, click.UsageError)):
            parse(broken)


def others(page: Path, start: str) -> list[list[str]]:
    """The words of other command lines, without comments."""
    found = [line for line in lines(page) if line.startswith(start)]
    return [line.partition(" #")[0].removeprefix(start).split() for line in found]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_other_commands_are_there(page: Path) -> None:
    targets = re.findall(r"^([\w\-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target, *_ in others(page, "make "):
        assert target.rstrip(";,") in targets, target
    for script, *_ in others(page, "python scripts/"):
        assert (ROOT / "scripts" / script).exists(), script
    for module, *_ in others(page, "python -m "):
        assert importlib.util.find_spec(module), module
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in (word for line in others(page, "pip install ") for word in line):
        name, _, extra = wanted.strip("'\"").rstrip("]").partition("[")
        if name == project["name"]:
            assert not extra or extra in project["optional-dependencies"], wanted


def test_the_demo_writes_what_the_readme_opens() -> None:
    config = (ROOT / "configs" / "demo.yaml").read_text()
    folder = [re.search(rf"^  {name}: (\S+)$", config, re.MULTILINE) for name in ("log_dir", "id")]
    where = "/".join(found[1] for found in folder if found)
    assert f"{where}/profile_report.html" in (ROOT / "README.md").read_text()


def test_recipes_are_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    gate, main, cache = (yaml.safe_load(text) for text in blocks(DOCS / "recipes.md", "yaml"))
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


# code


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of what code takes from this package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("marin_profile"):
            yield from ((node.module or "", one.name) for one in node.names)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "marin_profile":
            yield "marin_profile", node.attr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_and_json_blocks_are_sound(page: Path) -> None:
    for text in blocks(page, "json"):
        json.loads(text)
    for text in blocks(page, "python"):
        for module, name in imported(ast.parse(text)):
            if module == "marin_profile":
                assert name in dir(marin_profile), name
            else:
                assert importlib.util.find_spec(module), module


# figures and messages


def test_figures_of_the_comparison_are_the_scoreboards() -> None:
    page, scoreboard = ((DOCS / name).read_text() for name in ("comparison.md", "scoreboard.md"))
    rows = re.findall(r"^(\| \S.*\|) \S+ \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for row in rows:
        assert row in scoreboard, row
    told = re.search(r"69 questions in people's words over 6 captures, 311 cells", page)
    assert told
    for part in ("69 questions in people's words", "over 6 captures: 311 cells"):
        assert part in scoreboard
    causes = re.search(
        r"Right in all captures: (\d+ of \d+) cases. "
        r"The ceiling holds in (\d+), is undecided in (\d+).",
        (DOCS / "known_causes.md").read_text(),
    )
    assert causes
    right, holds, undecided = causes.groups()
    told = " ".join(page.split())
    assert f"in all captures of {right} cases" in told
    assert f"holds in {holds}, is undecided in {undecided} " in told


def said_by_the_code() -> list[str]:
    """Every text of the package, with \\0 where a value is put in."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    one.value if isinstance(one, ast.Constant) else "\0" for one in node.values
                )
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_messages_that_are_explained_are_the_codes() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(messages) >= 30
    said = said_by_the_code()
    for message in messages:
        pattern = re.compile(
            ".*".join(re.escape(part.strip()) for part in message.split("...")), re.DOTALL
        )
        assert any(pattern.search(text) for text in said), message
