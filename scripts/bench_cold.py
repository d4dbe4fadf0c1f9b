"""What the first `summarize` on a machine costs, beside the next one.

First: nothing that was compiled before is there (NUMBA_CACHE_DIR is a fresh folder), and no cache
of ours; the package's own bytecode is. Next: the same again. Each figure is a whole process with
the file in the page cache, of --repeat rounds the fastest. CPU seconds (user and system) are there
because other work on the machine changes them less than wall seconds. `compiled`: how many loops
the first run compiled. --beside SRC, the src folder of another version, runs it in the same rounds;
the ratios are its CPU seconds over ours. --markdown writes the table to a file, --json the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import bench_inputs
from bench_run import Run, fastest, run, summarize, table


@dataclass(frozen=True)
class Row:
    case: str
    first: Run
    following: Run
    compiled: int
    first_beside: Run | None = None
    following_beside: Run | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--beside", type=Path, metavar="SRC")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    bench_inputs.add_arguments(parser)


def bench_cold(options: argparse.Namespace) -> None:
    rows = []
    for title, path in bench_inputs.cases(options.events, options.cache):
        ours, others = [], []
        for _ in range(options.repeat):
            ours.append(_round(path, None))
            if options.beside:
                others.append(_round(path, options.beside))
        row = Row(
            title,
            fastest([first for first, _, _ in ours]),
            fastest([following for _, following, _ in ours]),
            ours[0][2],
            fastest([first for first, _, _ in others]) if others else None,
            fastest([following for _, following, _ in others]) if others else None,
        )
        rows.append(row)
        print(f"{title}: {_figures(row.first)} first, {_figures(row.following)} next", flush=True)
    text = _table(rows)
    print(f"\n{text}", end="")
    if options.markdown:
        options.markdown.write_text(text)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _figures(run: Run) -> str:
    return f"{run.wall:.2f} s ({run.cpu:.2f} s CPU, {run.megabytes:.0f} MB)"


def _table(rows: Sequence[Row]) -> str:
    head = ["capture", "first: s", "CPU s", "MB", "compiled", "next: s", "CPU s", "MB"]
    if any(row.first_beside for row in rows):
        head += ["first, ratio", "next, ratio"]
    lines = []
    for row in rows:
        cells = [row.case, *_cells(row.first), str(row.compiled), *_cells(row.following)]
        if row.first_beside and row.following_beside:
            cells.append(f"{row.first_beside.cpu / row.first.cpu:.1f}")
            cells.append(f"{row.following_beside.cpu / row.following.cpu:.1f}")
        lines.append(cells)
    return table(head, lines)


def _cells(run: Run) -> list[str]:
    return [f"{run.wall:.2f}", f"{run.cpu:.2f}", f"{run.megabytes:.0f}"]


def _round(path: Path, source: Path | None) -> tuple[Run, Run, int]:
    """The first run, the next, and how many loops the first one compiled."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "compiled")
        environment = os.environ | {
            "NUMBA_CACHE_DIR": str(compiled),
            "XDG_CACHE_HOME": str(Path(folder, "cache")),
        }
        if source:
            environment["PYTHONPATH"] = str(source)
        command = summarize(path, Path(folder, "summary.json"))
        first = run(command, environment)
        loops = len([*compiled.rglob("*.nbi")])
        return first, run(command, environment), loops
