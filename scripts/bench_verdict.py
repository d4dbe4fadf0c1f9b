"""The verdict's operating curve: how often each status, by the very code that judges summaries.

Every cell draws sides of captures of n steps, from a model of the steps (`Steps`) before and after,
and judges them at thresholds of 2 and 5 per cent; the p90 check (10 %) and that of slow steps take
part, device time does not. `likely` counts what would be a fail if one capture a side could confirm
it. Coverage counts the runs whose 95 % interval holds the true change, or whose verdict says that
the steps are not independent.

Tables: no change; the changes that a table of 0.1.0 had (held against its powers below); another
mix of slow steps; several captures a side that differ from run to run.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from marin_profile.analysis.steps.classes import classify_steps
from marin_profile.verdict.checks import slow_steps_check
from marin_profile.verdict.estimate import ChangeEstimate, change_of_steps, combine
from marin_profile.verdict.quantities import log_quantile, log_quantile_variance
from marin_profile.verdict.rules import Bounds, other_result, status_of, step_result
from marin_profile.verdict.series import StepSeries

THRESHOLDS = (2.0, 5.0)
P90_THRESHOLD = 10.0
STATUSES = ("fail", "likely_fail", "warn", "pass", "inconclusive")
TITLES = ("fail", "likely", "warn", "pass", "open")
# Frequencies of 1/f noise are those of a series this long.
PINK_STEPS = 4096


@dataclass(frozen=True)
class Steps:
    """A model of the steps of one capture. `noise`: "ar" (phi), "t3", "pink", "markov" (a second
    clock, `slower` times as long, for `dwell` steps on average) or "trend" (a warm-up of 20 % that
    fades over 8 steps). `strays` of the steps, or every `every`-th, take `slower` times as long."""

    steps: int
    variation: float = 0.03
    noise: str = "ar"
    phi: float = 0.0
    dwell: float = 0.0
    strays: float = 0.0
    every: int = 0
    slower: float = 1.0

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Log step times."""
        values = math.sqrt(math.log1p(self.variation**2)) * _NOISES[self.noise](self, rng)
        if self.noise == "trend":
            values += 0.2 * np.exp(-np.arange(self.steps) / 8.0)
        if self.noise == "markov":
            switches = rng.random(self.steps) < 1.0 / self.dwell
            values += math.log(self.slower) * ((np.cumsum(switches) + rng.integers(2)) % 2)
        if self.strays:
            values += math.log(self.slower) * (rng.random(self.steps) < self.strays)
        if self.every:
            values[rng.integers(self.every) :: self.every] += math.log(self.slower)
        return values

    @property
    def mean_factor(self) -> float:
        """How much longer than a usual step the mean is, noise aside."""
        share = 1.0 / self.every if self.every else self.strays
        return 1.0 + share * (self.slower - 1.0)

    def __str__(self) -> str:
        noise = {
            "ar": f"phi {self.phi:g}" if self.phi else "independent",
            "t3": "heavy tails (t3)",
            "pink": "1/f",
            "markov": f"two clocks x {self.slower:g}, {self.dwell:g} steps each",
            "trend": "warm-up of 20 %",
        }[self.noise]
        slow = f", every {self.every} x {self.slower:g}" if self.every else ""
        slow += f", {100 * self.strays:g} % x {self.slower:g}" if self.strays else ""
        return f"CV {100 * self.variation:g} %, {noise}{slow}"


