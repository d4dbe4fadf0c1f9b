"""Summaries before and after a change, and a history -> a verdict, and its record in the history.

Contract
* Whether the captures can be compared is asked first, of every capture against the first one
  before; what blocks makes the verdict inconclusive, with the reason.
* The noise floor comes from the history's repeats of the configuration before the change, without
  the captures that are judged: they count once.
* `record` appends one record for each capture after the change: those before are in the history
  from when they were judged themselves. Nothing is appended twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_profile.comparison import comparability
from marin_profile.history.record import record_of
from marin_profile.history.store import append, read
from marin_profile.history.trends import matching_repeats
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import Assessment, Thresholds, assess
from marin_profile.verdict.noise import NoiseFloor, noise_floor


@dataclass(frozen=True)
class Tracked:
    """The verdict, what it rests on, and what the history's reader should know."""

    assessment: Assessment
    doubts: tuple[str, ...]
    same_capture: bool
    problems: tuple[str, ...]


def track(
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    thresholds: Thresholds | None = None,
    *,
    label: str | None = None,
    history: str | None = None,
) -> Tracked:
    """Judge the change; reads the history but leaves it as it is.

    Raises UsageError without a summary on each side, and what `history.store.read` raises.
    """
    noise, problems = _noise(history, before, after, label)
    blocking, notes, same = _doubts(before, after)
    assessment = assess(before, after, thresholds, not_comparable=blocking, noise=noise)
    return Tracked(
        assessment=assessment.model_copy(update={"label": label}),
        doubts=(*blocking, *notes),
        same_capture=same,
        problems=problems,
    )


def record(
    history: str,
    after: Sequence[ProfileSummary],
    assessment: Assessment,
    *,
    recorded_at_utc: str | None = None,
) -> int:
    """Append the captures after the change with their verdict; how many were new."""
    known = {found.trace_sha256 for found in read(history, missing_ok=True).records}
    added = 0
    for summary in after:
        made = record_of(
            summary,
            label=assessment.label,
            status=assessment.status,
            confidence=assessment.confidence,
            recorded_at_utc=recorded_at_utc,
        )
        if made.trace_sha256 is not None and made.trace_sha256 in known:
            continue
        append(history, made)
        added += 1
    return added


def _noise(
    history: str | None,
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    label: str | None,
) -> tuple[NoiseFloor | None, tuple[str, ...]]:
    if history is None or not before:
        return None, ()
    known = read(history, missing_ok=True)
    repeats = matching_repeats(known, before[0], label, judged=(*before, *after))
    return noise_floor(repeats), known.problems


def _doubts(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> tuple[list[str], list[str], bool]:
    """What blocks, what a reader should know, and whether both sides share a capture."""
    blocking: dict[str, None] = {}
    notes: dict[str, None] = {}
    for other in (*before[1:], *after):
        for doubt in comparability(before[0], other).doubts:
            (blocking if doubt.severity == "blocking" else notes).setdefault(doubt.sentence)
    digests = [
        {s.trace_provenance.trace_sha256 for s in side if s.trace_provenance.trace_sha256}
        for side in (before, after)
    ]
    shared = bool(digests[0] & digests[1])
    if shared:
        blocking = {"Both sides hold the same capture.": None, **blocking}
    return list(blocking), list(notes), shared
