"""A command as a whole process, measured; and the tables that figures are shown in.

CPU seconds are those of the process and of the children that it waited for, user and system: other
work on the machine changes them less than wall seconds. A process counts as its own the memory of
the one that started it, so a small one in between (this file, run) starts and measures it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """megabytes: the peak of resident memory."""

    wall: float
    cpu: float
    megabytes: float


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Ends the bench where the command fails."""
    measured = subprocess.run(
        [sys.executable, "-S", __file__, *command], env=environment, capture_output=True, text=True
    )
    if measured.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{measured.stderr}")
    return Run(*json.loads(measured.stdout))


def _measure(command: Sequence[str]) -> None:
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
    sys.exit(child.returncode != 0)


def ours(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "marin_profile", *arguments]


def summarize(path: Path, summary: Path) -> list[str]:
    return ours("summarize", file_flag(path), str(path), "--no-cache", "--output", str(summary))


def file_flag(path: Path) -> str:
    return "--xplane-file" if path.suffix == ".pb" else "--trace-file"


def fastest(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: run.cpu)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Markdown; all columns but the first `texts` are numbers."""
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def put(text: str, page: Path | None, name: str) -> None:
    """Print it; and write it between the lines `<!-- name -->` and `<!-- /name -->` of a page."""
    print(f"\n{text}", end="")
    if page is None:
        return
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, found, rest = page.read_text().partition(first)
    _, ends, after = rest.partition(last)
    if not found or not ends:
        sys.exit(f"{page} has no lines {first.strip()} and {last.strip()} to write between.")
    page.write_text(f"{before}{first}{text}{last}{after}")


if __name__ == "__main__":
    _measure(sys.argv[1:])
