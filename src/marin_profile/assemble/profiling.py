"""How the profile was taken, as training saw it: from the contexts beside the capture."""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile import schema
from marin_profile.capture.context import ProfileContext

_US = 1e6


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
    )


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
    return notes
