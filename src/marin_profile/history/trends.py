"""Each configuration of a history: counts, trend, noise floor, changes of level.

Contract
* A group holds the records of one configuration: hardware, topology, config hash, label, and what
  the step time measures (basis, step source, annotation, duration basis, devices, hosts). Figures
  never cross groups.
* All records count by status. A *point* is a record with a step time and a time of its own, one per
  capture (trace digest). Slope and changes are those of the points in order of time, and only of a
  known configuration: without a config hash or label, captures may measure different things.
* Noise is the spread of repeats: points of a known configuration whose verdict is not "fail" and
  whose trace is whole, since the last change of level among them. A shift is not noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from marin_profile.history.change_points import ChangePoint, change_points
from marin_profile.history.record import NOT_RECORDED, Configuration, HistoryRecord, record_of
from marin_profile.history.store import History
from marin_profile.schema import ProfileSummary
from marin_profile.verdict.noise import NoiseFloor, noise_floor
from marin_profile.verdict.rules import FAIL


@dataclass(frozen=True)
class Slope:
    """Least squares on log step times since the last change: per record, with standard error."""

    per_record: float
    standard_error: float
    num_points: int


@dataclass(frozen=True)
class Group:
    """One configuration's records. `changes` index into `points`."""

    configuration: Configuration
    num_records: int
    status_counts: tuple[tuple[str, int], ...]
    points: tuple[HistoryRecord, ...]
    changes: tuple[ChangePoint, ...]
    slope: Slope | None
    noise: NoiseFloor | None

    @property
    def medians(self) -> list[float]:
        """The points' median step times."""
        return [point.median for point in self.points if point.median is not None]


def groups_of(history: History) -> list[Group]:
    """The groups, sorted by configuration."""
    members: dict[Configuration, list[HistoryRecord]] = {}
    for record in history.records:
        members.setdefault(record.configuration, []).append(record)
    ordered = sorted(members.items(), key=lambda item: item[0].order)
    return [_group(configuration, records) for configuration, records in ordered]


def matching_repeats(
    history: History, summary: ProfileSummary, label: str | None = None
) -> list[float]:
    """Log median step times (us) of the history's repeats of this summary's configuration, other
    captures only: what `noise_floor` takes.

    Captures of one label are repeats whatever their config hash, which may differ with the run's
    id and commit.
    """
    wanted = record_of(summary, label=label)
    same = [
        record
        for record in history.records
        if _named(record.configuration) == _named(wanted.configuration)
    ]
    others = [
        record
        for record in same
        if record.trace_sha256 is None or record.trace_sha256 != wanted.trace_sha256
    ]
    return _repeats(others)


def _named(configuration: Configuration) -> Configuration:
    if configuration.label is None:
        return configuration
    return replace(configuration, config_hash=None)


def _group(configuration: Configuration, records: Sequence[HistoryRecord]) -> Group:
    statuses = Counter(record.status or NOT_RECORDED for record in records)
    points = _points(records)
    logs = _logs(points)
    is_known = configuration.is_known
    changes = change_points(logs) if is_known else []
    return Group(
        configuration=configuration,
        num_records=len(records),
        status_counts=tuple(sorted(statuses.items())),
        points=tuple(points),
        changes=tuple(changes),
        slope=_slope(_since_last(logs, changes)) if is_known else None,
        noise=noise_floor(_repeats(records)),
    )


def _points(records: Iterable[HistoryRecord]) -> list[HistoryRecord]:
    """In order. Of records of one capture the first counts."""
    seen: set[str] = set()
    points = []
    for record in records:
        if record.log_median is None or record.time_source == NOT_RECORDED:
            continue
        if record.trace_sha256 is not None:
            if record.trace_sha256 in seen:
                continue
            seen.add(record.trace_sha256)
        points.append(record)
    return points


def _repeats(records: Iterable[HistoryRecord]) -> list[float]:
    """A capture that failed once is left out, whatever its other records say."""
    usable = [record for record in records if record.configuration.is_known]
    failed = {record.trace_sha256 for record in usable if record.status == FAIL} - {None}
    sound = [
        record
        for record in usable
        if record.status != FAIL
        and record.trace_sha256 not in failed
        and not record.suspected_truncation
    ]
    logs = _logs(_points(sound))
    return _since_last(logs, change_points(logs))


def _logs(points: Iterable[HistoryRecord]) -> list[float]:
    return [log for point in points if (log := point.log_median) is not None]


def _since_last(logs: Sequence[float], changes: Sequence[ChangePoint]) -> list[float]:
    return list(logs[changes[-1].index :] if changes else logs)


def _slope(logs: Sequence[float]) -> Slope | None:
    count = len(logs)
    if count < 3:
        return None
    middle, mean = (count - 1) / 2, math.fsum(logs) / count
    spread = math.fsum((at - middle) ** 2 for at in range(count))
    slope = math.fsum((at - middle) * (log - mean) for at, log in enumerate(logs)) / spread
    residuals = math.fsum((log - mean - slope * (at - middle)) ** 2 for at, log in enumerate(logs))
    return Slope(slope, math.sqrt(residuals / (count - 2) / spread), count)
