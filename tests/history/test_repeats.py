"""The noise floor is that of repeats of one commit and configuration, whatever else is recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from builders_summary import build_summary
from marin_profile.history import History, HistoryRecord, record_of
from marin_profile.history.repeats import Repeats, repeats_for, repeats_of
from marin_profile.verdict.noise import NoiseFloor

SUMMARY = build_summary()
COMMIT = "c0ffee" + "0" * 34


def point(number: int, median: float = 1000.0, **changes: Any) -> HistoryRecord:
    """A record like SUMMARY's, of another capture of one commit."""
    values = {
        "time": f"2026-01-{number + 1:02}T00:00:00.000000Z",
        "trace_sha256": f"{number:064x}",
        "git_sha": COMMIT,
        "median": median,
    }
    return record_of(SUMMARY, label="main").model_copy(update=values | changes)


def found_in(*records: HistoryRecord) -> Repeats:
    return repeats_for(History(records), SUMMARY, "main")


def count(*records: HistoryRecord) -> int:
    return found_in(*records).num_repeats


THREE = [point(at, math.exp(7 + 0.01 * at)) for at in range(3)]


def test_three_repeats_by_hand() -> None:
    found = found_in(*THREE)
    assert found.floors.typical == NoiseFloor(3, pytest.approx(0.01))
    assert (found.floors.mean, found.num_repeats, found.without_commit) == (None, 3, 0)


@pytest.mark.parametrize(
    "changes",
    [
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
        {"status": "likely_fail"},
        {"suspected_truncation": True},
        {"median": None},
        {"time_source": "unknown"},
        {"trace_sha256": SUMMARY.trace_provenance.trace_sha256},
    ],
    ids=str,
)
def test_what_is_no_repeat(changes: dict[str, Any]) -> None:
    strangers = [point(at + 3, **({"median": 5000.0} | changes)) for at in range(2)]
    assert found_in(*THREE, *strangers) == found_in(*THREE)


def test_another_commit_is_no_repeat_and_its_level_no_noise() -> None:
    faster = [point(at + 3, math.exp(6.7 + 0.01 * at), git_sha="f" * 40) for at in range(3)]
    # Squares 2 x 0.01^2 of each, over two and two degrees.
    found = found_in(*THREE, *faster)
    assert found.floors.typical == NoiseFloor(6, pytest.approx(0.01), 2)
    # One capture of another commit says nothing of the spread.
    assert found_in(*THREE, faster[0]).floors.typical == found_in(*THREE).floors.typical


def test_captures_of_unknown_commit_are_counted_but_no_repeats() -> None:
    unknown = [point(at, git_sha=None) for at in range(5)]
    assert found_in(*unknown) == Repeats(num_repeats=5, without_commit=5)
    found = found_in(*THREE, *(point(at, 5000.0, git_sha=None) for at in range(3, 5)))
    assert (found.floors.typical, found.num_repeats, found.without_commit) == (
        found_in(*THREE).floors.typical,
        5,
        2,
    )


def test_the_mean_has_a_floor_of_its_own() -> None:
    records = [point(at, mean_period=math.exp(7.1 + 0.02 * at) if at else None) for at in range(4)]
    found = found_in(*records)
    assert found.floors.typical == NoiseFloor(4, 0.0)
    # 0.02, 0.04, 0.06 about 0.04: the first record holds no mean.
    assert found.floors.mean == NoiseFloor(3, pytest.approx(0.02))


def test_a_label_stands_for_the_config_which_holds_the_runs_id() -> None:
    assert count(point(0), point(1, config_hash="ff")) == 2
    run = SUMMARY.run_metadata.model_copy(update={"config_hash": "aa"})
    summary = SUMMARY.model_copy(update={"run_metadata": run})
    records = [point(at, label=None, config_hash=name) for at, name in enumerate(("aa", "ff"))]
    assert repeats_for(History(tuple(records)), summary).num_repeats == 1


def test_one_capture_is_one_repeat_and_fails_whatever_else_is_recorded_of_it() -> None:
    twice = point(1, status="pass", recorded_at_utc="2026-03-01T00:00:00.000000Z")
    assert count(point(0), point(1), twice) == 2
    failed = point(1, status="likely_fail", recorded_at_utc="2026-02-01T00:00:00.000000Z")
    assert count(point(0), twice, failed) == 1


def test_without_config_or_label_there_are_no_repeats() -> None:
    records: Sequence[HistoryRecord] = [point(at, label=None) for at in range(5)]
    assert repeats_of(records) == repeats_for(History(tuple(records)), SUMMARY) == Repeats()
