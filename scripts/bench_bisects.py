"""Searches for the commit that made the step slower, simulated: right and wrong names, captures.

The good end is commit 0, the bad end commit 32; which commit is the first bad one is drawn for each
search. Captures are asked for and judged by the very code of `marin-profile bisect`, at most 40 of
them, at a confidence of 99 %; the spread from run to run is not told unless the line says so.

window drift  every capture has a drift of its own, 1.5 %
slow drift    the machine's drift is a random walk of 0.5 % a capture
line          the machine slows down by 0.2 % with each capture
second        another commit, drawn as well, adds 5 %
skipped       6 commits, drawn, cannot be captured; to name the fewest that may be it is right, too
strays        1 in 20 captures is 20 % slower (a neighbour)
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.experiment.search import Measurement, Search, judge

COMMITS = 32
SPREADS = (0.01, 0.03, 0.08)
LEVEL = math.log(0.5)
STRAYS, STRAY = 0.05, math.log(1.2)
SECOND = math.log(1.05)
SKIPPED = 6
STATED = (0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999, 1.0)


@dataclass(frozen=True)
class Case:
    name: str
    change: float = 0.3
    commits: int = COMMITS
    heavy: bool = False
    strays: bool = False
    window_drift: float = 0.0
    walk: float = 0.0
    line: float = 0.0
    second: bool = False
    skipped: bool = False
    told: bool = False


CASES = (
    Case("+30 %"),
    Case("+30 %, spread told", told=True),
    Case("+30 %, window drift", window_drift=0.015),
    Case("+30 %, slow drift", walk=0.005),
    Case("+30 %, line", line=0.002),
    Case("+30 %, second", second=True),
    Case("+30 %, skipped", skipped=True),
    Case("+30 %, t3", heavy=True),
    Case("+30 %, strays", strays=True),
    Case("+30 % of 200 commits", commits=200),
    Case("+10 %", change=0.1),
    Case("+5 %", change=0.05),
    Case("none", change=0.0),
    Case("none, window drift", change=0.0, window_drift=0.015),
    Case("none, slow drift", change=0.0, walk=0.005),
    Case("none, strays", change=0.0, strays=True),
    Case("-20 %", change=-0.2),
)


@dataclass(frozen=True)
class Bisect:
    """A search when it is over; `on_the_way`: the probability of the likeliest commit after each
    capture, and whether it was the one."""

    search: Search
    first_bad: int
    slower: bool
    captures: int
    on_the_way: tuple[tuple[float, bool], ...]

    @property
    def outcome(self) -> str:
        search = self.search
        if search.state == "found":
            return "right" if self.slower and search.found == self.first_bad else "wrong"
        if search.state == "no_slowdown":
            return "wrong" if self.slower else "none"
        if search.confidence < 0.99:
            return "open"
        low, high = search.between
        return "between" if self.slower and low < self.first_bad <= high else "wrong"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="searches a line")
    parser.add_argument("--seed", type=int, default=1)


def bench_bisects(options: argparse.Namespace) -> None:
    print("\n".join(cases_table(options.runs, options.seed)), end="\n\n", flush=True)
    print("\n".join(calibration_table(options.runs, options.seed)), flush=True)


def bisect(rng: np.random.Generator, case: Case, spread: float) -> Bisect:
    first_bad = int(rng.integers(1, case.commits + 1))
    other = int(rng.integers(1, case.commits + 1))
    inside = np.arange(1, case.commits)
    skipped = rng.choice(inside, SKIPPED, replace=False).tolist() if case.skipped else ()
    measured: list[Measurement] = []
    on_the_way: list[tuple[float, bool]] = []
    drift = 0.0

    def judged() -> Search:
        told = spread if case.told else None
        return judge(measured, case.commits, spread=told, skipped=skipped)

    search = judged()
    while search.next is not None:
        noise = rng.standard_t(3) / math.sqrt(3.0) if case.heavy else rng.standard_normal()
        drift += case.walk * rng.standard_normal() + case.line
        time = LEVEL + spread * noise + drift + case.window_drift * rng.standard_normal()
        time += math.log1p(case.change) * (search.next >= first_bad)
        time += SECOND * (case.second and search.next >= other)
        time += STRAY * (case.strays and rng.random() < STRAYS)
        measured.append(Measurement(search.next, float(time)))
        search = judged()
        likeliest = max(range(1, case.commits + 1), key=search.posterior.__getitem__)
        is_right = case.change > 0 and likeliest == first_bad
        on_the_way.append((search.posterior[likeliest], is_right))
    return Bisect(search, first_bad, case.change > 0, len(measured), tuple(on_the_way))


def bisects(runs: int, seed: Sequence[int], case: Case, spread: float) -> list[Bisect]:
    rng = np.random.default_rng(seed)
    return [bisect(rng, case, spread) for _ in range(runs)]


def cases_table(runs: int, seed: int) -> Iterator[str]:
    yield f"{runs:,} searches a line, {COMMITS} commits:"
    yield ""
    titles = ("right", "among skipped", "no slowdown", "wrong", "open")
    yield _line("change", "spread", *titles, "captures, median", "nine of ten", "most")
    yield "|---:" * 10 + "|"
    for at, case in enumerate(CASES):
        for spread in SPREADS:
            found = bisects(runs, [seed, at, round(1000 * spread)], case, spread)
            outcomes = [one.outcome for one in found]
            captures = [one.captures for one in found]
            yield _line(
                case.name,
                f"{100 * spread:.0f} %",
                *(
                    f"{100 * outcomes.count(one) / runs:.1f} %"
                    for one in ("right", "between", "none", "wrong", "open")
                ),
                *(str(int(np.quantile(captures, q, method="higher"))) for q in (0.5, 0.9, 1.0)),
            )


def calibration_table(runs: int, seed: int) -> Iterator[str]:
    yield "After each capture, the likeliest commit: as probable as stated?"
    yield ""
    yield _line("stated", "mean stated", "right", "captures")
    yield "|---:" * 4 + "|"
    pairs = [
        pair
        for spread in SPREADS
        for one in bisects(5 * runs, [seed, 1000, round(1000 * spread)], CASES[0], spread)
        for pair in one.on_the_way
    ]
    for low, high in itertools.pairwise(STATED):
        inside = [(stated, right) for stated, right in pairs if low <= stated < high]
        if inside:
            yield _line(
                f"{100 * low:g} to {100 * high:g} %",
                f"{100 * np.mean([stated for stated, _ in inside]):.1f} %",
                f"{100 * np.mean([right for _, right in inside]):.1f} %",
                f"{len(inside):,}",
            )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
