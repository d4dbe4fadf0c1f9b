"""Questions in words, put to this package and to others: who answers rightly, who says so if not?

    python scripts/scoreboard.py --traces DIR --reference DIR
        [--xprof-python P] [--marin-python P] [--write docs/scoreboard.md] [--json F]

`--traces` holds the captures and `--reference` XProf's tables of them. The peers run as processes
of their own Python; without one its row is left out. No part of this asks a model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from scoreboard_judge import OUTCOMES, Outcome, Reply, judge
from scoreboard_made import write_made
from scoreboard_marin import Marin
from scoreboard_ours import read
from scoreboard_questions import CAPTURES, MADE, NAMES, QUESTIONS, Question
from scoreboard_truth import Truth
from scoreboard_truths import TRUTHS, folder_of
from scoreboard_xprof import XProf

OURS = "marin-profile"


@dataclass(frozen=True)
class Cell:
    tool: str
    capture: str
    key: str
    question: str
    outcome: Outcome
    chars: int
    said: str


Asked = Callable[[Question, str, Truth], tuple[Reply, str]]
"""A tool: the question, the capture, and what is true (for which names to read) -> its reply, and
in a few words what it said."""


def cells(
    tool: str, ask: Asked, truths: dict[str, dict[str, Truth]], questions: Iterable[Question]
) -> list[Cell]:
    """One for each question and capture that has a truth."""
    found = []
    for question in questions:
        for capture, known in truths.items():
            if question.key in known:
                reply, said = ask(question, capture, known[question.key])
                outcome = judge(known[question.key], reply)
                words = question.words(capture)
                found.append(Cell(tool, capture, question.key, words, outcome, reply.chars, said))
    return found


def ours(summaries: dict[str, Path], run: Callable[[list[str]], tuple[int, str]]) -> Asked:
    def ask(question: Question, capture: str, truth: Truth) -> tuple[Reply, str]:
        words = question.words(capture)
        code, out = run(["query", "--summary", str(summaries[capture]), "--question", words])
        if code not in (0, 5):
            return Reply(refused=True, fits=False, chars=len(out)), f"exit {code}"
        answer = json.loads(out)
        reply = read(question.key, truth, answer, NAMES[capture], len(out))
        said = "cannot answer" if reply.refused else "answers"
        return reply, f"{said}, query {answer['query_type']}"

    return ask


def run_command(arguments: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "marin_profile", *arguments], capture_output=True, text=True
    )
    return done.returncode, done.stdout


def summarized(
    folders: dict[str, Path], into: Path, run: Callable[[list[str]], tuple[int, str]]
) -> dict[str, Path]:
    found = {}
    for capture, folder in folders.items():
        found[capture] = into / f"{capture}.json"
        code, _ = run(["summarize", "--profile-dir", str(folder), "--output", str(found[capture])])
        if code:
            raise SystemExit(f"{capture}: summarize exited {code}")
    return found


def copies(folders: dict[str, Path], into: Path) -> dict[str, Path]:
    """Of the xplane files: caches are written beside them."""
    found = {}
    for capture, folder in folders.items():
        for path in sorted(folder.rglob("*.xplane.pb"))[:1]:
            found[capture] = into / "copies" / capture / path.name
            found[capture].parent.mkdir(parents=True)
            found[capture].write_bytes(path.read_bytes())
    return found


# --- the page -----------------------------------------------------------------------------------

_HEAD = """# Who answers which question?

*Written by `python scripts/scoreboard.py --traces DIR --reference DIR --write docs/scoreboard.md`;
no model is asked.*

{questions} questions in people's words (typos, negations, names that are not there, "per step" and
"in total") over {captures} captures: {cells} cells with a known answer. The questions were written
before this package's router was looked at, and are not changed to suit it. What is true comes from
XProf's tables, from the construction of one made capture, and from plain sums over the raw events,
with code that shares nothing with this package's analysis.

* **right**: each figure that the question asks for within 2 %, in its unit, and each name; or that
  the capture holds none of it, or cannot tell, where that is so. A figure counts where the tool's
  documents say that it stands, in an answer that is of this question; a number elsewhere in the
  output does not. Where a question leaves it open (whole capture or steady window, one device or
  all), each counts.
