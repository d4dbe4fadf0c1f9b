"""Groups never mix; noise is that of repeats since the last shift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.history import History, HistoryRecord, record_of
from marin_profile.history.trends import groups_of, matching_repeats
from marin_profile.verdict.noise import noise_floor

SUMMARY = build_summary()


def point(number: int, median: float = 1000.0, **changes: Any) -> HistoryRecord:
    """A record like SUMMARY's, of another capture."""
    values = {
        "time": f"2026-01-{number + 1:02}T00:00:00.000000Z",
        "trace_sha256": f"{number:064x}",
        "median": median,
    }
    return record_of(SUMMARY, label="main").model_copy(update=values | changes)


def history(records: Sequence[HistoryRecord]) -> History:
    return History(tuple(sorted(records, key=lambda one: (one.time, one.content_hash))))


def repeats(*records: HistoryRecord) -> list[float]:
    return [math.exp(log) for log in matching_repeats(history(records), SUMMARY, "main")]


def test_noise_floor_by_hand() -> None:
    assert noise_floor([1.0, 2.0]) is None
    floor = noise_floor([1.0, 2.0, 3.0, 6.0])
    assert floor is not None
    # Mean 3, squares 4 + 1 + 0 + 9 = 14, over three.
    assert (floor.num_repeats, floor.log_sd) == (4, pytest.approx(math.sqrt(14 / 3)))


def test_repeats_are_of_the_same_configuration_and_basis() -> None:
    others = [
        {"label": "other"},
        {"label": None},
        {"hardware_type": "TPU v5"},
        {"mesh_or_topology": "1x2"},
        {"num_devices": 4},
        {"time_basis": "duration"},
        {"time_basis": "unknown"},
        {"step_source": "module"},
        {"annotation": "eval"},
        {"duration_basis": "exclusive_per_track"},
        {"status": "fail"},
        {"suspected_truncation": True},
        {"median": None},
        {"time_source": "unknown"},
        {"trace_sha256": SUMMARY.trace_provenance.trace_sha256},
    ]
    strangers = [point(at + 2, **({"median": 5.0} | changes)) for at, changes in enumerate(others)]
    assert repeats(point(0, 1000.0), *strangers, point(1, 1010.0)) == pytest.approx([1000, 1010])


def test_a_label_stands_for_the_config_which_holds_the_runs_id() -> None:
    assert len(repeats(point(0), point(1, config_hash="ff"))) == 2
    summary = SUMMARY.model_copy(
        update={"run_metadata": SUMMARY.run_metadata.model_copy(update={"config_hash": "aa"})}
    )
    records = [point(at, label=None, config_hash=name) for at, name in enumerate(("aa", "ff"))]
    assert len(matching_repeats(history(records), summary)) == 1


def test_one_capture_is_one_repeat_and_fails_whatever_else_is_recorded_of_it() -> None:
    twice = point(1, status="pass", recorded_at_utc="2026-03-01T00:00:00.000000Z")
    assert len(repeats(point(0), point(1), twice)) == 2
    failed = point(1, status="fail", recorded_at_utc="2026-02-01T00:00:00.000000Z")
    assert len(repeats(point(0), twice, failed)) == 1


def test_a_shift_is_no_noise() -> None:
    slow = [point(at, 1200.0 + at % 2) for at in range(10, 14)]
    assert repeats(*(point(at, 1000.0 + at % 2) for at in range(10)), *slow) == pytest.approx(
        [1200, 1201, 1200, 1201]
    )


def test_without_config_or_label_there_are_no_repeats() -> None:
    records = [point(at, label=None) for at in range(5)]
    assert matching_repeats(history(records), SUMMARY) == []
    [group] = groups_of(history(records))
    assert (group.noise, group.changes, group.slope, len(group.points)) == (None, (), None, 5)


def test_a_group_by_hand() -> None:
    medians = [1000.0] * 6 + [1100.0, 1100.0 * 1.01, 1100.0 * 1.01**2, 1100.0 * 1.01**3]
    records = [point(at, median, status="pass") for at, median in enumerate(medians)]
    records[0] = point(0, status=None)
    records.append(point(20, median=None, status="inconclusive"))
    [group] = groups_of(history(records))
    assert group.num_records == 11
    assert group.status_counts == (("inconclusive", 1), ("pass", 9), ("unknown", 1))
    assert group.medians == medians
    [change] = group.changes
    assert (change.index, group.points[6].median) == (6, 1100.0)
    assert change.ratio == pytest.approx(1.1 * 1.01**1.5)
    assert group.slope is not None
    # Each of the four is 1 % above the one before: a straight line in logs.
    assert group.slope.per_record == pytest.approx(math.log(1.01))
    assert group.slope.standard_error == pytest.approx(0, abs=1e-9)
    assert group.slope.num_points == 4
    # -1.5, -0.5, 0.5, 1.5 steps of ln 1.01 around the mean: squares 5, over three.
    assert group.noise is not None
    assert group.noise.log_sd == pytest.approx(math.log(1.01) * math.sqrt(5 / 3))


def test_groups_are_sorted_and_apart() -> None:
    labels = ["b", None, "a"]
    records = [point(at, label=label) for at, label in enumerate(labels * 2)]
    groups = groups_of(history(records))
    assert [group.configuration.label for group in groups] == [None, "a", "b"]
    assert [group.num_records for group in groups] == [2, 2, 2]


def test_the_summary_itself_is_no_repeat_of_itself() -> None:
    own = record_of(SUMMARY, label="main")
    assert repeats(own) == []
    assert len(repeats(own, point(1))) == 1
