"""Each configuration of a history: counts, and how its step length developed.

Contract
* A group holds the records of one configuration: hardware, topology, label (else config hash), and
  what the step time measures (basis, step source, annotation, duration basis, devices, hosts).
  Figures never cross groups.
* All records count by status. A trend is that of one estimand: the typical step (median), or the
  mean, over the points that have it, in order of time.
* Slope, changes and drift are those of a known configuration alone: without a config hash or label,
  captures may measure different things. The noise floor is that of repeats (see `repeats`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from marin_profile.history.change_points import ChangePoint
from marin_profile.history.development import Development, Drift, development
from marin_profile.history.points import lengths_of, logs_of, points_of
from marin_profile.history.record import (
    MEAN,
    NOT_RECORDED,
    TYPICAL,
    Configuration,
    Estimand,
    HistoryRecord,
)
from marin_profile.history.repeats import repeats_of
from marin_profile.history.store import History
from marin_profile.verdict.noise import NoiseFloor


@dataclass(frozen=True)
class Slope:
    """Least squares on log step lengths since the last change: per record, with standard error."""

    per_record: float
    standard_error: float
    num_points: int


@dataclass(frozen=True)
class Trend:
    """One estimand over time. Changes and drift index into `points`."""

    estimand: Estimand
    points: tuple[HistoryRecord, ...]
    changes: tuple[ChangePoint, ...]
    drift: Drift | None
    slope: Slope | None
    noise: NoiseFloor | None

    @property
    def lengths(self) -> list[float]:
        """The points' step lengths in microseconds."""
        return lengths_of(self.points, self.estimand)


@dataclass(frozen=True)
class Group:
    """One configuration's records. `mean` is None where no record holds a mean."""

    configuration: Configuration
    num_records: int
    status_counts: tuple[tuple[str, int], ...]
    without_commit: int
    typical: Trend
    mean: Trend | None

    @property
    def trends(self) -> tuple[Trend, ...]:
        return (self.typical,) if self.mean is None else (self.typical, self.mean)


def groups_of(history: History) -> list[Group]:
    """The groups, sorted by configuration."""
    members: dict[Configuration, list[HistoryRecord]] = {}
    for record in history.records:
        members.setdefault(record.configuration.measured, []).append(record)
    ordered = sorted(members.items(), key=lambda item: item[0].order)
    return [_group(configuration, records) for configuration, records in ordered]


def _group(configuration: Configuration, records: Sequence[HistoryRecord]) -> Group:
    statuses = Counter(record.status or NOT_RECORDED for record in records)
    repeats = repeats_of(records)
    is_known = configuration.is_known
    mean = _trend(points_of(records, MEAN), MEAN, repeats.floors.mean, is_known)
    return Group(
        configuration=configuration,
        num_records=len(records),
        status_counts=tuple(sorted(statuses.items())),
        without_commit=repeats.without_commit,
        typical=_trend(points_of(records, TYPICAL), TYPICAL, repeats.floors.typical, is_known),
        mean=mean if mean.points else None,
    )


def _trend(
    points: Sequence[HistoryRecord], estimand: Estimand, noise: NoiseFloor | None, is_known: bool
) -> Trend:
    logs = logs_of(points, estimand)
    found = development(logs) if is_known else Development()
    since = logs[found.changes[-1].index :] if found.changes else logs
    return Trend(
        estimand=estimand,
        points=tuple(points),
        changes=found.changes,
        drift=found.drift,
        slope=_slope(since) if is_known else None,
        noise=noise,
    )


def _slope(logs: Sequence[float]) -> Slope | None:
    count = len(logs)
    if count < 3:
        return None
    middle, mean = (count - 1) / 2, math.fsum(logs) / count
    spread = math.fsum((at - middle) ** 2 for at in range(count))
    slope = math.fsum((at - middle) * (log - mean) for at, log in enumerate(logs)) / spread
    residuals = math.fsum((log - mean - slope * (at - middle)) ** 2 for at, log in enumerate(logs))
    return Slope(slope, math.sqrt(residuals / (count - 2) / spread), count)
