"""A drift is told from a change; noise, outliers and lone steps are no drift."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from marin_profile.history.development import LINE, WANDER, Development, Drift, development
from marin_profile.verdict.student import Floats

Rng = np.random.Generator


def line(rng: Rng) -> Floats:
    """0.4 % per capture with 1 % of noise."""
    return rng.normal(0, 0.01, 60) + 0.004 * np.arange(60)


def alike(rng: Rng) -> Floats:
    """AR(1) 0.7."""
    values = rng.normal(0, 0.03, 100)
    for at in range(1, 100):
        values[at] = 0.7 * values[at - 1] + math.sqrt(0.51) * values[at]
    return values


def walk(rng: Rng) -> Floats:
    return rng.normal(0, 0.01, 100) + np.cumsum(rng.normal(0, 0.01, 100))


@pytest.mark.parametrize(
    ("make", "kinds", "least"),
    [(line, {LINE}, 38), (alike, {WANDER}, 38), (walk, {LINE, WANDER}, 34)],
)
def test_a_drift_is_no_change(make: Callable[[Rng], Floats], kinds: set[str], least: int) -> None:
    rng = np.random.default_rng(21)
    found = [development(make(rng).tolist()) for _ in range(40)]
    drifting = [one for one in found if one.drift is not None and not one.changes]
    assert len(drifting) >= least
    assert {one.drift.kind for one in drifting if one.drift} <= kinds


def test_a_line_by_hand() -> None:
    found = development([0.01 * at for at in range(12)])
    assert found == Development((), Drift(LINE, 0, pytest.approx(0.11)))
    assert found.drift is not None
    assert found.drift.is_slower
    assert not development([-0.01 * at for at in range(12)]).drift.is_slower  # type: ignore


def test_a_change_is_no_drift() -> None:
    rng = np.random.default_rng(22)
    right = 0
    for _ in range(40):
        values = rng.normal(0, 0.01, 60)
        values[30:] += 0.05
        found = development(values.tolist())
        right += [change.index for change in found.changes] == [30] and found.drift is None
    assert right >= 38


def test_a_drift_after_a_change_starts_there() -> None:
    rng = np.random.default_rng(23)
    values = rng.normal(0, 0.002, 60)
    values[30:] += 0.3 + 0.005 * np.arange(30)
    found = development(values.tolist())
    assert [change.index for change in found.changes][:1] == [30]
    assert found.drift is not None
    assert found.drift.start >= 30
    assert found.drift.is_slower


@pytest.mark.parametrize("count", [6, 30, 100])
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_noise_and_outlier_captures_neither_change_nor_drift(count: int, outliers: float) -> None:
    rng = np.random.default_rng(24)
    runs, found = 300, 0
    for _ in range(runs):
        values = rng.normal(0, 0.03, count)
        values += np.where(rng.random(count) < outliers, math.log(1.3), 0)
        found += development(values.tolist()) != Development()
    # 1 % of each kind, and two standard errors of the simulation.
    assert found <= 0.02 * runs + 2 * math.sqrt(0.02 * runs)


@pytest.mark.parametrize("count", range(6))
def test_below_six_values_nothing_is_said(count: int) -> None:
    assert development([0.0, 0.0, 0.0, 1.0, 1.0][:count]) == Development()


def test_constant_values() -> None:
    assert development([7.0] * 50) == Development()
