"""How the profile was taken, as training saw it: from the contexts beside the capture."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from marin_profile import schema
from marin_profile.capture.context import CompileSeconds, ProfileContext

_US = 1e6
_LISTED = 3
# Work between steps is named if it exceeds that many medians of its kind, and that part of a step.
_LONG_BETWEEN = 3
_LEAST_BETWEEN = 0.5


def profiling_section(contexts: Sequence[ProfileContext]) -> schema.Profiling | None:
    """The first process speaks for the steps, which end on all processes together."""
    if not contexts:
        return None
    first = contexts[0]
    judged = first.judgement
    outside = judged.outside_median_seconds
    present = {context.process_index for context in contexts}
    return schema.Profiling(
        trigger=first.trigger,
        representative=judged.representative,
        window_to_outside=judged.window_to_outside,
        reason=judged.reason,
        num_steps_outside=judged.num_steps_outside,
        outside_step_median=None if outside is None else outside * _US,
        start_trace_duration=_US * max(c.profiler.start_trace_seconds for c in contexts),
        stop_trace_duration=_US * max(c.profiler.stop_trace_seconds for c in contexts),
        num_processes=first.process_count,
        missing_processes=sorted(set(first.capturing) - present),
        ingested_beside=any(context.ingested_beside for context in contexts),
        compiles=_compiles(contexts),
        between_step_median=_US * median(first.between) if first.between else None,
        work_between=_work_between(first),
    )


def _compiles(contexts: Sequence[ProfileContext]) -> list[schema.StepCompiles]:
    """Per step those of the process that took the longest."""
    longest: dict[int, CompileSeconds] = {}
    for one in (one for context in contexts for one in context.compiles):
        if one.step not in longest or one.seconds > longest[one.step].seconds:
            longest[one.step] = one
    return [
        schema.StepCompiles(
            step_num=step,
            programs=one.count,
            duration=_US * one.seconds,
            cache_hits=one.cache_hits,
        )
        for step, one in sorted(longest.items())
    ]


def _work_between(context: ProfileContext) -> list[schema.WorkBetween]:
    window = context.window
    if not context.between or window.median_seconds is None:
        return []
    least = max(_LONG_BETWEEN * median(context.between), _LEAST_BETWEEN * window.median_seconds)
    return [
        schema.WorkBetween(step_num=step, duration=_US * seconds)
        for step, seconds in zip(window.steps, context.between, strict=False)
        if seconds > least
    ]


def profiling_notes(profiling: schema.Profiling | None) -> list[str]:
    """What a reader of the figures must know about how they came about."""
    if profiling is None:
        return []
    notes = []
    if profiling.missing_processes:
        named = ", ".join(map(str, profiling.missing_processes))
        notes.append(
            f"Of {profiling.num_processes} processes these left no profile: {named}; the figures "
            "cover the others."
        )
    if profiling.representative is False:
        notes.append(f"The profiled steps may not stand for the run: {profiling.reason}.")
    if profiling.compiles:
        seconds = sum(one.duration for one in profiling.compiles) / _US
        notes.append(
            f"JAX compiled for {seconds:.1f} s in, or just before, {_steps(profiling.compiles)}."
        )
    if profiling.work_between:
        seconds = sum(one.duration for one in profiling.work_between) / _US
        notes.append(
            f"Around {_steps(profiling.work_between)} training did other work for {seconds:.2f} s, "
            "such as an evaluation or a checkpoint: it is none of the steps'."
        )
    if profiling.ingested_beside:
        notes.append(
            "Another capture was summarised beside training while this one was taken: its steps "
            "may be slower for it."
        )
    return notes


def _steps(named: Sequence[schema.StepCompiles] | Sequence[schema.WorkBetween]) -> str:
    listed = ", ".join(str(one.step_num) for one in named[:_LISTED])
    more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
    return f"{'step' if len(named) == 1 else 'steps'} {listed}{more}"
