"""Plans of windows, slow steps, and configs without sense: no JAX, no Levanter."""

import pytest

from marin_profile.levanter import ProfilerConfig, Window
from marin_profile.profiling.notes import StepTimes, judge_window
from marin_profile.profiling.schedule import beyond_the_end, refuse_too_early, schedule_of
from marin_profile.profiling.slow_steps import SlowSteps


def planned(config: ProfilerConfig, num_steps: int | None, first_step: int = 1, taken=()) -> list:
    """The first ten windows, as (start, stop)."""
    schedule = schedule_of(config, num_steps, first_step, taken)
    found, step = [], first_step
    while len(found) < 10 and (coming := schedule.next(step)) is not None:
        found.append((coming.steps.start, coming.steps.stop))
        step = coming.steps.stop
    return found


@pytest.mark.parametrize(
    ("train_steps", "expected"),
    [(100, [(5, 30)]), (30, [(5, 30)]), (12, [(5, 12)]), (5, []), (3, []), (None, [(5, 30)])],
)
def test_a_window_is_clamped_to_the_end(train_steps, expected):
    assert planned(ProfilerConfig(), train_steps) == expected


def test_a_list_of_windows_replaces_the_one_and_every_repeats_it():
    config = ProfilerConfig(windows=[Window(12, 2), Window(4, 3)], every=20)
    assert planned(config, 46) == [(4, 7), (12, 14), (24, 27), (32, 34), (44, 46)]
    assert beyond_the_end(config, 10) == [12]


def test_a_schedule_without_end_goes_on():
    config = ProfilerConfig(start_step=5, num_steps=5, every=30)
    schedule = schedule_of(config, None, 1)
    assert schedule.next(400_000).steps == range(400_025, 400_030)
    assert schedule.next(400_025).steps == range(400_025, 400_030)
    assert schedule.next(400_026).steps == range(400_055, 400_060)


@pytest.mark.parametrize(
    ("settings", "first_step", "taken", "expected"),
    [
        # Resumed beyond the window, that no earlier start took; and that one did.
        ({}, 5_001, (), [(5_001, 5_026)]),
        ({}, 5_001, (5,), []),
        # Resumed inside it: whole, from there on.
        ({}, 10, (), [(10, 35)]),
        ({}, 10, (5,), []),
        # Two missed windows are one, the longer; one that is to come ends it.
        ({"windows": [Window(5, 3), Window(50, 7)]}, 101, (), [(101, 108)]),
        ({"windows": [Window(5, 3), Window(50, 7)]}, 101, (50,), [(101, 104)]),
        ({"windows": [Window(5, 9), Window(104, 7)]}, 101, (), [(101, 104), (104, 111)]),
        # Those that repeat: only the newest may be missed.
        ({"start_step": 5, "num_steps": 5, "every": 30}, 101, (95,), [(125, 130), (155, 160)]),
        ({"start_step": 5, "num_steps": 5, "every": 30}, 101, (65,), [(101, 106), (125, 130)]),
    ],
)
def test_a_run_that_resumes_takes_what_was_missed(settings, first_step, taken, expected):
    found = planned(ProfilerConfig(**settings), 10_000, first_step, taken)
    assert found[: len(expected)] == expected
    assert len(found) == len(expected) or "every" in settings


def test_a_missed_window_names_the_windows_it_stands_for():
    config = ProfilerConfig(windows=[Window(5, 3), Window(50, 7)])
    assert schedule_of(config, 1000, 101).next(101).planned_for == (5, 50)
    assert schedule_of(config, 1000, 20).next(50).planned_for == (50,)


def test_nothing_is_taken_from_the_end_on():
    assert planned(ProfilerConfig(), 100, 100) == []
    assert planned(ProfilerConfig(), 100, 90) == [(90, 100)]


def test_a_window_that_cannot_start_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="start_step must be at least 3 with this Levanter, is 2"):
        refuse_too_early(ProfilerConfig(start_step=2), 3)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"start_step": 0}, "start_step"),
        ({"num_steps": -1}, "num_steps"),
        ({"ingest_timeout": -1}, "ingest_timeout"),
        ({"ingest_time_limit": 0}, "ingest_time_limit"),
        ({"anomaly_factor": 1}, "anomaly_factor"),
        ({"max_anomalies": -1}, "max_anomalies"),
        ({"every": 24}, "every must be at least 25"),
        ({"windows": [Window(3, 3), Window(5, 1)]}, "overlap"),
    ],
)
def test_a_config_without_sense_is_refused(settings, named):
    with pytest.raises(ValueError, match=named):
        ProfilerConfig(**settings)


@pytest.mark.parametrize(("chosen", "expected"), [(None, [0, 1, 2]), (1, [1]), ([0, 2], [0, 2])])
def test_which_processes_capture(chosen, expected):
    config = ProfilerConfig(process_index=chosen)
    assert config.capturing(3) == expected


def test_slow_steps_are_found_by_the_running_median():
    slow = SlowSteps(factor=3)
    assert not any(slow.is_slow(seconds) for seconds in (9, 1, 1, 1, 1, 1, 1, 1))
    assert [slow.is_slow(s) for s in (2.9, 3.1, 1, 5, 5, 1)] == [0, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(("seconds", "expected"), [(1.05, True), (1.2, False)])
def test_a_window_is_representative_if_its_steps_take_as_long_as_the_others(seconds, expected):
    times = StepTimes()
    times.quiet.extend((step, 1.0) for step in range(9))
    found = judge_window([(9, 7.0), (10, seconds), (11, seconds)], times.quiet)
    assert found.representative is expected
    assert found.window_to_outside == seconds


def test_a_window_at_whose_end_the_loop_was_far_ahead_of_its_devices_is_not_judged():
    quiet = [(step, 1.0) for step in range(9)]
    found = judge_window([(9, 1.0), (10, 1.0), (11, 1.0)], quiet, waited=1.5)
    assert found.representative is None
    assert "the loop ran 1.5 s ahead of the devices" in found.reason
    assert judge_window([(9, 1.0), (10, 1.0)], quiet, waited=0.9).representative
