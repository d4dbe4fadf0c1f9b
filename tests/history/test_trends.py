"""Groups never mix; each estimand has its own trend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.history import History, HistoryRecord, record_of
from marin_profile.history.trends import groups_of
from marin_profile.verdict.noise import NoiseFloor

SUMMARY = build_summary()


def point(number: int, median: float | None = 1000.0, **changes: Any) -> HistoryRecord:
    """A record like SUMMARY's, of another capture."""
    values = {
        "time": f"2026-01-{number + 1:02}T00:00:00.000000Z",
        "trace_sha256": f"{number:064x}",
        "git_sha": "a" * 40,
        "median": median,
    }
    return record_of(SUMMARY, label="main").model_copy(update=values | changes)


def history(records: Sequence[HistoryRecord]) -> History:
    return History(tuple(sorted(records, key=lambda one: (one.time, one.content_hash))))


def test_a_group_by_hand() -> None:
    medians = [1000.0] * 6 + [1100.0, 1100.0 * 1.01, 1100.0 * 1.01**2, 1100.0 * 1.01**3]
    records = [
        point(at, median, status="pass", git_sha=f"{min(at, 6)}" * 40)
        for at, median in enumerate(medians)
    ]
    records[0] = point(0, status=None)
    records.append(point(20, median=None, status="inconclusive"))
    [group] = groups_of(history(records))
    assert group.num_records == 11
    assert group.status_counts == (("inconclusive", 1), ("pass", 9), ("unknown", 1))
    assert group.mean is None
    [trend] = group.trends
    assert trend.lengths == medians
    [change] = trend.changes
    assert (change.index, trend.points[6].median) == (6, 1100.0)
    assert change.ratio == pytest.approx(1.1 * 1.01**1.5, rel=1e-3)
    assert trend.slope is not None
    # Each of the four is 1 % above the one before: a straight line in logs.
    assert trend.slope.per_record == pytest.approx(math.log(1.01))
    assert trend.slope.standard_error == pytest.approx(0, abs=1e-9)
    assert trend.slope.num_points == 4
    # The four are of one commit: -1.5, -0.5, 0.5, 1.5 steps of ln 1.01 around the mean, squares 5
    # over three.
    assert trend.noise == NoiseFloor(4, pytest.approx(math.log(1.01) * math.sqrt(5 / 3)))


def test_the_mean_may_change_where_the_typical_step_does_not() -> None:
    records = [point(at, mean_period=1200.0 if at >= 8 else 1000.0) for at in range(2, 16)]
    [group] = groups_of(history([point(0), point(1), *records]))
    assert group.typical.changes == ()
    assert group.mean is not None
    # The first two records hold no mean: of its points, the seventh is the first slow one.
    assert [change.index for change in group.mean.changes] == [6]
    assert group.mean.points[6] == records[6]
    assert group.mean.lengths == [1000.0] * 6 + [1200.0] * 8
    assert group.mean.changes[0].ratio == pytest.approx(1.2)


def test_a_drift_is_of_its_trend() -> None:
    records = [point(at, 1000.0 * 1.01**at) for at in range(20)]
    [group] = groups_of(history(records))
    assert group.typical.changes == ()
    assert group.typical.drift is not None
    assert group.typical.drift.log_change == pytest.approx(19 * math.log(1.01), rel=0.02)


def test_without_config_or_label_there_is_no_more_than_counts() -> None:
    records = [point(at, 1000.0 if at < 6 else 2000.0, label=None) for at in range(12)]
    [group] = groups_of(history(records))
    trend = group.typical
    assert (trend.noise, trend.changes, trend.drift, trend.slope) == (None, (), None, None)
    assert len(trend.points) == 12


def test_groups_are_sorted_and_apart() -> None:
    labels = ["b", None, "a"]
    records = [point(at, label=label) for at, label in enumerate(labels * 2)]
    groups = groups_of(history(records))
    assert [group.configuration.label for group in groups] == [None, "a", "b"]
    assert [group.num_records for group in groups] == [2, 2, 2]


def test_a_label_stands_for_the_config() -> None:
    records = [point(at, config_hash=f"{at}") for at in range(3)]
    [group] = groups_of(history(records))
    assert (group.configuration.config_hash, group.num_records) == (None, 3)
    unnamed = [point(at, config_hash=f"{at}", label=None) for at in range(3)]
    assert len(groups_of(history(unnamed))) == 3


def test_captures_of_unknown_commit_are_counted() -> None:
    [group] = groups_of(history([point(0), point(1, git_sha=None)]))
    assert group.without_commit == 1
