"""Typical and mean, and the sentence that says what lies between them."""

from __future__ import annotations

from typing import Any

import pytest

from builders_summary import NO_STATS, build_summary, build_v1_summary, no_steps, stats, step
from builders_summary import step_time as made
from marin_profile.facts.step_time import (
    cause_text,
    kept_steps,
    ordinal,
    step_length,
    typical_and_mean,
    why_they_differ,
)
from marin_profile.schema import OutlierCause, ProfileSummary
from marin_profile.schema.capture import Profiling, WorkBetween


def cost(per_period: float, **changes: Any) -> OutlierCause:
    values: dict[str, Any] = {
        "cause": "host_event",
        "cause_name": "save_checkpoint",
        "count": 1,
        "total_excess": 4 * per_period,
        "excess_per_period": per_period,
        "steps": [7],
    }
    return OutlierCause(**(values | changes))


def summary(mean: float, *causes: OutlierCause, **changes: Any) -> ProfileSummary:
    """A typical period of 1,000 us over four whole periods."""
    values: dict[str, Any] = {
        "typical_period": 1000.0,
        "mean_period": mean,
        "whole_periods": 4,
        "outlier_causes": list(causes),
    }
    return build_summary(step_time=made(**(values | changes)))


@pytest.mark.parametrize(
    ("cause", "at", "seconds", "named"),
    [
        ("gap", 7, 1900.0, True),
        ("gap", 8, 1900.0, True),
        (None, 8, 1900.0, True),
        ("gap", 9, 1900.0, False),
        ("gap", 8, 900.0, False),
        ("host_event", 8, 1900.0, False),
    ],
)
def test_a_wait_is_named_after_the_work_between_steps(cause, at, seconds, named):
    """A checkpoint after step 7, which a capture without Python frames shows as a wait of 2,000 us:
    it may be told of before our hook, as of step 7, or after it, as of step 8."""
    found = summary(1500.0, cost(500.0, cause=cause, cause_name=None, before_op="f.1"))
    profiling = Profiling(
        trigger="planned",
        reason="",
        num_steps_outside=9,
        start_trace_duration=1.0,
        stop_trace_duration=1.0,
        num_processes=1,
        work_between=[WorkBetween(step_num=at, duration=seconds)],
    )
    capture = found.capture.model_copy(update={"profiling": profiling})
    why = why_they_differ(found.model_copy(update={"capture": capture}))
    expected = "step 7 waited for other work of training's loop, such as a checkpoint, which adds "
    assert why.startswith(expected) is named


@pytest.mark.parametrize(
    ("mean", "differ"), [(1000.0, False), (1020.0, False), (1021.0, True), (970.0, True)]
)
def test_they_differ_beyond_two_per_cent(mean, differ):
    found = typical_and_mean(summary(mean))
    assert found is not None
    assert (found.measure, found.typical, found.mean, found.periods) == ("period", 1000.0, mean, 4)
    assert found.difference == mean - 1000.0
    assert found.difference_share == pytest.approx(mean / 1000 - 1)
    assert found.differ is differ
    assert bool(why_they_differ(summary(mean))) is differ


def test_the_outliers_and_the_rest_are_the_difference():
    found = typical_and_mean(summary(1400.0, cost(250.0), cost(100.0, cause="gap")))
    assert found is not None
    assert (found.outlier_excess, found.rest) == (350.0, pytest.approx(50.0))


