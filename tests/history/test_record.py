"""A record holds what the summary says, on one basis, with the capture's own time."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from builders_summary import build_summary, build_v1_summary, no_steps, stats, step, step_time
from marin_profile.history import HistoryRecord, record_of
from marin_profile.history.record import STEPS_KEPT, Configuration, utc
from marin_profile.schema import CaptureDetails, ProfileSummary, RunMetadata, StepTime


def with_periods(*periods: float | None, **changes: Any) -> ProfileSummary:
    known = [period for period in periods if period is not None]
    section: StepTime = step_time(
        period=stats(known[0], len(known)) if known else stats(0.0, 0),
        steps=[
            step(0, kept=False, period=5000.0),
            *(step(at, period=period) for at, period in enumerate(periods, start=1)),
        ],
    )
    return build_summary(step_time=section, **changes)


def test_a_record_of_a_summary() -> None:
    run = RunMetadata(
        run_path="e/p/run7",
        run_id="run7",
        hardware_type="TPU v6 Lite",
        mesh_or_topology="2x1",
        config_hash="0123456789abcdef",
        git_sha="f" * 40,
        num_devices=2,
        num_hosts=1,
    )
    record = record_of(
        with_periods(100.0, 400.0, None, run_metadata=run),
        label="main",
        status="pass",
        confidence="likely",
    )
    assert record.configuration == Configuration(
        hardware_type="TPU v6 Lite",
        mesh_or_topology="2x1",
        config_hash="0123456789abcdef",
        label="main",
        num_devices=2,
        num_hosts=1,
        time_basis="period",
        step_source="annotation",
        annotation="train",
        duration_basis="device_ledger",
    )
    assert record.configuration.is_known
    assert (record.steps, record.step_classes) == ((100.0, 400.0), ("light", "light"))
    assert record.num_steps == 2
    assert record.log_mean == pytest.approx(math.log(200.0))
    # Two values ln 100 and ln 400 lie ln 2 on either side of their mean.
    assert record.log_sd == pytest.approx(math.sqrt(2) * math.log(2))
    assert (record.median, record.p90) == (100.0, 100.0)
    assert record.shares is not None
    assert record.shares.model_dump() == {
        "compute": 0.5,
        "communication": 0.2,
        "host": 0.04,
        "stall": 0.25,
        "other": 0.01,
    }
    assert (record.status, record.confidence, record.window) == ("pass", "likely", "steady")
    assert (record.run_path, record.git_sha, record.trace_sha256) == (
        "e/p/run7",
        "f" * 40,
        "ab" * 32,
    )
    assert record.recorded_at_utc is None


def test_the_mean_is_that_of_whole_periods_and_of_periods_alone() -> None:
    section = step_time(period=stats(1000.0), mean_period=1500.0, whole_periods=4)
    record = record_of(build_summary(step_time=section), git_sha="a" * 40)
    assert (record.median, record.mean_period, record.git_sha) == (1000.0, 1500.0, "a" * 40)
    assert (record.length("typical"), record.length("mean")) == (1000.0, 1500.0)
    one = step_time(steady_state_steps=stats(900.0, 1), period=None, mean_period=1.0)
    assert record_of(build_summary(step_time=one)).mean_period is None
    zero = HistoryRecord(median=0.0)
    assert (zero.length("typical"), zero.length("mean")) == (None, None)


def test_a_summarys_own_commit_counts() -> None:
    run = RunMetadata(git_sha="f" * 40)
    assert record_of(build_summary(run_metadata=run), git_sha="a" * 40).git_sha == "f" * 40


def test_one_step_counts_by_its_duration() -> None:
    section = step_time(
        steady_state_steps=stats(900.0, 1), period=stats(1000.0, 1), steps=[step(0)]
    )
    record = record_of(build_summary(step_time=section))
    assert (record.time_basis, record.steps, record.log_sd) == ("duration", (900.0,), None)


def test_without_steps_there_is_no_step_time() -> None:
    record = record_of(build_summary(step_time=no_steps()), label="main")
    assert (record.time_basis, record.median, record.steps, record.num_steps) == (
        "none",
        None,
        (),
        0,
    )
    assert not record.configuration.is_known


def test_an_older_summary_has_a_median_but_no_steps() -> None:
    record = record_of(build_v1_summary())
    assert (record.time_basis, record.median, record.num_steps) == ("duration", 900.0, 4)
    assert (record.steps, record.log_mean) == ((), None)


def test_of_many_steps_the_first_are_kept_and_all_count() -> None:
    periods = [100.0] * STEPS_KEPT + [200.0] * STEPS_KEPT
    record = record_of(with_periods(*periods))
    assert record.steps == (100.0,) * STEPS_KEPT
    assert record.num_steps == 2 * STEPS_KEPT
    assert record.log_mean == pytest.approx(math.log(100.0) + math.log(2) / 2)


@pytest.mark.parametrize(
    ("changes", "time", "source"),
    [
        ({}, "2026-01-02T03:04:05.000000Z", "capture"),
        ({"capture": None}, "2026-01-02T03:04:05.000000Z", "folder"),
        (
            {"capture": CaptureDetails(), "source_path": "2026_13_02_03_04_05/x"},
            "2026-07-01T00:00:00.000000Z",
            "summary",
        ),
        (
            {
                "capture": None,
                "source_path": "trace.json.gz",
                "generated_at_utc": "1970-01-01T00:00:00.000000Z",
            },
            "1970-01-01T00:00:00.000000Z",
            "unknown",
        ),
    ],
)
def test_whose_time_it_is(changes: dict[str, Any], time: str, source: str) -> None:
    values = {"generated_at_utc": "2026-07-01T00:00:00.000000Z"} | changes
    record = record_of(build_summary(**values))
    assert (record.time, record.time_source) == (time, source)


def test_times_of_any_zone_become_utc() -> None:
    assert utc("2026-01-02T03:04:05+02:00") == "2026-01-02T01:04:05.000000Z"
    assert utc("2026-01-02T03:04:05.25") == "2026-01-02T03:04:05.250000Z"
    assert [utc(text) for text in (None, "", "soon", "0001-01-01T00:00:00+02:00")] == [None] * 4


def test_the_same_summary_gives_the_same_line() -> None:
    first, second = (record_of(build_summary(), label="a\n\u2028b") for _ in range(2))
    assert first.to_line() == second.to_line()
    assert b"\n" not in first.to_line()
    assert first.content_hash != record_of(build_summary(), label="b").content_hash
    again = HistoryRecord.model_validate(json.loads(first.to_line()))
    assert again.to_line() == first.to_line()


def test_unknown_fields_survive() -> None:
    line = json.loads(HistoryRecord(run_id="a").to_line()) | {"of_later": 3}
    assert json.loads(HistoryRecord.model_validate(line).to_line()) == line


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"label": "x"}, True),
        ({"config_hash": "x"}, True),
        ({}, False),
        ({"label": "x", "time_basis": "unknown"}, False),
    ],
)
def test_when_sameness_is_known(changes: dict[str, Any], known: bool) -> None:
    assert HistoryRecord(**({"time_basis": "period"} | changes)).configuration.is_known is known
