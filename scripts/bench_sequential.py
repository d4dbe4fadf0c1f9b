"""Looking after every pair: false answers, coverage, and how many pairs it takes.

Differences of log step times with a standard deviation of `sd`, up to 20 pairs a sequence, a look
after each from the third on, by the very code that judges pairs. Errors of differences:

normal       independent
t3           independent, Student's t with 3 degrees of freedom
AR pairs     second - first capture is AR(1) with phi 0.5 from pair to pair
AR captures  the machine's state is AR(1) with phi 0.9 from capture to capture, as wide as the noise
drift        the machine slows down by 0.1 sd with each capture

The last three depend on the order: ABAB takes before, after, before, after, ...; ABBA turns every
second pair round.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from marin_profile.verdict.paired import CERTAIN, INTERVAL, paired_change, pairs_needed
from marin_profile.verdict.sequential import FIRST_LOOK, LAST_LOOK, Look
from marin_profile.verdict.student import Floats, t_quantile

THRESHOLD = np.log1p(0.05)
CHANGES = (0.0, 0.05, 0.10)
SPREADS = (0.02, 0.05, 0.10, 0.20)
DRIFTS = (0.0, 1.0, 3.0)
PAIRS = (3, 5, 10)
PHI_PAIRS = 0.5
PHI_CAPTURES = 0.9
DRIFT_A_CAPTURE = 0.1


@dataclass(frozen=True)
class Looks:
    """Of each sequence: the first look that says slower or within (LAST_LOOK + 1: none), and
    whether all intervals hold the true change."""

    slower_at: Floats
    within_at: Floats
    covered: np.ndarray

    @property
    def settled_at(self) -> Floats:
        return np.minimum(self.slower_at, self.within_at)


@dataclass(frozen=True)
class Widths:
    """Median width of the unpaired interval over that of the pairs; coverage of both."""

    ratio: float
    paired_coverage: float
    welch_coverage: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=100_000, help="sequences a line")
    parser.add_argument("--seed", type=int, default=1)


def bench_sequential(options: argparse.Namespace) -> None:
    print("\n".join(errors_table(options.runs, options.seed)), end="\n\n")
    print("\n".join(pairs_table(options.runs, options.seed)), end="\n\n")
    print("\n".join(widths_table(options.runs, options.seed)))


# --- draws -------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, runs: int) -> Floats:
    return rng.standard_normal((runs, LAST_LOOK))


def heavy(rng: np.random.Generator, runs: int) -> Floats:
    return rng.standard_t(3, (runs, LAST_LOOK)) / np.sqrt(3.0)


def correlated(rng: np.random.Generator, runs: int, *, turned: bool) -> Floats:
    return _as_taken(_autoregressive(rng, runs, LAST_LOOK, PHI_PAIRS), turned)


def wandering(rng: np.random.Generator, runs: int, *, turned: bool) -> Floats:
    state = _autoregressive(rng, runs, 2 * LAST_LOOK, PHI_CAPTURES)
    own = rng.standard_normal((runs, 2 * LAST_LOOK))
    return _second_less_first((state + own) / np.sqrt(2.0), turned)


def drifting(rng: np.random.Generator, runs: int, *, turned: bool) -> Floats:
    own = rng.standard_normal((runs, 2 * LAST_LOOK)) / np.sqrt(2.0)
    return _second_less_first(own + DRIFT_A_CAPTURE * np.arange(2 * LAST_LOOK), turned)


def _autoregressive(rng: np.random.Generator, runs: int, count: int, phi: float) -> Floats:
    noise = rng.standard_normal((runs, count))
    for at in range(1, count):
        noise[:, at] = phi * noise[:, at - 1] + np.sqrt(1.0 - phi**2) * noise[:, at]
    return noise


def _second_less_first(captures: Floats, turned: bool) -> Floats:
    return _as_taken(captures[:, 1::2] - captures[:, ::2], turned)


def _as_taken(second_less_first: Floats, turned: bool) -> Floats:
    """After - before: turned, every second pair has the capture after the change first."""
    signs = np.where(np.arange(LAST_LOOK) % 2, -1.0, 1.0) if turned else 1.0
    return np.asarray(second_less_first * signs)


ERRORS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": normal,
    "t3": heavy,
    "AR pairs, ABAB": partial(correlated, turned=False),
    "AR pairs, ABBA": partial(correlated, turned=True),
    "AR captures, ABAB": partial(wandering, turned=False),
    "AR captures, ABBA": partial(wandering, turned=True),
    "drift, ABAB": partial(drifting, turned=False),
    "drift, ABBA": partial(drifting, turned=True),
}


# --- figures -----------------------------------------------------------------------------------


def looks(errors: Floats, change: float, sd: float, threshold: float) -> Looks:
    """`change` and `threshold` are logarithms; the errors have a standard deviation of 1."""
    values = change + sd * errors
    slower_at = np.full(len(values), LAST_LOOK + 1)
    within_at = slower_at.copy()
    covered = np.ones(len(values), np.bool_)
    for pairs in range(LAST_LOOK, FIRST_LOOK - 1, -1):
        look = Look(paired_change(values[:, :pairs], np.nan))
        slower_at[look.is_slower()] = pairs
        within_at[look.is_within(threshold)] = pairs
        covered &= (look.low <= change) & (change <= look.high)
    return Looks(slower_at, within_at, covered)


def naive_false_alarms(errors: Floats) -> float:
    """With the bound of a comparison of fixed size, looked at after every pair."""
    alarms = np.zeros(len(errors), np.bool_)
    for pairs in range(FIRST_LOOK, LAST_LOOK + 1):
        change = paired_change(errors[:, :pairs], np.nan)
        alarms |= change.estimate - change.half_width(CERTAIN) > 0
    return float(alarms.mean())


def settled_at_fixed_size(errors: Floats, change: float, sd: float, pairs: int) -> float:
    found = paired_change(change + sd * errors[:, :pairs], np.nan)
    within = found.estimate + found.half_width(INTERVAL) < THRESHOLD
    slower = found.estimate - found.half_width(CERTAIN) > 0
    return float((within | slower).mean())


def widths(own: Floats, common: Floats) -> Widths:
    """`own`: (2, runs, pairs), the captures' noise; `common`: (runs, pairs), the pairs' drift."""
    before, after = own + common
    paired = paired_change(after - before, np.nan)
    pairs = before.shape[1]
    variances = np.stack([side.var(axis=1, ddof=1) / pairs for side in (before, after)])
    freedom = variances.sum(axis=0) ** 2 / ((variances**2).sum(axis=0) / (pairs - 1))
    welch = t_quantile(INTERVAL, freedom) * np.sqrt(variances.sum(axis=0))
    narrow = paired.half_width(INTERVAL)
    size = np.abs(paired.estimate)
    return Widths(
        float(np.median(welch) / np.median(narrow)),
        float((size <= narrow).mean()),
        float((size <= welch).mean()),
    )


# --- tables ------------------------------------------------------------------------------------


def errors_table(runs: int, seed: int) -> Iterator[str]:
    yield "At no change, looking after every pair (per cent of sequences):"
    yield ""
    yield from _header(
        "errors", "falsely slower", "falsely within", "all intervals cover", "slower, fixed bound"
    )
    for at, (name, draw) in enumerate(ERRORS.items()):
        errors = draw(np.random.default_rng([seed, at]), runs)
        # "Within" is false where the change is the threshold: move both by the change.
        found = looks(errors, 0.0, 1.0, 0.0)
        yield _line(
            name,
            f"{100 * (found.slower_at <= LAST_LOOK).mean():.2f}",
            f"{100 * (found.within_at <= LAST_LOOK).mean():.2f}",
            f"{100 * found.covered.mean():.2f}",
            f"{100 * naive_false_alarms(errors):.2f}",
        )


def pairs_table(runs: int, seed: int) -> Iterator[str]:
    errors = normal(np.random.default_rng([seed, 100]), runs)
    yield "Pairs until settled, normal errors, threshold 5 %, at most 20 pairs:"
    yield ""
    yield from _header(
        "change",
        "sd",
        "planned",
        "settled then",
        "mean pairs",
        "median",
        "settled by 20",
        "slower",
        "within",
    )
    for change in CHANGES:
        for sd in SPREADS:
            moved = float(np.log1p(change))
            planned = pairs_needed(moved, float(THRESHOLD), sd, 1)
            then = (
                f"{100 * settled_at_fixed_size(errors, moved, sd, planned):.0f} %"
                if planned is not None and planned <= LAST_LOOK
                else "-"
            )
            found = looks(errors, moved, sd, float(THRESHOLD))
            settled = found.settled_at
            slower = (found.slower_at < found.within_at).mean()
            within = (found.within_at < found.slower_at).mean()
            yield _line(
                f"{100 * change:+.0f} %",
                f"{100 * sd:.0f} %",
                "-" if planned is None else str(planned),
                then,
                f"{np.minimum(settled, LAST_LOOK).mean():.1f}",
                _median(settled),
                f"{100 * (settled <= LAST_LOOK).mean():.1f} %",
                f"{100 * slower:.1f} %",
                f"{100 * within:.2f} %",
            )


def widths_table(runs: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng([seed, 200])
    yield "Pairs against captures that are not paired (Welch), 95 % intervals of the same captures:"
    yield ""
    yield from _header("drift / noise", "pairs", "Welch / pairs", "pairs cover", "Welch covers")
    for drift in DRIFTS:
        for pairs in PAIRS:
            own = rng.standard_normal((2, runs, pairs))
            found = widths(own, drift * rng.standard_normal((runs, pairs)))
            yield _line(
                f"{drift:.0f}",
                str(pairs),
                f"{found.ratio:.2f}",
                f"{100 * found.paired_coverage:.1f} %",
                f"{100 * found.welch_coverage:.1f} %",
            )


def _median(settled: Floats) -> str:
    median = int(np.median(settled))
    return str(median) if median <= LAST_LOOK else f"more than {LAST_LOOK}"


def _header(*titles: str) -> Iterator[str]:
    yield _line(*titles)
    yield "|---:" * len(titles) + "|"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
