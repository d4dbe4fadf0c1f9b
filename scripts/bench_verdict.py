"""The verdict's operating curve: how often each status, by the very code that judges summaries.

Every cell draws pairs of captures of n steps a side: lognormal step times of the given coefficient
of variation, AR(1) with phi, optionally 4 % of the steps x 1.5, and the given change. The same
draws serve all changes and thresholds of a row. The p90 check (threshold 10 %) takes part; shares
do not, and neither does a spread between runs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.analysis.steps.classes import MIN_RATIO, classify_steps
from marin_profile.verdict.estimate import (
    ChangeEstimate,
    alike,
    change_of_location,
    change_of_quantile,
)
from marin_profile.verdict.rules import as_percent, statuses
from marin_profile.verdict.series import Series
from marin_profile.verdict.student import Floats

VARIATIONS = (0.01, 0.03, 0.06)
PHIS = (0.0, 0.5)
SLOW_SHARES = (0.0, 0.04)
STEPS = (10, 25, 50)
CHANGES = (0.0, 0.05, 0.08)
THRESHOLDS = (2.0, 5.0)
P90_THRESHOLD = 10.0
SLOWER = 1.5
STATUSES = ("fail", "warn", "pass", "inconclusive")
SHORT = ("fail", "warn", "pass", "open")


@dataclass(frozen=True)
class Cell:
    variation: float
    phi: float
    slow_share: float
    steps: int


@dataclass(frozen=True)
class Row:
    """Shares of all runs. `coverage`: the true change lies in the 95 % interval."""

    cell: Cell
    change: float
    threshold: float
    statuses: dict[str, float]
    coverage: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=20_000, help="a cell")
    parser.add_argument("--seed", type=int, default=1)


def bench_verdict(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    rows = [row for cell in cells() for row in rows_of(cell, options.runs, options.seed)]
    for change in CHANGES:
        print("\n".join(markdown([row for row in rows if row.change == change])), end="\n\n")
    alarms = max(row.statuses["fail"] for row in rows if row.change == 0)
    coverages = [row.coverage for row in rows]
    print(
        f"{options.runs:,} runs a cell, seed {options.seed}: false alarms at most "
        f"{100 * alarms:.2f} %, coverage {100 * min(coverages):.1f} to {100 * max(coverages):.1f} %"
    )
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)


def cells() -> Iterator[Cell]:
    for values in itertools.product(VARIATIONS, PHIS, SLOW_SHARES, STEPS):
        yield Cell(*values)


def markdown(rows: Sequence[Row]) -> list[str]:
    """One table: a line for each cell, the statuses for each threshold, in per cent."""
    headers = [f"{one}, {threshold:.0f} %" for threshold in THRESHOLDS for one in SHORT]
    titles = ["CV", "phi", "slow", "n", *headers, "coverage"]
    lines = [
        f"Change {100 * rows[0].change:+.0f} %:",
        "",
        _line(titles),
        "|---:" * len(titles) + "|",
    ]
    for cell, group in itertools.groupby(rows, key=lambda row: row.cell):
        found = list(group)
        shares = [f"{100 * row.statuses[status]:.1f}" for row in found for status in STATUSES]
        slow = f"{100 * cell.slow_share:.0f} %"
        settings = [f"{100 * cell.variation:.0f} %", f"{cell.phi:.1f}", slow, str(cell.steps)]
        lines.append(_line([*settings, *shares, f"{100 * found[0].coverage:.1f}"]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rows_of(cell: Cell, runs: int, seed: int) -> Iterator[Row]:
    """One row for each change and threshold."""
    rng = np.random.default_rng([seed, *(round(1000 * value) for value in vars(cell).values())])
    before, after = draw(rng, cell, runs), draw(rng, cell, runs)
    step_time, p90 = estimates(before, after)
    for change in CHANGES:
        shift = np.log1p(change)
        # Times that are all longer by one factor differ in this alone.
        moved = as_percent(replace(step_time, after=step_time.after + shift))
        moved_p90 = as_percent(replace(p90, after=p90.after + shift))
        true = 100.0 * change
        coverage = float(((moved.low <= true) & (true <= moved.high)).mean())
        for threshold in THRESHOLDS:
            counts = Counter(statuses(moved, threshold, [(moved_p90, P90_THRESHOLD)]).tolist())
            shares = {status: counts[status] / runs for status in STATUSES}
            yield Row(cell, change, threshold, shares, coverage)


def draw(rng: np.random.Generator, cell: Cell, runs: int) -> Floats:
    """Log step times (runs, steps)."""
    noise = rng.standard_normal((runs, cell.steps))
    for step in range(1, cell.steps):
        noise[:, step] = cell.phi * noise[:, step - 1] + np.sqrt(1.0 - cell.phi**2) * noise[:, step]
    slow = rng.random((runs, cell.steps)) < cell.slow_share
    return np.asarray(noise * np.sqrt(np.log1p(cell.variation**2)) + np.log(SLOWER) * slow)


def estimates(before: Floats, after: Floats) -> tuple[ChangeEstimate, ChangeEstimate]:
    """The change of the step time and of its p90 for each run, classes of steps and all."""
    steps = before.shape[1]
    plain = ("",) * steps
    sides = [Series(values, plain) for values in (before, after)]
    step_time = change_of_location(sides[:1], sides[1:])
    p90 = change_of_quantile(sides[:1], sides[1:], 0.9, step_time.phi)
    # Steps have classes in few runs, and only where both sides have them do they count.
    classed = np.flatnonzero(may_have_classes(before) & may_have_classes(after))
    for run in classed.tolist():
        pair = [Series(values[[run]], classes_of(values[run])) for values in (before, after)]
        if alike(pair[:1], pair[1:])[0][0].classes == plain:
            continue
        one = change_of_location(pair[:1], pair[1:])
        own_p90 = change_of_quantile(pair[:1], pair[1:], 0.9, one.phi)
        for whole, part in ((step_time, one), (p90, own_p90)):
            for name in ("before", "after", "standard_error", "degrees_of_freedom", "phi"):
                getattr(whole, name)[run] = getattr(part, name)[0]
    return step_time, p90


def may_have_classes(values: Floats) -> np.ndarray:
    """False only where `classify_steps` cannot find any: two steps must be so much longer."""
    ordered = np.sort(values, axis=1)
    return np.asarray(ordered[:, -2:].mean(axis=1) >= ordered[:, 0] + np.log(MIN_RATIO) - 0.02)


def classes_of(values: Floats) -> tuple[str, ...]:
    found = classify_steps(np.exp(values).tolist())
    if found is None:
        return ("",) * len(values)
    return tuple("heavy" if heavy else "light" for heavy in found.heavy)
