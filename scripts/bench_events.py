"""Time per event from 100,000 to 10,000,000 events: of the whole process, and of each event more.

Each figure is the one with the fewest CPU seconds of --repeat whole processes, which run in turn
over all sizes, after a round that is not measured. "Whole" is CPU microseconds over events; "each
more" is what the events beyond the size before took each. Flat means that no size takes over 15 %
more per event than another. --write puts the table between the markers of a page. 10,000,000 events
take 0.3 GB of disk as a protobuf.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import bench_inputs
from bench_run import Run, fastest, put, run, summarize, table

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
FLAT = 0.15


@dataclass(frozen=True)
class Point:
    """events: those of the file, as its summary counts them."""

    events: int
    run: Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument(
        "--kinds", nargs="+", default=[bench_inputs.XPLANE, bench_inputs.JSON], metavar="KIND"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    bench_inputs.add_arguments(parser)


def bench_events(options: argparse.Namespace) -> None:
    rows, said = [], []
    for kind in options.kinds:
        points = points_of(kind, sorted(options.sizes), options)
        more = each_more(points)
        for point, marginal in zip(points, more, strict=True):
            rows.append(_row(kind, point, marginal))
        said += [spread(f"{kind}, whole", [point.run.cpu / point.events for point in points])]
        said += [spread(f"{kind}, each more", [one for one in more if one is not None])]
    head = ["file", "events", "wall s", "CPU s", "MB", "whole: us", "each more: us"]
    lines = "".join(f"* {one}\n" for one in said)
    put(f"{table(head, rows)}\n{lines}", options.write, "events")


def points_of(kind: str, sizes: Sequence[int], options: argparse.Namespace) -> list[Point]:
    paths = [bench_inputs.repeated(kind, size, options.cache) for size in sizes]
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder, "summary.json")
        events = []
        for path in paths:
            run(summarize(path, summary))
            overview = json.loads(summary.read_bytes())["trace_overview"]
            events.append(overview["num_complete_events"])
        rounds = [[run(summarize(path, summary)) for path in paths] for _ in range(options.repeat)]
    return [Point(count, fastest(runs)) for count, *runs in zip(events, *rounds, strict=True)]


def each_more(points: Sequence[Point]) -> list[float | None]:
    """CPU seconds an event, of the events beyond those of the point before."""
    found: list[float | None] = [None]
    for before, after in pairwise(points):
        found.append((after.run.cpu - before.run.cpu) / (after.events - before.events))
    return found


def spread(title: str, values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{title}: too few sizes to tell"
    low, high = 1e6 * min(values), 1e6 * max(values)
    if low <= 0:
        return f"{title}: {low:.2f} to {high:.2f} us an event: not flat"
    apart = high / low - 1
    answer = "flat" if apart <= FLAT else "not flat"
    return f"{title}: {low:.2f} to {high:.2f} us an event, {100 * apart:.0f} % apart: {answer}"


def _row(kind: str, point: Point, marginal: float | None) -> list[str]:
    own = point.run
    cells = [kind, f"{point.events:,}", f"{own.wall:.2f}", f"{own.cpu:.2f}", f"{own.megabytes:.0f}"]
    more = "" if marginal is None else f"{1e6 * marginal:.2f}"
    return [*cells, f"{1e6 * own.cpu / point.events:.2f}", more]
