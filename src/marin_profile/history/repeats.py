"""Which records repeat each other, and the noise floor that they give.

Contract
* Repeats are captures of one commit and one configuration. Captures whose commit is not known are
  no repeats: a change between them would read as noise. They are counted, so that it can be said.
* A capture that failed, or likely failed, in any of its records, or whose trace is cut, is none.
* There is a floor for each estimand. Older records hold no mean, and give the typical one alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from marin_profile.history.points import logs_of, points_of
from marin_profile.history.record import MEAN, TYPICAL, Estimand, HistoryRecord, record_of
from marin_profile.history.store import History
from marin_profile.schema import ProfileSummary
from marin_profile.verdict.noise import Floors, NoiseFloor, noise_floor
from marin_profile.verdict.rules import FAIL, LIKELY_FAIL

FAILED = frozenset({FAIL, LIKELY_FAIL})


@dataclass(frozen=True)
class Repeats:
    """The floors that repeats give. `num_repeats`: captures of the configuration that could repeat
    others, `without_commit` those of them that cannot for want of a commit."""

    floors: Floors = field(default_factory=Floors)
    num_repeats: int = 0
    without_commit: int = 0


def repeats_for(history: History, summary: ProfileSummary, label: str | None = None) -> Repeats:
    """The floors of this summary's configuration, by other captures."""
    wanted = record_of(summary, label=label)
    return repeats_of(
        record
        for record in history.records
        if record.configuration.measured == wanted.configuration.measured
        and (record.trace_sha256 is None or record.trace_sha256 != wanted.trace_sha256)
    )


def repeats_of(records: Iterable[HistoryRecord]) -> Repeats:
    """By records of one configuration."""
    usable = [record for record in records if record.configuration.is_known]
    failed = {record.trace_sha256 for record in usable if record.status in FAILED} - {None}
    sound = [
        record
        for record in usable
        if record.status not in FAILED
        and record.trace_sha256 not in failed
        and not record.suspected_truncation
    ]
    candidates = points_of(sound, TYPICAL)
    return Repeats(
        floors=Floors(_floor(sound, TYPICAL), _floor(sound, MEAN)),
        num_repeats=len(candidates),
        without_commit=sum(record.git_sha is None for record in candidates),
    )


def _floor(records: Iterable[HistoryRecord], estimand: Estimand) -> NoiseFloor | None:
    by_commit: dict[str, list[HistoryRecord]] = {}
    for point in points_of(records, estimand):
        if point.git_sha is not None:
            by_commit.setdefault(point.git_sha, []).append(point)
    return noise_floor([logs_of(points, estimand) for points in by_commit.values()])
