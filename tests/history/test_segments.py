"""The best split, against trying every start of every segment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marin_profile.history.segments import best_bounds


def by_trying_all(values: list[float], penalty: float, shortest: int) -> list[int]:
    """Optimal partitioning (Jackson et al. 2005), in whole loops."""
    best: list[tuple[float, list[int]]] = [(-penalty, [0])]
    for end in range(1, len(values) + 1):
        found = [(math.inf, [0])]
        for start in range(max(0, end - shortest + 1)):
            part = values[start:end]
            mean = math.fsum(part) / len(part)
            square = math.fsum((value - mean) ** 2 for value in part)
            found.append((best[start][0] + square + penalty, [*best[start][1], end]))
        best.append(min(found, key=lambda one: one[0]))
    return best[-1][1]


@pytest.mark.parametrize("penalty", [0.5, 4.0, 8.0])
@pytest.mark.parametrize("shortest", [1, 3])
def test_it_is_the_best_of_all_splits(penalty: float, shortest: int) -> None:
    rng = np.random.default_rng(3)
    for run in range(60):
        count = int(rng.integers(6, 40))
        values = rng.normal(0, 1, count)
        if run % 2:
            values += np.repeat(rng.normal(0, 3, count), rng.integers(1, 12))[:count]
        listed = values.tolist()
        assert best_bounds(listed, penalty, shortest) == by_trying_all(listed, penalty, shortest)


def test_by_hand() -> None:
    assert best_bounds([0, 0, 0, 5, 5, 5], 8, 3) == [0, 3, 6]
    # One segment has squares 6 x 2.5^2 = 37.5, two have none.
    assert best_bounds([0, 0, 0, 5, 5, 5], 37.4, 3) == [0, 3, 6]
    assert best_bounds([0, 0, 0, 5, 5, 5], 37.6, 3) == [0, 6]
    assert best_bounds([0, 0, 5, 5, 5], 1, 3) == [0, 5]
    assert best_bounds([0.1] * 50, 1, 3) == [0, 50]
    assert best_bounds([], 1, 3) == [0, 0]


@pytest.mark.parametrize("kind", ["noise", "levels", "walk"])
def test_few_starts_are_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that twice the values take about twice the time; without pruning they are half of all."""
    from marin_profile.history import segments

    kept = []
    joined = segments._joined

    def counted(*given):  # type: ignore[no-untyped-def]
        found = joined(*given)
        kept.append(len(found))
        return found

    monkeypatch.setattr(segments, "_joined", counted)
    rng = np.random.default_rng(4)
    values = rng.normal(0, 1, 2000)
    values += {
        "noise": 0.0,
        "levels": np.arange(2000) // 100,
        "walk": np.cumsum(rng.normal(0, 0.3, 2000)),
    }[kind]
    best_bounds(values.tolist(), 2 * math.log(2000), 3)
    assert max(kept) < 60
