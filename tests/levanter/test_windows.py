"""Plans of windows, slow steps, and configs without sense: no JAX, no Levanter."""

import pytest

from marin_profile.levanter import ProfilerConfig, Window
from marin_profile.levanter.context import StepTimes, judge_window
from marin_profile.levanter.windows import SlowSteps, plan, windows_over


def windows(config: ProfilerConfig, train_steps: int, first_step: int = 1) -> list[range]:
    return list(plan(config, train_steps, first_step).windows)


@pytest.mark.parametrize(
    ("train_steps", "expected"),
    [(100, [range(5, 30)]), (30, [range(5, 30)]), (12, [range(5, 12)]), (5, []), (3, [])],
)
def test_a_window_is_clamped_to_the_end(train_steps, expected):
    assert windows(ProfilerConfig(), train_steps) == expected


def test_a_list_of_windows_replaces_the_one_and_every_repeats_it():
    config = ProfilerConfig(windows=[Window(12, 2), Window(4, 3)], every=20)
    found = windows(config, 46)
    assert [(w.start, w.stop) for w in found] == [(4, 7), (12, 14), (24, 27), (32, 34), (44, 46)]
    assert plan(config, 10, 1).behind == (12,)


def test_a_plan_gives_the_rest_of_a_window_and_the_next_one():
    schedule = plan(ProfilerConfig(windows=[Window(4, 3), Window(12, 2)]), 100, 1)
    assert schedule.at(3) is None
    assert schedule.at(5) == range(5, 7)
    assert schedule.after(5) == 12
    assert schedule.after(13) is None
    assert windows_over(schedule.windows, 13) == [range(12, 14)]
    assert windows_over(schedule.windows, None) == []


def test_a_window_that_cannot_start_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"cannot start at step 2: .* step 3 is the first"):
        plan(ProfilerConfig(start_step=2), 100, 3)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"start_step": 0}, "start_step"),
        ({"num_steps": 0}, "num_steps"),
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


def test_slow_steps_are_found_by_the_running_median_and_counted():
    slow = SlowSteps(factor=3, most=2)
    assert not any(slow.is_slow(seconds) for seconds in (9, 1, 1, 1, 1, 1, 1, 1))
    assert [slow.is_slow(s) for s in (2.9, 3.1, 1, 5, 5, 1)] == [0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(("seconds", "expected"), [(1.05, True), (1.2, False)])
def test_a_window_is_representative_if_its_steps_take_as_long_as_the_others(seconds, expected):
    times = StepTimes()
    times.quiet.extend((step, 1.0) for step in range(9))
    found = judge_window([(9, 7.0), (10, seconds), (11, seconds)], times.quiet)
    assert found.representative is expected
    assert found.window_to_outside == seconds
