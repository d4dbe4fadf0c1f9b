"""Captures before and after, by where they lie -> the whole comparison, programs included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from marin_profile.capture.sources import resolve_path
from marin_profile.comparison import Comparison, compare
from marin_profile.pipeline.programs import summarize_with_programs


def explain(
    before: Sequence[str | Path], after: Sequence[str | Path], *, top_k: int = 10
) -> Comparison:
    """Raises what `resolve_path`, `summarize_capture` and `compare` raise."""
    one, two = (
        [summarize_with_programs(resolve_path(str(path))[0]) for path in side]
        for side in (before, after)
    )
    return compare(
        [summary for summary, _ in one],
        [summary for summary, _ in two],
        top_k=top_k,
        programs=([programs for _, programs in one], [programs for _, programs in two]),
    )
