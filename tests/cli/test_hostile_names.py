"""Names that would move a cursor, open a tag, turn text around or start a formula: harmless in
every view, on a terminal too, and unchanged in JSON that goes to a file."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.schema import ProfileSummary, parse_summary

Call = Callable[..., Any]

NAMES = [
    "\x1b[2J\x1b]0;title\x07",
    "</td><script>alert(1)</script>",
    "a|b`c`\n# heading\n- [x](javascript:alert(1))",
    '=HYPERLINK("http://x")',
    "\u202egnp.exe\u2066",
    "nul\0del\x7fcsi\x9b31m",
    "../../etc/passwd",
    "line\u2028paragraph\u2029\r\n",
    "\U000e0041\ufeff\u200b",
]
# What a terminal acts on or does not show; a line's end is the views' own.
ACTS = re.compile(
    "[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


# Texts that the program reads as well.
READ = {
    *("generated_at_utc", "source_format", "start", "stop", "basis", "window"),
    *("list_basis", "duration_basis", "category", "kind", "collective", "pass", "source"),
    *("trace_sha256", "config_hash", "step_class", "classes", "certainty"),
}


def renamed(value: Any, name: str, kept: Set[str]) -> Any:
    """Every text, and key of a map by name, with the name behind it."""
    if isinstance(value, dict):
        return {
            key + (name if "-" in key else ""): item
            if key in {"schema_version", *kept}
            else renamed(item, name, kept)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [renamed(item, name, kept) for item in value]
    return value + name if isinstance(value, str) else value


@pytest.fixture(params=range(len(NAMES)), ids=[ascii(name)[:24] for name in NAMES])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A name that stands in the texts of a.json and b.json of this folder, but for those that the
    program reads, and in all of all.json."""
    name = NAMES[request.param]
    data = json.loads(build_summary().to_json())
    for file, suffix, kept in (("a", name, READ), ("b", f"{name} ", READ), ("all", name, set())):
        (tmp_path / f"{file}.json").write_text(json.dumps(renamed(data, suffix, kept)))
    return name


def views(folder: Path) -> dict[str, list[str]]:
    one, two = f"{folder}/a.json", f"{folder}/b.json"
    sides = ["--before", one, "--after", two]
    history = ["history", "--history", f"{folder}/h.jsonl"]
    questions = ("top 5 ops", "step time", "where does the time go", "collectives", "gaps")
    return {
        "report": ["report", "--summary", one],
        "compare": ["compare", *sides],
        "compare md": ["compare", *sides, "--format", "md"],
        "track": ["track", *sides, "--allow-inconclusive", "--label", "\x1b[1mlabel"],
        "add": [*history, "--add", one, "--label", "\x1b[1mlabel"],
        "history": history,
        **{q: ["query", "--summary", one, "--question", q] for q in questions},
        "doctor": ["doctor", one],
        "report all": ["report", "--summary", f"{folder}/all.json"],
    }


CHILD = """
import json, sys
from marin_profile.cli import run
for arguments in json.loads(sys.argv[1]):
    code = run(arguments)
    print(f"EXIT {code}", flush=True)
"""


def on_terminal(commands: list[list[str]]) -> str:
    """What one process that runs the command lines writes to a terminal, both streams."""
    leader, follower = pty.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, json.dumps(commands)],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
        )
    finally:
        os.close(follower)
    written = io.BytesIO()
    try:
        while block := os.read(leader, 1 << 16):
            written.write(block)
    except OSError:  # how a terminal ends
        pass
    finally:
        os.close(leader)
    assert child.wait() == 0
    return written.getvalue().decode().replace("\r\n", "\n")


def test_a_terminal_gets_nothing_that_it_acts_on(hostile: str, tmp_path: Path) -> None:
    (tmp_path / "no").mkdir()
    commands = [*views(tmp_path).values(), ["report", "--summary", f"{tmp_path}/no/{hostile}"]]
    shown = on_terminal([[part.replace("\0", "") for part in one] for one in commands])
    codes = [int(code) for code in re.findall(r"^EXIT (\d+)$", shown, re.MULTILINE)]
    assert set(codes[:-1]) <= {0, 5}, shown[-2000:]
    assert codes[-1] in (2, 3)
    assert len(codes) == len(commands)
    assert ACTS.findall(shown) == []
    assert "defect" not in shown


def test_files_hold_the_names_as_they_are(hostile: str, tmp_path: Path, call: Call) -> None:
    output = tmp_path / "out.json"
    sides = ("--before", tmp_path / "a.json", "--after", tmp_path / "b.json")
    assert call("compare", *sides, "--output", output).exit_code == 0
    found = json.dumps(json.loads(output.read_bytes()))
    assert json.dumps(hostile)[1:-1] in found


def test_pages_and_markdown_hold_no_markup_of_names(
    hostile: str, tmp_path: Path, call: Call
) -> None:
    history = ("history", "--history", tmp_path / "h.jsonl")
    assert call(*history, "--add", tmp_path / "a.json", "--label", hostile).exit_code == 0
    page = tmp_path / "page.html"
    assert call(*history, "--output", page).exit_code == 0
    bundle = (
        *("bundle", "--before-summary", tmp_path / "a.json", "--after-summary"),
        *(tmp_path / "b.json", "--allow-inconclusive", "--output-dir", tmp_path / "bundle"),
    )
    assert call(*bundle).exit_code == 0
    report = tmp_path / "bundle/all.md"
    assert call("report", "--summary", tmp_path / "all.json", "--output", report).exit_code == 0
    texts = [path.read_text() for path in tmp_path.glob("bundle/**/*.md")]
    assert len(texts) == 4
    pages = [page.read_text(), (tmp_path / "bundle/compare_report.html").read_text()]
    for text in (*pages, *texts):
        assert ACTS.findall(text) == []
        # A page has a script of its own, and no other.
        assert len(re.findall(r"(?<!\\)<script", text)) == (text in pages)
        assert not re.search(r"^# heading", text, re.MULTILINE)
    assert not any(re.search(r"(?<!\\)\]\(javascript", text) for text in texts)
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("bundle/**/*")}
    assert len(names) == 12, "no name is a path"


def test_a_file_name_that_is_no_text(tmp_path: Path, call: Call) -> None:
    from builders_xspace import Space

    space = Space("host")
    space.tpu(0).op("fusion.1", 0, 5)
    space.tpu(0).step(0, 0, 9)
    path = space.write(tmp_path / "plain.xplane.pb")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/h\xff\x1b[1m.xplane.pb"))
    path.rename(odd)
    done = call("summarize", "--xplane-file", odd, "--output", tmp_path / "s.json")
    assert done.exit_code == 0, done.stderr
    summary: ProfileSummary = parse_summary((tmp_path / "s.json").read_bytes())
    assert summary.hosts[0].host.startswith("h")
