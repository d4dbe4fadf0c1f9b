"""What a history shows: each configuration's trends, what accounts for their changes, and how they
stand against the baseline.

Contract: views render findings, and `gate` judges them; nothing else is computed later.
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_profile.history.baseline import Baseline, against_baseline, require_baseline
from marin_profile.history.causes import Cause, causes_of
from marin_profile.history.change_points import SMALLEST_SHIFT
from marin_profile.history.store import History
from marin_profile.history.summaries import SummaryStore
from marin_profile.history.trends import Group, Trend, groups_of


@dataclass(frozen=True)
class TrendFindings:
    """`causes` are those of the trend's changes; `baseline` is None without one."""

    trend: Trend
    causes: tuple[Cause, ...]
    baseline: Baseline | None

    @property
    def is_slower(self) -> bool:
        """Whether a slowdown stands: against the baseline, or without one, whether the level is at
        least 1 % above an earlier one."""
        if self.baseline is not None:
            return self.baseline.is_slower
        changes = self.trend.changes
        if not changes:
            return False
        now = changes[-1].level_after
        return now - min(change.level_before for change in changes) >= SMALLEST_SHIFT

    @property
    def drifts_slower(self) -> bool:
        return self.trend.drift is not None and self.trend.drift.is_slower


@dataclass(frozen=True)
class GroupFindings:
    group: Group
    trends: tuple[TrendFindings, ...]


@dataclass(frozen=True)
class Findings:
    """`baseline` is its name."""

    num_records: int
    problems: tuple[str, ...]
    groups: tuple[GroupFindings, ...]
    baseline: str | None = None


def findings_of(
    history: History, *, baseline: str | None = None, summaries: SummaryStore | None = None
) -> Findings:
    """Raises NotFoundError where no record is of the baseline."""
    if baseline is not None:
        require_baseline(baseline, history)
    groups = groups_of(history)
    store = summaries or SummaryStore()

    def of(trend: Trend, group: Group) -> TrendFindings:
        pinned = against_baseline(baseline, trend, group, groups) if baseline is not None else None
        return TrendFindings(trend, causes_of(trend, store), pinned)

    found = (
        GroupFindings(group, tuple(of(trend, group) for trend in group.trends)) for group in groups
    )
    return Findings(len(history.records), history.problems, tuple(found), baseline)
