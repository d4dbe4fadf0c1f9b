"""How the profile was taken, from the contexts beside the capture."""

from __future__ import annotations

from dataclasses import replace

from builders_capture import context
from marin_profile.assemble.profiling import profiling_notes, profiling_section
from marin_profile.capture.context import CompileSeconds, StepSeconds


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


def test_an_ingestion_beside_any_process_is_said() -> None:
    one, other = context(count=2), context(1, 2)
    assert profiling_section([one, other]).ingested_beside is False
    assert profiling_notes(profiling_section([one, other])) == []
    found = profiling_section([one, replace(other, ingested_beside=True)])
    assert found.ingested_beside is True
    (note,) = profiling_notes(found)
    assert note.startswith("Another capture was summarised beside training")


def test_what_jax_compiled_is_that_of_the_slowest_process() -> None:
    one = replace(context(count=2), compiles=[CompileSeconds(9, 1, 0.5, 0)])
    more = [CompileSeconds(9, 3, 1.25, 2), CompileSeconds(7, 1, 0.125, 0)]
    found = profiling_section([one, replace(context(1, 2), compiles=more)])
    told = [(c.step_num, c.programs, c.duration, c.cache_hits) for c in found.compiles]
    assert told == [(7, 1, 125_000.0, 0), (9, 3, 1_250_000.0, 2)]
    assert profiling_notes(found) == ["JAX compiled for 1.4 s in, or just before, steps 7, 9."]


def test_long_work_between_steps_is_told_from_them() -> None:
    """Of 10 ms steps 2 ms apart: 6 ms are three medians, and more than half a step."""
    window = StepSeconds([3, 4, 5, 6, 7], [0.01] * 5, 0.01, 0.01)
    between = [0.002, 0.006, 0.0061, 0.002, 0.002]
    found = profiling_section([replace(context(), window=window, between=between)])
    assert found.between_step_median == 2_000.0
    assert [(one.step_num, one.duration) for one in found.work_between] == [(5, 6_100.0)]
    assert profiling_notes(found) == [
        "Around step 5 training did other work for 0.01 s, such as an evaluation or a checkpoint: "
        "it is none of the steps'."
    ]
    slower = replace(window, median_seconds=0.0122)
    found = profiling_section([replace(context(), window=slower, between=between)])
    assert found.work_between == []
