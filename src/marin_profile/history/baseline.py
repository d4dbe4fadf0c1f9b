"""The latest level of a trend against that of a pinned baseline.

Contract
* The baseline is named by a range of records, a label, or a commit (its first four characters or
  more). A range is `FIRST..LAST`, both included: numbers of a trend's points from 1 on, or times
  as far as written (`2026-11-01..2026-11-07`).
* A label's records are those of the configuration that differs in label and config hash alone.
* Compared with it are the records after its first one that are not of it, since the last change.
* It is slower if the level is by 1 %, with the p that a change of level takes, on three records a
  side or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.base.errors import NotFoundError
from marin_profile.history.change_points import (
    LARGEST_P,
    LARGEST_WELCH_P,
    SHORTEST_SEGMENT,
    SMALLEST_SHIFT,
    autocorrelation,
    near_the_median,
    shift_between,
)
from marin_profile.history.points import logs_of
from marin_profile.history.record import Configuration, HistoryRecord
from marin_profile.history.store import History
from marin_profile.history.trends import Group, Trend
from marin_profile.verdict.student import Floats, t_quantile, two_sided_p

RANGE = ".."
LEAST_OF_A_COMMIT = 4
INTERVAL = 0.975  # each end of the 95 % interval

Choose = Callable[[int, HistoryRecord], bool]  # number from 1 on, point


@dataclass(frozen=True)
class Baseline:
    """Levels are means of logs without what outliers add. `num_later` records make the later one;
    without any it is None. `interval`: 95 %, of their difference; None with one record a side."""

    num_records: int
    level: float
    num_later: int
    later_level: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    is_slower: bool = False

    @property
    def log_shift(self) -> float | None:
        return None if self.later_level is None else self.later_level - self.level


def require_baseline(name: str, history: History) -> None:
    """Raises NotFoundError where no record is of it."""
    labels = {record.label for record in history.records}
    commits = [record.git_sha for record in history.records if record.git_sha]
    if RANGE in name or name in labels or any(_is_commit(name, one) for one in commits):
        return
    raise NotFoundError(
        f"No record has the label or commit {name}; name one that 'marin-profile history' lists, "
        "or a range of records, FIRST..LAST."
    )


def against_baseline(
    name: str, trend: Trend, group: Group, groups: Sequence[Group]
) -> Baseline | None:
    """None where the baseline has no record of this configuration and estimand."""
    pinned = _pinned(name, trend, group, groups)
    if not pinned:
        return None
    since = trend.changes[-1].index if trend.changes else 0
    own = {id(point) for point in pinned}
    later = [
        point
        for point in trend.points[since:]
        if id(point) not in own and point.time > pinned[0].time
    ]
    before, after = (
        near_the_median(np.asarray(logs_of(side, trend.estimand))) if side else np.empty(0)
        for side in (pinned, later)
    )
    return _compared(before, after)


def _compared(before: Floats, after: Floats) -> Baseline:
    found = Baseline(len(before), float(before.mean()), len(after))
    if not len(after):
        return found
    found = replace(found, later_level=float(after.mean()))
    if min(len(before), len(after)) < 2:
        return found
    phi = autocorrelation(
        np.concatenate((before, after)), [0, len(before), len(before) + len(after)]
    )
    shift = shift_between(before, after, phi)
    width = float(t_quantile(INTERVAL, max(shift.freedom, 1.0))) * shift.error
    is_certain = (
        min(len(before), len(after)) >= SHORTEST_SEGMENT
        and shift.p < LARGEST_P
        and two_sided_p(shift.size / shift.error, shift.freedom) < LARGEST_WELCH_P
    )
    return replace(
        found,
        interval=(shift.size - width, shift.size + width),
        p=shift.p,
        is_slower=is_certain and shift.size >= SMALLEST_SHIFT,
    )


def _pinned(name: str, trend: Trend, group: Group, groups: Sequence[Group]) -> list[HistoryRecord]:
    if RANGE in name:
        first, last = name.split(RANGE, 1)
        are_numbers = first.isdecimal() and last.isdecimal()
        choose = _numbered(first, last) if are_numbers else _timed(first, last)
        return [point for at, point in enumerate(trend.points, 1) if choose(at, point)]
    for other in groups:
        if other.configuration.label == name and _alike(other, group):
            found = [one for one in other.trends if one.estimand == trend.estimand]
            return list(found[0].points) if found else []
    return [one for one in trend.points if one.git_sha and _is_commit(name, one.git_sha)]


def _numbered(first: str, last: str) -> Choose:
    return lambda at, _: int(first) <= at <= int(last)


def _timed(first: str, last: str) -> Choose:
    return lambda _, point: first <= point.time and point.time[: len(last)] <= last


def _is_commit(name: str, sha: str) -> bool:
    return len(name) >= LEAST_OF_A_COMMIT and sha.startswith(name)


def _alike(one: Group, two: Group) -> bool:
    return _unnamed(one.configuration) == _unnamed(two.configuration)


def _unnamed(configuration: Configuration) -> Configuration:
    return replace(configuration, label=None, config_hash=None)
