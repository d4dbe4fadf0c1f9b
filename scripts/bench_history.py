"""How often change points are found where none are, and where one is.

Usage: python scripts/bench_history.py [RUNS]
"""

from __future__ import annotations

import math
import sys

import numpy as np

from marin_profile.history.change_points import change_points

SEED = 20260701
BEFORE = 30


def series(rng: np.random.Generator, kind: str, cv: float, count: int) -> np.ndarray:
    """Log step times of `count` runs without any change."""
    if kind == "t(3)":
        return rng.standard_t(3, count) * cv / math.sqrt(3)
    values = rng.normal(0, cv, count)
    if kind == "4 % slow runs x 1.5":
        values += np.where(rng.random(count) < 0.04, math.log(1.5), 0)
    if kind == "AR(1) 0.5":
        for at in range(1, count):
            values[at] = 0.5 * values[at - 1] + math.sqrt(0.75) * values[at]
    return values


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = np.random.default_rng(SEED)
    print(f"False alarms: histories with any change point, of {runs:,} without one, CV 3 %")
    for kind in ("lognormal", "t(3)", "4 % slow runs x 1.5", "AR(1) 0.5"):
        cells = []
        for count in (6, 10, 30, 100):
            found = sum(bool(change_points(series(rng, kind, 0.03, count))) for _ in range(runs))
            cells.append(f"{count}: {100 * found / runs:.2f} %")
        print(f"  {kind:20} {'   '.join(cells)}", flush=True)
    print(f"+5 % after {BEFORE} records: one change, within 3 records of the place")
    for cv in (0.01, 0.02, 0.03):
        cells = []
        for after in (3, 5, 10, 20, 30):
            hits = 0
            for _ in range(runs // 10):
                values = series(rng, "lognormal", cv, BEFORE + after)
                values[BEFORE:] += math.log(1.05)
                places = [point.index for point in change_points(values)]
                hits += len(places) == 1 and abs(places[0] - BEFORE) <= 3
            cells.append(f"{after}: {1000 * hits / runs:.0f} %")
        print(f"  CV {100 * cv:.0f} %  {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