CASES: dict[str, tuple[ProfileSummary, str]] = {
    "one cause": (
        summary(1250.0, cost(250.0)),
        "step 7 waited for host event save_checkpoint, which adds 250.00 us to the mean",
    ),
    "a regular one": (
        summary(1250.0, cost(250.0, count=3, steps=[3, 7, 11], periodicity=4)),
        "3 steps (3, 7, 11; every 4th) waited for host event save_checkpoint, which adds "
        "250.00 us to the mean",
    ),
    "many steps": (
        summary(1250.0, cost(250.0, count=9, steps=list(range(1, 10)))),
        "9 steps (1, 2, 3, 4, 5, 6, ...) waited for host event save_checkpoint, which adds "
        "250.00 us to the mean",
    ),
    "several causes": (
        summary(
            1300.0,
            cost(150.0, cause="compile", cause_name="f"),
            cost(100.0, cause="gap", cause_name=None, before_op="fusion.1"),
            cost(30.0),
            cost(20.0),
        ),
        "step 7 compiled in f, which adds 150.00 us to the mean; step 7 waited before fusion.1, "
        "which adds 100.00 us to the mean; 2 more causes add 50.00 us to the mean",
    ),
    "little of it": (
        summary(1300.0, cost(100.0)),
        "step 7 waited for host event save_checkpoint, which adds 100.00 us to the mean; the "
        "other steps add 200.00 us to the mean",
    ),
    "none of it": (summary(1100.0), "steps longer than typical add 100.00 us to the mean"),
    "a shorter mean": (summary(900.0), "steps shorter than typical lower the mean by 100.00 us"),
    "steps that are not there": (
        summary(1100.0, whole_periods=6),
        "steps longer than typical and 2 periods missing from the capture add 100.00 us to the "
        "mean",
    ),
}


@pytest.mark.parametrize(("made_summary", "expected"), CASES.values(), ids=CASES.keys())
def test_why_they_differ(made_summary: ProfileSummary, expected: str) -> None:
    assert why_they_differ(made_summary) == expected


@pytest.mark.parametrize(
    ("cause", "name", "before", "expected"),
    [
        ("compile", "f", "x", "compiled in f"),
        ("host_event", "load", None, "waited for host event load"),
        ("gap", None, "fusion.1", "waited before fusion.1"),
        ("gap", None, None, "waited"),
        ("program", "jit_eval", None, "also ran jit_eval"),
        ("communication", "all-reduce.1", None, "waited longer in all-reduce.1"),
        ("transfer", None, None, "waited longer in transfer ops"),
        ("compute", "fusion.1", None, "spent longer in fusion.1"),
        ("recompute", "fusion.1", None, "recomputed longer in fusion.1"),
        ("unattributed", "graph", None, "spent longer in graph"),
        (None, None, None, "took longer for an unknown reason"),
        ("a later one", "x", None, "took longer for an unknown reason"),
    ],
)
def test_causes_in_words(cause, name, before, expected):
    assert cause_text(cause, name, before) == expected


def test_ordinals():
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip


def test_one_step_is_its_duration():
    one = made(
        all_steps=stats(900.0, 1),
        steady_state_steps=stats(900.0, 1),
        period=NO_STATS,
        steps=[step(0, period=None)],
    )
    found = typical_and_mean(build_summary(step_time=one))
    assert found is not None
    assert (found.measure, found.typical, found.mean, found.differ) == (
        "duration", 900.0, 900.0, False,
    )  # fmt: skip


def test_one_step_is_its_duration_though_its_period_is_known():
    """A cut step follows it."""
    one = made(
        steady_state_steps=stats(900.0, 1),
        period=stats(1000.0, 1),
        typical_period=1000.0,
        mean_period=1000.0,
        whole_periods=1,
        steps=[step(0, kept=False), step(1), step(2, kept=False)],
    )
    found = typical_and_mean(build_summary(step_time=one))
    assert found is not None
    assert (found.measure, found.typical, found.periods) == ("duration", 900.0, None)


def test_an_older_summary_gives_the_mean_that_it_has():
    period = stats(1000.0).model_copy(update={"mean": 1200.0})
    older = build_summary(step_time=made(period=period))
    found = typical_and_mean(older)
    assert found is not None
    assert (found.mean, found.periods, found.differ) == (1200.0, None, True)
    v1 = typical_and_mean(build_v1_summary())
    assert v1 is not None
    assert (v1.measure, v1.typical, v1.mean) == ("duration", 900.0, 900.0)


def test_without_steps_there_is_no_length():
    nothing = build_summary(step_time=no_steps())
    assert (step_length(nothing), typical_and_mean(nothing), kept_steps(nothing)) == (None, None, 0)
    assert why_they_differ(nothing) == ""
