"""Every command line of README, docs and --help runs, on small captures by the names that they use.

What needs a bucket, W&B, a training, or a client at the other end of stdin is only held against the
command line (`test_docs`). A question must fit a query, though a small capture need not hold the
answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from builders_capture import leave_capture
from builders_repository import git, toy_repository
from builders_verdict import capture, noisy
from doc_pages import DOCS, PAGES, blocks, command_lines, examples, name_of, parse, words
from marin_profile.cli import VERBS, progress, run
from marin_profile.profiling.record import CaptureRecord, Owner, State, failed, moved, write_record

GONE = Owner("this host does not exist", 1, 1)
FOLDERS = ("A", "B", "DIR", "runs/mine", "runs/a", "runs/b", "runs/before", "runs/after")
OF_SIDES = tuple(
    f"runs/{side}-{number}/profiler" for side in ("before", "after") for number in "123"
)
SUMMARIES = (
    "summary",
    "profile_summary",
    "before",
    "after",
    *(f"{x}{n}" for x in "abr" for n in "123"),
)
ELSEWHERE = re.compile(
    r"marin-profile trace |(?:gs|s3|tcp)://|https?://|entity|(?:bisect|publish) (?!.*--dry-run)"
    r"|\bmcp\b|\$"
)
# A verdict on small captures may be any; so may what `doctor` finds, and what they hold.
MAY_EXIT = {
    "track": (0, 1),
    "bundle": (0, 1),
    "doctor": (0, 1),
    "query": (0, 5),
    "experiment": (0, 1),
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the pages name."""
    root = tmp_path_factory.mktemp("sandbox")
    toy_repository(root, [10_000] * 9)
    git(root, "tag", "v1.2", "main~8")
    for number, name in enumerate((*FOLDERS, *OF_SIDES)):
        folder = leave_capture(root / name, step_us=80 + number % 10)
        record = CaptureRecord(
            run_id="r", start_step=5, stop_step=8, owner=GONE, folder=str(folder)
        )
        for state in (State.TRACING, State.SETTLING, State.INGESTING):
            record = moved(record, state)
        write_record(failed(record, "the machine was switched off"))
    for number, name in enumerate(SUMMARIES):
        made = capture(noisy(number, 25), name=name)
        (root / f"{name}.json").write_text(made.to_json())
    (root / "report.md").write_text("# A report\n")
    (root / "plan.yaml").write_text("command: ['true']\narms: {a: {}}\n")
    for history in ("H", "history.jsonl"):
        added = run(["history", "--history", str(root / history), "--add", str(root / "r1.json")])
        assert added == 0
    return root


def run_in(
    sandbox: Path, line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sandbox)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 3600.0)
    monkeypatch.setenv("WANDB_PROJECT", "of-a-summary-that-names-no-run")
    code = run(words(line))
    stdout, stderr = capfd.readouterr()
    verb = parse(line)
    assert code in MAY_EXIT.get(verb, (0,)), f"{line}: {code}: {stderr}"
    if verb == "query" and "--list" not in line:
        assert json.loads(stdout)["query_type"] is not None, f"{line}: {stdout}"


RUN = [
    pytest.param(line, id=f"{name_of(page)}: {line}")
    for page in PAGES
    for line in dict.fromkeys(command_lines(page))
    if not ELSEWHERE.search(line)
]


@pytest.mark.parametrize("line", RUN)
def test_command_lines_run(line: str, sandbox: Path, monkeypatch, capfd) -> None:
    run_in(sandbox, line, monkeypatch, capfd)


def test_most_command_lines_run() -> None:
    every = [line for page in PAGES for line in command_lines(page)]
    assert len(every) > len(RUN) > 0.6 * len(every)


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_each_help_run(verb: str, sandbox: Path, monkeypatch, capfd) -> None:
    for line in examples(verb):
        assert parse(line) == verb
        assert line.startswith("marin-profile ")
        if not ELSEWHERE.search(line):
            run_in(sandbox, line, monkeypatch, capfd)


def test_five_minutes_on_a_cpu(tmp_path: Path, monkeypatch, capfd) -> None:
    """The loop of the page runs as it stands, and what it leaves is shown."""
    pytest.importorskip("jax")
    page = DOCS / "start" / "cpu.md"
    (loop,) = blocks(page, "python")
    (tmp_path / "loop.py").write_text(loop)
    done = subprocess.run(
        [sys.executable, "loop.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in command_lines(page):
        run_in(tmp_path, line, monkeypatch, capfd)
    assert (tmp_path / "report.html").exists()
