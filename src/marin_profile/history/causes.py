"""What accounts for a change of level: the summaries just before and just after it, compared.

Contract
* Compared are the captures nearest to the change whose summaries are at hand, of at most NEAREST a
  side that lie on their side's level, nearer to it than to the other.
* The parts are the regions (without any, the ops) that account for it, the largest first, in
  microseconds per step and device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_profile.comparison import Comparison, compare
from marin_profile.history.points import logs_of
from marin_profile.history.record import HistoryRecord
from marin_profile.history.summaries import BESIDE, SummaryStore
from marin_profile.history.trends import Trend

NEAREST = 3
PARTS = 3
SMALLEST_SHARE = 0.1


@dataclass(frozen=True)
class Part:
    """A region or op: by how many microseconds per step and device it changed, and the share of the
    step's change that this is."""

    name: str
    delta: float
    share: float


@dataclass(frozen=True)
class Cause:
    """`before` and `after` are the captures compared. `why_not` says why there are no parts, and
    what would help; `caveats` are reasons not to compare the two."""

    before: HistoryRecord | None = None
    after: HistoryRecord | None = None
    step_delta: float | None = None
    parts: tuple[Part, ...] = ()
    caveats: tuple[str, ...] = ()
    why_not: str | None = None


def causes_of(trend: Trend, store: SummaryStore) -> tuple[Cause, ...]:
    """One for each change of the trend."""
    nearest = [_nearest(trend, at) for at in range(len(trend.changes))]
    summaries = store.find([one for sides in nearest for side in sides for one in side])
    causes = []
    for sides in nearest:
        before, after = (
            next((one for one in side if one.trace_sha256 in summaries), None) for side in sides
        )
        if before is None or after is None:
            causes.append(Cause(why_not=_how_to_provide(sides, before, after)))
            continue
        found = compare(summaries[str(before.trace_sha256)], summaries[str(after.trace_sha256)])
        causes.append(_cause(before, after, found))
    return tuple(causes)


def _nearest(trend: Trend, at: int) -> tuple[list[HistoryRecord], list[HistoryRecord]]:
    """The captures before and after the change, the nearest first."""
    change = trend.changes[at]
    start = trend.changes[at - 1].index if at else 0
    end = trend.changes[at + 1].index if at + 1 < len(trend.changes) else len(trend.points)
    middle = (change.level_before + change.level_after) / 2
    is_slower = change.ratio > 1
    logs = logs_of(trend.points, trend.estimand)
    before = [
        one for one in range(change.index - 1, start - 1, -1) if (logs[one] < middle) == is_slower
    ]
    after = [one for one in range(change.index, end) if (logs[one] > middle) == is_slower]
    one, two = ([trend.points[at] for at in side[:NEAREST]] for side in (before, after))
    return one, two


def _how_to_provide(
    sides: Sequence[Sequence[HistoryRecord]],
    before: HistoryRecord | None,
    after: HistoryRecord | None,
) -> str:
    lacking = [word for word, found in (("before", before), ("after", after)) if found is None]
    digests = [
        (side[0].trace_sha256 or "unknown")[:12]
        for side, found in zip(sides, (before, after), strict=True)
        if found is None and side
    ]
    traces = f" (trace {' and '.join(digests)})" if digests else ""
    return (
        "to see what accounts for it, name a folder with the summaries just "
        f"{' and '.join(lacking)}{traces} with --summaries, or keep them in '{BESIDE}' beside the "
        "history"
    )


def _cause(before: HistoryRecord, after: HistoryRecord, found: Comparison) -> Cause:
    caveats = tuple(caveat.sentence for caveat in found.comparability.blocking)
    if found.attribution is None or found.target is None or not found.target.delta:
        why_not = found.cannot_attribute or "the two captures take the same time"
        return Cause(before, after, caveats=caveats, why_not=why_not)
    total = found.target.delta
    rows = found.attribution.headline.rows or found.attribution.ops.rows
    parts = [
        Part(row.name, row.delta, row.delta / total)
        for row in rows
        if row.delta is not None and row.delta / total >= SMALLEST_SHARE
    ]
    small = None if parts else "no region or op accounts for a tenth of it"
    return Cause(before, after, total, tuple(parts[:PARTS]), caveats, small)
