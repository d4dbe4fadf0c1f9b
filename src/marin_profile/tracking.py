"""Summaries before and after a change, and a history -> a verdict, and its record in the history.

Contract
* Comparability comes first: a blocking caveat makes the verdict inconclusive, and is its reason.
* The noise floor comes from the history's repeats (of one commit) of the configuration before the
  change, without the captures that are judged: so judging them again gives the same verdict.
* `record` appends one record for each capture after the change; those before were appended when
  they were judged themselves. Nothing is appended twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from marin_profile.base.errors import UsageError
from marin_profile.base.text import plural
from marin_profile.comparison.captures import comparability_of_all
from marin_profile.history.record import HistoryRecord, record_of, utc
from marin_profile.history.repeats import Repeats, repeats_for
from marin_profile.history.store import History, append, read
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import Assessment, Floors, NoiseFloor, Thresholds, assess
from marin_profile.verdict.estimate import CAPTURES, LOOKS, PAIRS, Design
from marin_profile.verdict.paired import pairs_in_time

# Fewer pairs lose more by their few degrees of freedom than a common drift costs.
LEAST_PAIRS = 4
# What `assess` finds itself, and names the capture.
_FOUND_IN_THE_SUMMARIES = frozenset({"truncation", "host_only", "steps", "capture"})


@dataclass(frozen=True)
class Tracked:
    """The verdict. `blocking` and `notes` are the caveats about the comparison (the verdict names
    the blocking ones); `history_notes` name the noise floor that the history gave and the records
    that cannot be read. One sentence each. `pairs`: the places (before, after) of the captures that
    were judged as pairs."""

    assessment: Assessment
    blocking: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    history_notes: tuple[str, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """What to tell whoever asked, the verdict first."""
        return (self.assessment.sentence, *self.history_notes, *self.notes)

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*self.blocking, *self.notes)


def track(
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    thresholds: Thresholds | None = None,
    *,
    label: str | None = None,
    history: str | None = None,
    pair: bool = False,
    sequential: bool = False,
) -> Tracked:
    """Judge the change; reads the history but leaves it as it is.

    `pair`: the captures belong together one by one, in the order given; LEAST_PAIRS and more whose
    times show that they were taken in turn are paired without. `sequential`: the same, with bounds
    that hold although one looks after every pair and stops at the first that settles.

    Raises UsageError without a summary on each side, and what `history.store.read` raises.
    """
    if not before or not after:
        raise UsageError("Name at least one summary before and one after.")
    floors = Floors()
    history_notes: tuple[str, ...] = ()
    if history is not None:
        floors, history_notes = _noise(read(history, missing_ok=True), before, after, label)
    design: Design = LOOKS if sequential else PAIRS if pair else CAPTURES
    pairs = _pairs_to_judge(before, after, design)
    if pairs:
        design = LOOKS if sequential else PAIRS
        before, after = [before[one] for one, _ in pairs], [after[two] for _, two in pairs]
    found = comparability_of_all(before, after)
    reasons = [
        caveat.sentence.removesuffix(".")
        for caveat in found.blocking
        if caveat.about not in _FOUND_IN_THE_SUMMARIES
    ]
    assessment = assess(
        before, after, thresholds, not_comparable=reasons, floors=floors, design=design
    )
    same = ["Both are of the same capture."] if found.same_capture else []
    return Tracked(
        assessment=assessment.model_copy(update={"label": label}),
        blocking=(*same, *(caveat.sentence for caveat in found.blocking)),
        notes=tuple(one.sentence for one in found.caveats if one.severity == "note"),
        history_notes=history_notes,
        pairs=pairs,
    )


def record(
    history: str,
    after: Sequence[ProfileSummary],
    assessment: Assessment,
    *,
    git_sha: str | None = None,
    recorded_at_utc: str | None = None,
) -> int:
    """Append the captures after the change with their verdict; how many were new. A capture that
    the history holds under the same configuration and label stays as it was first judged.
    `git_sha` is their commit, where their summaries do not name it."""
    return add(
        history,
        after,
        label=assessment.label,
        git_sha=git_sha,
        status=assessment.status,
        confidence=assessment.confidence,
        recorded_at_utc=recorded_at_utc,
    )


def add(
    history: str,
    summaries: Sequence[ProfileSummary],
    *,
    label: str | None = None,
    git_sha: str | None = None,
    status: str | None = None,
    confidence: str | None = None,
    recorded_at_utc: str | None = None,
) -> int:
    """Append captures, also such as were never judged; how many were new."""
    known = {_identity(found) for found in read(history, missing_ok=True).records}
    added = 0
    for summary in summaries:
        made = record_of(
            summary,
            label=label,
            git_sha=git_sha,
            status=status,
            confidence=confidence,
            recorded_at_utc=recorded_at_utc,
        )
        if _identity(made) in known:
            continue
        append(history, made)
        known.add(_identity(made))
        added += 1
    return added


def _identity(made: HistoryRecord) -> object:
    """Without a digest, everything that the record holds about the capture."""
    if made.trace_sha256 is not None:
        return made.configuration, made.trace_sha256
    not_of_itself = dict.fromkeys(("status", "confidence", "recorded_at_utc"))
    return made.model_copy(update=not_of_itself).content_hash


def _noise(
    history: History,
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    label: str | None,
) -> tuple[Floors, tuple[str, ...]]:
    """The noise floors, and the notes on them and on the history."""
    judged = _digests([*before, *after])
    others = tuple(one for one in history.records if one.trace_sha256 not in judged)
    repeats = repeats_for(History(others), before[0], label)
    if repeats.floors.typical is not None:
        floor_note = _floor_note(repeats.floors.typical, repeats)
    elif not record_of(before[0], label=label).configuration.is_known:
        floor_note = (
            "The history gives no noise floor: there is neither a config hash nor a label to show "
            "which captures are repeats of the ones before the change; name one with --label."
        )
    else:
        floor_note = (
            "The history gives no noise floor yet: it takes three repeats of one commit, or two of "
            "each of two, in the configuration before the change; besides the judged ones there "
            f"{'is' if repeats.num_repeats == 1 else 'are'} "
            f"{plural(repeats.num_repeats, 'capture')}"
            f"{_without_commit(repeats)}."
        )
    return repeats.floors, (*history.problems, floor_note)


def _floor_note(floor: NoiseFloor, repeats: Repeats) -> str:
    outliers = plural(floor.num_outliers, "outlier")
    left_out = f"; {outliers} left out" if floor.num_outliers else ""
    mean = (
        f", that of the mean {100 * repeats.floors.mean.log_sd:.1f} %"
        if repeats.floors.mean
        else ""
    )
    return (
        f"The noise floor is {100 * floor.log_sd:.1f} % from run to run{mean}, by "
        f"{floor.num_repeats} repeats of {plural(floor.num_commits, 'commit')} in the history"
        f"{left_out}{_without_commit(repeats)}."
    )


def _without_commit(repeats: Repeats) -> str:
    if not repeats.without_commit:
        return ""
    return (
        f"; {plural(repeats.without_commit, 'capture')} of unknown commit cannot count as repeats "
        "(name the commit with --commit)"
    )


def _pairs_to_judge(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary], design: Design
) -> tuple[tuple[int, int], ...]:
    """Those asked for, in the order given; else those that enough captures' times show."""
    if design != CAPTURES:
        return tuple((at, at) for at in range(len(before)) if len(before) == len(after))
    if min(len(before), len(after)) < LEAST_PAIRS:
        return ()
    return pairs_in_time([_start(one) for one in before], [_start(one) for one in after]) or ()


def _start(summary: ProfileSummary) -> float | None:
    """Seconds; None where the capture's own time is not known."""
    found = utc(summary.capture.start) if summary.capture else None
    return datetime.fromisoformat(found).timestamp() if found else None


def _digests(summaries: Sequence[ProfileSummary]) -> list[str]:
    known = (summary.trace_provenance.trace_sha256 for summary in summaries)
    return [digest for digest in known if digest is not None]