def _ar(model: Steps, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal(model.steps)
    for step in range(1, model.steps if model.phi else 0):
        noise[step] = model.phi * noise[step - 1] + math.sqrt(1 - model.phi**2) * noise[step]
    return noise


def _t3(model: Steps, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(3, model.steps) / math.sqrt(3.0)


def _pink(model: Steps, rng: np.random.Generator) -> np.ndarray:
    frequencies = np.arange(1, PINK_STEPS // 2 + 1)
    parts = rng.standard_normal((2, len(frequencies))) / np.sqrt(frequencies)
    whole = np.fft.irfft(np.concatenate(([0.0], parts[0] + 1j * parts[1])), PINK_STEPS)
    begin = rng.integers(PINK_STEPS - model.steps + 1)
    return np.asarray((whole / whole.std())[begin : begin + model.steps])


_NOISES = {"ar": _ar, "t3": _t3, "pink": _pink, "markov": _ar, "trend": _ar}


@dataclass(frozen=True)
class Cell:
    """`captures` and the `spread` between runs (standard deviation of the log), each side."""

    before: Steps
    after: Steps
    captures: tuple[int, int] = (1, 1)
    spread: tuple[float, float] = (0.0, 0.0)
    changes: tuple[float, ...] = (0.0,)

    @property
    def mix(self) -> float:
        """The logarithm of what the mix alone does to the mean."""
        return math.log(self.after.mean_factor / self.before.mean_factor)


@dataclass(frozen=True)
class Row:
    """Shares of all runs; coverage of (mean, typical). `unsettled`: steps are not independent."""

    cell: Cell
    change: float
    statuses: dict[float, dict[str, float]] = field(default_factory=dict)
    coverage: tuple[float, float] = (1.0, 1.0)
    unsettled: float = 0.0

    def failing(self, threshold: float) -> float:
        return self.statuses[threshold]["fail"] + self.statuses[threshold]["likely_fail"]


def same(model: Steps, **changes: object) -> Cell:
    return replace(Cell(model, model), **changes)  # type: ignore[arg-type]


def null_cells() -> Iterator[Cell]:
    """No change."""
    for variation, steps in itertools.product((0.01, 0.06, 0.15, 0.4), (10, 25, 100)):
        yield same(Steps(steps, variation))
    for steps in (3, 6, 1000):
        yield same(Steps(steps))
    for phi, steps in itertools.product((0.5, 0.7, 0.9), (10, 25, 50, 100, 400)):
        yield same(Steps(steps, 0.06, phi=phi))
    for steps in (10, 25, 100):
        yield same(Steps(steps, 0.06, "t3"))
        yield same(Steps(steps, 0.02, "trend"))
    for steps in (25, 100, 200, 1000):
        yield same(Steps(steps, 0.06, "pink"))
    for dwell, steps in itertools.product((5, 20), (25, 100, 400)):
        yield same(Steps(steps, 0.02, "markov", dwell=dwell, slower=1.2))
    for (every, slower), steps in itertools.product(
        ((2, 1.4), (5, 1.2), (5, 1.4), (12, 3.0)), (10, 25, 50, 100)
    ):
        yield same(Steps(steps, every=every, slower=slower))
    for slower, steps in itertools.product((1.5, 3.0), (10, 25, 50, 200)):
        yield same(Steps(steps, strays=0.04, slower=slower))
    for one, two in ((25, 60), (10, 100), (200, 20)):
        yield Cell(Steps(one, 0.06), Steps(two, 0.06))
        yield Cell(Steps(one, 0.06, phi=0.5), Steps(two, 0.06, phi=0.5))


def old_cells() -> Iterator[Cell]:
    """What the table of 0.1.0 had."""
    for variation, phi, strays, steps in itertools.product(
        (0.01, 0.03, 0.06), (0.0, 0.5), (0.0, 0.04), (10, 25, 50)
    ):
        model = Steps(steps, variation, phi=phi, strays=strays, slower=1.5)
        yield same(model, changes=(0.0, 0.05, 0.08))


def mix_cells() -> Iterator[Cell]:
    """Another mix of slow steps, usual steps unchanged."""
    for variation, steps in itertools.product((0.02, 0.06), (10, 25, 50, 100)):
        usual = Steps(steps, variation)
        yield Cell(replace(usual, every=5, slower=2.0), replace(usual, every=2, slower=2.0))
        for every, slower in ((4, 1.2), (5, 1.4), (8, 1.5), (12, 3.0)):
            yield Cell(usual, replace(usual, every=every, slower=slower))
        yield Cell(replace(usual, strays=0.04, slower=2.0), replace(usual, strays=0.16, slower=2.0))


def run_cells() -> Iterator[Cell]:
    """Several captures a side, no change."""
    usual = Steps(25)
    for captures, spread in (
        ((3, 3), (0.002, 0.002)),
        ((3, 3), (0.02, 0.02)),
        ((3, 3), (0.002, 0.03)),
        ((3, 8), (0.01, 0.01)),
        ((8, 3), (0.002, 0.02)),
        ((6, 2), (0.002, 0.03)),
        ((2, 6), (0.002, 0.03)),
        ((5, 5), (0.01, 0.01)),
        ((8, 8), (0.03, 0.03)),
    ):
        yield same(usual, captures=captures, spread=spread, changes=(0.0, 0.08))
    for model in (
        Steps(25, 0.06, phi=0.9),
        Steps(100, 0.06, "pink"),
        Steps(50, 0.02, "markov", dwell=20, slower=1.2),
        Steps(25, strays=0.04, slower=3.0),
    ):
        yield same(model, captures=(4, 4), spread=(0.01, 0.01))
    # Windows too short to show how steps are correlated.
    for model in (
        Steps(6),
        Steps(6, 0.2, phi=0.9),
        Steps(6, strays=0.04, slower=3.0),
        Steps(8, 0.2, "trend"),
    ):
        yield same(model, captures=(3, 3), spread=(0.01, 0.01), changes=(0.0, 1.0))


TABLES = {
    "no change": null_cells,
    "small changes": old_cells,
    "another mix of slow steps": mix_cells,
    "several captures": run_cells,
}


# --- one cell ------------------------------------------------------------------------------------


def rows_of(cell: Cell, runs: int, seed: int) -> list[Row]:
    """One row for each change."""
    rng = np.random.default_rng([seed, *repr(cell).encode()])
    counts = {(change, t): Counter() for change in cell.changes for t in THRESHOLDS}  # type: ignore[var-annotated]
    covered = {change: [0, 0] for change in cell.changes}
    unsettled = 0
    confirmed = min(cell.captures) > 1
    for _ in range(runs):
        sides = [
            [_series(model.draw(rng) + spread * rng.standard_normal()) for _ in range(captures)]
            for model, spread, captures in zip(
                (cell.before, cell.after), cell.spread, cell.captures, strict=True
            )
        ]
        change = change_of_steps(sides[0], sides[1])
        unsettled += change.drifts
        estimands = [_Known.of(change.mean), _Known.of(change.typical)]
        p90, slow = _Known.of(_p90(sides, change.phi)), slow_steps_check(change).result
        for shift, true in ((math.log1p(one), one) for one in cell.changes):
            for at, mix in enumerate((cell.mix, 0.0)):
                one = estimands[at]
                near = abs(one.estimate - mix) <= one.near + 1e-12
                covered[true][at] += change.drifts or near
            for threshold in THRESHOLDS:
                results = [
                    step_result(
                        one.moved(shift), threshold, confirmed=confirmed, settles=not change.drifts
                    )
                    for one in estimands
                ]
                others = [other_result(p90.moved(shift), P90_THRESHOLD), slow]
                status = status_of(results, others, settles=not change.drifts)
                counts[true, threshold][status] += 1
    return [
        Row(
            cell,
            change,
            {t: {one: counts[change, t][one] / runs for one in STATUSES} for t in THRESHOLDS},
            (covered[change][0] / runs, covered[change][1] / runs),
            unsettled / runs,
        )
        for change in cell.changes
    ]


def _series(logs: np.ndarray) -> StepSeries:
    lengths = 1000.0 * np.exp(logs)
    found = classify_steps(lengths.tolist())
    return StepSeries.of(lengths, heavy=found.heavy if found else None)


def _p90(sides: Sequence[Sequence[StepSeries]], phi: float) -> ChangeEstimate:
    values = [[log_quantile(one.lengths, 0.9) for one in side] for side in sides]
    variances = [[log_quantile_variance(one.lengths, 0.9, phi) for one in side] for side in sides]
    return combine((values[0], values[1]), (variances[0], variances[1]))


@dataclass(frozen=True)
class _Known:
    """An estimate with its half widths: times that are all longer by one factor move it alone."""

    estimate: float
    near: float
    far: float

    @staticmethod
    def of(change: ChangeEstimate) -> _Known:
        return _Known(change.estimate, change.interval_half_width, change.certain_half_width)

    def moved(self, shift: float) -> Bounds:
        logs = (
            self.estimate + shift,
            self.estimate + shift - self.near,
            self.estimate + shift + self.near,
            self.estimate + shift - self.far,
            self.estimate + shift + self.far,
        )
        return Bounds(*(100.0 * math.expm1(min(one, 700.0)) for one in logs))


# --- tables --------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=2000, help="a cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(map(repr, TABLES))}; default all")


def bench_verdict(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for title in options.tables or TABLES:
            cells = list(TABLES[title]())
            found = pool.map(
                rows_of, cells, itertools.repeat(options.runs), itertools.repeat(options.seed)
            )
            print(f"\n## {title.capitalize()}\n")
            print("\n".join(markdown([row for rows in found for row in rows])), flush=True)
    print(f"\n{options.runs:,} runs a cell, seed {options.seed}.")
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)


def markdown(rows: Sequence[Row]) -> list[str]:
    """One line for each row, in per cent of its runs; "failing" is fail and likely_fail."""
    low, high = THRESHOLDS
    titles = ["steps", "n", "captures", "change", f"failing, {low:.0f} %", f"pass, {low:.0f} %"]
    titles += [f"{one}, {high:.0f} %" for one in TITLES]
    titles += ["not independent", "coverage, mean", "typical"]
    lines = [_line(titles), "|---|" + "---:|" * (len(titles) - 1)]
    for row in rows:
        shares = [row.failing(low), row.statuses[low]["pass"]]
        shares += [row.statuses[high][one] for one in STATUSES]
        figures = [*shares, row.unsettled, *row.coverage]
        cells = [*_described(row.cell), f"{100 * row.change:+.0f} %"]
        lines.append(_line([*cells, *(f"{100 * one:.1f}" for one in figures)]))
    return lines


def _described(cell: Cell) -> tuple[str, str, str]:
    before, after = cell.before, cell.after
    model = str(before) if str(before) == str(after) else f"{before} -> {after}"
    steps = str(before.steps) if before.steps == after.steps else f"{before.steps}, {after.steps}"
    captures = " vs ".join(map(str, cell.captures)) if max(cell.captures) > 1 else "1"
    if any(cell.spread):
        captures += f", {' vs '.join(f'{100 * one:g} %' for one in cell.spread)}"
    return model, steps, captures


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
