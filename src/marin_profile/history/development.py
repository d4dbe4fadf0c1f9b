"""How a series of log step times developed: it changed its level, or it drifts.

Contract
* A drift is a straight line, or a level that wanders: each value leads to the next (AR(1) about a
  mean), or the level is carried along (exponential smoothing).
* Where such a model describes the whole series better than its changes of level do (Schwarz's
  criterion: each change counts as CHANGE_COST figures, each drift as two), the series drifts and
  has no changes. Else the values since the last change drift if a model is so much likelier than a
  level (LEAST_GAIN) as it hardly ever is on noise.
* Both are judged on values without outliers, which neither make nor hide a drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marin_profile.history.change_points import (
    SHORTEST_SEGMENT,
    SMALLEST_SHIFT,
    ChangePoint,
    change_points,
    near_the_median,
    without_outliers,
)
from marin_profile.verdict.noise import SMALLEST_SD
from marin_profile.verdict.student import Floats

LINE, WANDER = "line", "wander"
CHANGE_COST = 2.5
LEAST_GAIN, GAIN_OF_FEW = 12.0, 40.0
SMOOTHING = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
MOST_PHI = 0.99
ENDS = 5


@dataclass(frozen=True)
class Drift:
    """`kind`: LINE or WANDER. `start` is the first value that drifts; `log_change` leads from there
    to the end: along the line, or from the mean of the first five values to that of the last."""

    kind: str
    start: int
    log_change: float

    @property
    def is_slower(self) -> bool:
        return self.log_change >= SMALLEST_SHIFT


@dataclass(frozen=True)
class Development:
    """The changes of level, in order, and the drift since the last one."""

    changes: tuple[ChangePoint, ...] = ()
    drift: Drift | None = None


def development(values: Sequence[float]) -> Development:
    """Fewer than six values neither change nor drift."""
    if len(values) < 2 * SHORTEST_SEGMENT:
        return Development()
    whole = np.asarray(values, np.float64)
    changes = tuple(change_points(values))
    if changes:
        kind = _better_than(changes, whole)
        if kind is not None:
            return Development((), _drift(kind, 0, near_the_median(whole)))
    start = changes[-1].index if changes else 0
    since = whole[start:]
    if len(since) < 2 * SHORTEST_SEGMENT:
        return Development(changes)
    since = near_the_median(since)
    level = _misfit(float(((since - since.mean()) ** 2).sum()), len(since))
    misfit, kind = _best_drift(since)
    drifts = level - misfit > LEAST_GAIN + GAIN_OF_FEW / len(since)
    return Development(changes, _drift(kind, start, since) if drifts else None)


def _better_than(changes: Sequence[ChangePoint], values: Floats) -> str | None:
    """The drift that describes the values better than the changes, if one does."""
    bounds = [0, *(change.index for change in changes), len(values)]
    spread = without_outliers(values)[1]
    parts = [near_the_median(values[start:end], spread) for start, end in pairwise(bounds)]
    squares = math.fsum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    per_figure = math.log(len(values))
    of_levels = _misfit(squares, len(values)) + (CHANGE_COST * len(changes) + 1) * per_figure
    misfit, kind = _best_drift(np.concatenate(parts))
    return kind if misfit + 2 * per_figure < of_levels else None


def _best_drift(values: Floats) -> tuple[float, str]:
    return min(
        (_misfit(_squares_about_line(values), len(values)), LINE),
        (_misfit(_squares_of_wander(values), len(values)), WANDER),
    )


def _misfit(squares: float, count: int) -> float:
    """-2 log likelihood, but for a constant."""
    return count * math.log(max(squares / count, SMALLEST_SD**2))


def _slope(values: Floats) -> float:
    at = np.arange(len(values)) - (len(values) - 1) / 2
    return float(at @ values / (at @ at))


def _squares_about_line(values: Floats) -> float:
    at = np.arange(len(values)) - (len(values) - 1) / 2
    return float(((values - values.mean() - _slope(values) * at) ** 2).sum())


def _squares_of_wander(values: Floats) -> float:
    """Of what the values before do not foretell, by the model that foretells best."""
    rest = values - values.mean()
    square = float(rest[:-1] @ rest[:-1])
    phi = min(max(float(rest[1:] @ rest[:-1]) / square, 0.0), MOST_PHI) if square else 0.0
    first = float(rest[0]) ** 2 * (1 - phi**2)
    about_mean = first + float(((rest[1:] - phi * rest[:-1]) ** 2).sum())
    listed = values.tolist()
    return min(about_mean, *(_squares_of_smoothing(listed, weight) for weight in SMOOTHING))


def _squares_of_smoothing(values: Sequence[float], weight: float) -> float:
    level = values[-1]
    for value in reversed(values):  # the level at the start
        level += weight * (value - level)
    squares = 0.0
    for value in values:
        error = value - level
        squares += error * error
        level += weight * error
    return squares


def _drift(kind: str, start: int, values: Floats) -> Drift:
    if kind == LINE:
        return Drift(kind, start, _slope(values) * (len(values) - 1))
    ends = min(ENDS, len(values) // 2)
    return Drift(kind, start, float(values[-ends:].mean() - values[:ends].mean()))
