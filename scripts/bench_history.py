"""How often changes of level are found where none are, where one is, and where the level drifts.

Usage: python scripts/bench_history.py [RUNS]
"""

from __future__ import annotations

import math
import sys

import numpy as np

from marin_profile.history.development import development

SEED = 20260701
BEFORE, TRIED = 30, 1_000
CV = 0.03
COUNTS = (6, 10, 30, 100)
KINDS = (
    "lognormal",
    "t(3)",
    "4 % of captures x 1.5",
    "10 % of captures x 1.3",
    "AR(1) 0.5",
    "line, +0.3 % a capture",
)


def series(rng: np.random.Generator, kind: str, cv: float, count: int) -> np.ndarray:
    """Log step times of `count` runs without any change."""
    if kind == "t(3)":
        return rng.standard_t(3, count) * cv / math.sqrt(3)
    values = rng.normal(0, cv, count)
    if kind == "4 % of captures x 1.5":
        values += np.where(rng.random(count) < 0.04, math.log(1.5), 0)
    if kind == "10 % of captures x 1.3":
        values += np.where(rng.random(count) < 0.1, math.log(1.3), 0)
    if kind == "AR(1) 0.5":
        for at in range(1, count):
            values[at] = 0.5 * values[at - 1] + math.sqrt(0.75) * values[at]
    if kind == "line, +0.3 % a capture":
        values += 0.003 * np.arange(count)
    return values


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"Histories with a change (a drift), of {runs:,} without a change, CV {100 * CV:.0f} %")
    for number, kind in enumerate(KINDS):
        cells = []
        for count in COUNTS:
            # Each cell has numbers of its own: another kind or count leaves it as it is.
            rng = np.random.default_rng((SEED, number, count))
            changed = drifted = 0
            for _ in range(runs):
                found = development(series(rng, kind, CV, count).tolist())
                changed += bool(found.changes)
                drifted += found.drift is not None
            cells.append(f"{count}: {100 * changed / runs:.2f} % ({100 * drifted / runs:.1f} %)")
        print(f"  {kind:22} {'   '.join(cells)}", flush=True)
    print(f"+5 % after {BEFORE} records, {TRIED:,} histories: one change, within 3 records (drift)")
    for cv in (0.01, 0.02, 0.03):
        cells = []
        for after in (3, 5, 10, 20, 30):
            rng = np.random.default_rng((SEED, after))
            hits = drifts = 0
            for _ in range(TRIED):
                values = series(rng, "lognormal", cv, BEFORE + after)
                values[BEFORE:] += math.log(1.05)
                found = development(values.tolist())
                places = [point.index for point in found.changes]
                hits += len(places) == 1 and abs(places[0] - BEFORE) <= 3
                drifts += found.drift is not None and not places
            cells.append(f"{after}: {100 * hits / TRIED:.0f} % ({100 * drifts / TRIED:.0f} %)")
        print(f"  CV {100 * cv:.0f} %  {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