* **honestly unanswered**: it says that it cannot tell, or leaves the place empty, but the truth is
  there.
* **confidently wrong**: another figure, another question's answer, or an answer where none is held.

Who is asked, and how:

* `marin-profile`: `marin-profile query` with the question as it stands.
* `XProf` ({xprof}): it takes no questions, so somebody who knows it picks the verb and the field,
  and adds up records where needed. What no verb answers counts as unanswered, or as right where the
  capture does not hold it.
* `marin.profiling, asked`: its `query` with the question as it stands. What it does not recognise
  it answers with its optimization candidates.
* `marin.profiling, its fields`: somebody who knows it picks the field of its summary.
"""
XPROF_VERSION = "2.24.2"


def page(found: list[Cell]) -> str:
    head = _HEAD.format(
        questions=len({cell.key for cell in found}),
        captures=len({cell.capture for cell in found}),
        cells=len({(cell.key, cell.capture) for cell in found}),
        xprof=XPROF_VERSION,
    )
    return "\n".join([head, *table(found), "", *_misses(found), ""])


def table(found: list[Cell]) -> list[str]:
    lines = [
        "| tool | right | honestly unanswered | confidently wrong | median characters | most |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for tool in dict.fromkeys(cell.tool for cell in found):
        mine = [cell for cell in found if cell.tool == tool]
        counts = [sum(cell.outcome == outcome for cell in mine) for outcome in OUTCOMES]
        shares = [f"{number} ({number / len(mine):.0%})" for number in counts]
        said = [cell.chars for cell in mine if cell.chars]
        sizes = [f"{round(median(said)):,}", f"{max(said):,}"] if said else ["n/a", "n/a"]
        lines.append("| " + " | ".join([tool, *shares, *sizes]) + " |")
    return lines


def _misses(found: list[Cell]) -> list[str]:
    """Our own cells that are not right, the wrong ones first."""
    lines = ["## What this package does not answer rightly", ""]
    for outcome, title in (("wrong", "Confidently wrong"), ("unanswered", "Honestly unanswered")):
        mine = [cell for cell in found if cell.tool == OURS and cell.outcome == outcome]
        lines += [f"{title}: {len(mine)}.", ""]
        for key in dict.fromkeys(cell.key for cell in mine):
            of_key = [cell for cell in mine if cell.key == key]
            captures = ", ".join(cell.capture for cell in of_key)
            lines.append(f"* {of_key[0].question} ({captures}; {of_key[0].said})")
        lines.append("")
    return lines


# --- the command --------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--reference", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--xprof-python", type=Path, metavar="P", help=f"Has xprof {XPROF_VERSION}."
    )
    parser.add_argument("--marin-python", type=Path, metavar="P", help="Has marin.profiling.")
    parser.add_argument("--capture", action="append", choices=CAPTURES, help="Only this one.")
    parser.add_argument("--write", type=Path, metavar="F", help="Write the page there.")
    parser.add_argument("--json", type=Path, metavar="F", help="Write every cell there.")
    options = parser.parse_args(arguments)
    captures = options.capture or CAPTURES
    with tempfile.TemporaryDirectory() as scratch:
        folders = {one: folder_of(options.traces, one) for one in captures if one != MADE}
        if MADE in captures:
            folders[MADE] = write_made(Path(scratch) / MADE)
        truths = {one: TRUTHS[one](options.traces, options.reference) for one in captures}
        summaries = summarized(folders, Path(scratch), run_command)
        found = cells(OURS, ours(summaries, run_command), truths, QUESTIONS)
        if options.xprof_python:
            xprof = XProf(options.xprof_python, copies(folders, Path(scratch)))
            found += cells("XProf", xprof.ask, truths, QUESTIONS)
        if options.marin_python:
            marin = Marin(options.marin_python, folders, Path(scratch))
            marin.hear([(one, asked.words(one)) for one in captures for asked in QUESTIONS])
            found += cells("marin.profiling, asked", marin.in_words, truths, QUESTIONS)
            found += cells("marin.profiling, its fields", marin.by_field, truths, QUESTIONS)
    print(page(found))
    if options.write:
        options.write.write_text(page(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(cell) for cell in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
