"""Ours beside XProf, marin.profiling and floors, in one run: seconds, memory and ratios.

A figure is the median over --repeat rounds of whole processes, with the files in the page cache; a
round runs everything on a file once, in turn. Before the first, what compiles (ours and the floors)
runs once unmeasured. A ratio is the median of the rounds' ratios, with the lowest and the highest.
Ours is the whole summary. XProf's is its converter's `hlo_stats` alone, which keeps what it found
beside a file: each of its runs gets a folder of its own. --xprof-python and --peer-python name
interpreters that have `xprof` and `marin-core` installed; without them their rows are left out.
What the floors do stands in bench_floors.py. --write puts the tables between the markers of a page.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bench_inputs
from bench_run import Run, file_flag, ours, put, run, summarize, table

QUESTION = "top 5 ops by exclusive time"
HLO_STATS = """
import sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
data, _ = xspace_to_tool_data([sys.argv[1]], "hlo_stats", {})
assert data
"""
MARIN = "import sys; from marin.profiling.cli import main; sys.exit(main())"
OURS, XPROF, PEER = "marin-profile", "XProf hlo_stats", "marin.profiling"
READ, SCAN = "reading the bytes", "scanning the protobuf"
UNPACK, SKIP = "igzip", "igzip and msgspec, nothing kept"
FLOOR_NAMES = {READ: "read", SCAN: "scan", UNPACK: "unpack", SKIP: "skip"}
# Of large files, in CPU seconds: theirs over ours at least, or ours over a floor's at most.
AT_LEAST = {(XPROF, bench_inputs.XPLANE): 3.5, (PEER, bench_inputs.XPLANE): 30.0}
AT_LEAST |= {(PEER, bench_inputs.JSON): 10.0}
AT_MOST = {(SKIP, bench_inputs.JSON): 3.0}


@dataclass(frozen=True)
class Ratio:
    median: float
    low: float
    high: float

    def __str__(self) -> str:
        median, low, high = (
            f"{one:.{1 if one >= 1 else 2}f}" for one in (self.median, self.low, self.high)
        )
        return f"{median} ({low} to {high})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--xprof-python", default=os.environ.get("MARIN_PROFILE_XPROF_PYTHON"))
    parser.add_argument("--peer-python", default=os.environ.get("MARIN_PROFILE_PEER_PYTHON"))
    parser.add_argument("--write", type=Path, metavar="PAGE")
    bench_inputs.add_arguments(parser)


def bench_ratios(options: argparse.Namespace) -> None:
    figures, ratios = [], []
    with tempfile.TemporaryDirectory(dir=options.cache.parent) as scratch:
        summary = Path(scratch, "summary.json")
        for title, path in bench_inputs.cases(options.events, options.cache):
            is_large = path.parent == options.cache
            runs = measured(contestants(path, summary, options, floors=is_large), options.repeat)
            figures += [_figures(title, name, own) for name, own in runs.items()]
            kind = bench_inputs.XPLANE if path.suffix == ".pb" else bench_inputs.JSON
            ratios += _ratios(title, kind if is_large else "", runs)
        title = "a question to the last summary"
        runs = measured(questions(summary, options), options.repeat)
        figures += [_figures(title, name, own) for name, own in runs.items()]
        ratios += _ratios(title, "", runs)
    head = ["file", "program", "wall s", "CPU s", "MB"]
    text = table(head, figures, texts=2)
    if ratios:
        head = ["file", "ratio", "of CPU seconds", "of wall seconds", "goal (CPU)", "held"]
        text += "\n" + table(head, ratios, texts=2)
    put(text, options.write, "ratios")


Command = Callable[[], list[str]]


def contestants(
    path: Path, summary: Path, options: argparse.Namespace, *, floors: bool
) -> dict[str, Command]:
    """What makes each run's command, by program."""
    found: dict[str, Command] = {OURS: lambda: summarize(path, summary)}
    is_xplane = path.suffix == ".pb"
    if options.xprof_python and is_xplane:
        found[XPROF] = lambda: [options.xprof_python, "-c", HLO_STATS, str(_alone(path, summary))]
    if options.peer_python:
        output = str(summary.with_name("peer.json"))
        flags = ["summarize", file_flag(path), str(path), "--output", output]
        found[PEER] = lambda: [options.peer_python, "-c", MARIN, *flags]
    if floors:
        for name in (SCAN, READ) if is_xplane else (SKIP, UNPACK, READ):
            found[name] = _floor(FLOOR_NAMES[name], path)
    return found


def questions(summary: Path, options: argparse.Namespace) -> dict[str, Command]:
    flags = ["query", "--summary", str(summary), "--question", QUESTION]
    found: dict[str, Command] = {OURS: lambda: ours(*flags)}
    if options.peer_python:
        found[PEER] = lambda: [options.peer_python, "-c", MARIN, *flags]
    return found


def measured(programs: dict[str, Command], repeat: int) -> dict[str, list[Run]]:
    for name in [name for name in programs if name in (OURS, *FLOOR_NAMES)]:
        _apart(programs[name]())
    rounds = [
        {name: _apart(command()) for name, command in programs.items()} for _ in range(repeat)
    ]
    runs = {name: [one[name] for one in rounds] for name in programs}
    for name, own in runs.items():
        print(f"{name}: " + ", ".join(f"{one.cpu:.2f}" for one in own), flush=True)
    return runs


def _apart(command: list[str]) -> Run:
    """Another interpreter gets no package of this one's."""
    theirs = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return run(command, None if "marin_profile" in command else theirs)


def _alone(path: Path, summary: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=summary.parent))
    copy = folder / path.name
    copy.symlink_to(path)
    return copy


def _floor(name: str, path: Path) -> Command:
    script = str(Path(__file__).with_name("bench_floors.py"))
    return lambda: [sys.executable, script, name, str(path)]


def _figures(title: str, program: str, runs: Sequence[Run]) -> list[str]:
    wall, cpu, megabytes = (
        statistics.median(getattr(one, name) for one in runs)
        for name in ("wall", "cpu", "megabytes")
    )
    return [title, program, f"{wall:.2f}", f"{cpu:.2f}", f"{megabytes:.0f}"]


def _ratios(title: str, kind: str, runs: dict[str, list[Run]]) -> list[list[str]]:
    rows = []
    for name in [name for name in runs if name != OURS]:
        over, below = (OURS, name) if name in FLOOR_NAMES else (name, OURS)
        cpu, wall = (_ratio(runs[over], runs[below], of) for of in ("cpu", "wall"))
        least, most = AT_LEAST.get((name, kind)), AT_MOST.get((name, kind))
        goal = f"at least {least:g}" if least else f"at most {most:g}" if most else ""
        held = cpu.median >= least if least else cpu.median <= most if most else None
        answer = "" if held is None else "yes" if held else "no"
        rows.append([title, f"{over} / {below}", str(cpu), str(wall), goal, answer])
    return rows


def _ratio(over: Sequence[Run], below: Sequence[Run], of: str) -> Ratio:
    found = [getattr(a, of) / getattr(b, of) for a, b in zip(over, below, strict=True)]
    return Ratio(statistics.median(found), min(found), max(found))
