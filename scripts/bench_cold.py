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
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    wall: float
    cpu: float
    megabytes: float


@dataclass(frozen=True)
class Row:
    case: str
    first: Run
    following: Run
    compiled: int
    first_beside: Run | None = None
    following_beside: Run | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beside", type=Path, metavar="SRC")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")


def bench_cold(options: argparse.Namespace, cases: Sequence[tuple[str, Path]]) -> None:
    rows = []
    for title, path in cases:
        ours, others = [], []
        for _ in range(options.repeat):
            ours.append(_round(path, None))
            if options.beside:
                others.append(_round(path, options.beside))
        row = Row(
            title,
            _fastest([first for first, _, _ in ours]),
            _fastest([following for _, following, _ in ours]),
            ours[0][2],
            _fastest([first for first, _, _ in others]) if others else None,
            _fastest([following for _, following, _ in others]) if others else None,
        )
        rows.append(row)
        print(f"{title}: {_figures(row.first)} first, {_figures(row.following)} next", flush=True)
    table = _table(rows)
    print(f"\n{table}", end="")
    if options.markdown:
        options.markdown.write_text(table)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _figures(run: Run) -> str:
    return f"{run.wall:.2f} s ({run.cpu:.2f} s CPU, {run.megabytes:.0f} MB)"


def _table(rows: Sequence[Row]) -> str:
    head = ["capture", "first: s", "CPU s", "MB", "compiled", "next: s", "CPU s", "MB"]
    beside = any(row.first_beside for row in rows)
    if beside:
        head += ["first, ratio", "next, ratio"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        cells = [row.case, *_cells(row.first), str(row.compiled), *_cells(row.following)]
        if row.first_beside and row.following_beside:
            cells.append(f"{row.first_beside.cpu / row.first.cpu:.1f}")
            cells.append(f"{row.following_beside.cpu / row.following.cpu:.1f}")
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(run: Run) -> list[str]:
    return [f"{run.wall:.2f}", f"{run.cpu:.2f}", f"{run.megabytes:.0f}"]


def _fastest(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: run.cpu)


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
        first = _run(path, folder, environment)
        loops = len([*compiled.rglob("*.nbi")])
        return first, _run(path, folder, environment), loops


def _run(path: Path, folder: str, environment: dict[str, str]) -> Run:
    flag = "--xplane-file" if path.suffix == ".pb" else "--trace-file"
    command = [sys.executable, "-m", "marin_profile", "summarize", flag, str(path)]
    command += ["--output", str(Path(folder, "summary.json"))]
    started = time.perf_counter()
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{errors.decode(errors='replace')}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
