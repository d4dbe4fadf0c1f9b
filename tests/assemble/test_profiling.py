"""How the profile was taken, from the contexts beside the capture."""

from __future__ import annotations

from dataclasses import replace

from builders_capture import context
from marin_profile.assemble.profiling import profiling_section


def test_the_first_process_speaks_for_the_steps() -> None:
    """Seconds in the context, microseconds in the summary: 0.0001 s are 100 us."""
    one, other = context(count=3), context(2, 3)
    slower = replace(other.profiler, start_trace_seconds=0.75, stop_trace_seconds=0.125)
    found = profiling_section([one, replace(other, trigger="slow step", profiler=slower)])
    assert found is not None
    assert (found.trigger, found.representative, found.reason) == ("planned", True, "alike")
    assert (found.window_to_outside, found.num_steps_outside) == (1.02, 9)
    assert found.outside_step_median == 100.0
    assert (found.start_trace_duration, found.stop_trace_duration) == (750_000.0, 500_000.0)
    assert (found.num_processes, found.missing_processes) == (3, [1])


def test_what_training_did_not_see_is_not_known() -> None:
    unseen = replace(context().judgement, outside_median_seconds=None)
    found = profiling_section([replace(context(), judgement=unseen)])
    assert found is not None
    assert found.outside_step_median is None
    assert profiling_section([]) is None
