"""Figures side by side that need not sum to anything: step times, regions with all below them,
collectives, gaps. All are per step and device, except step lengths and bandwidths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from marin_profile.comparison.account import SideAccount
from marin_profile.comparison.exact import change_fields, change_of, plain_change
from marin_profile.comparison.model import (
    BandwidthChange,
    Change,
    CollectiveChange,
    GapChange,
    InclusiveRegionChange,
    StepChange,
)
from marin_profile.comparison.regions import inclusive_times
from marin_profile.events.classify import canonical_name
from marin_profile.events.scopes import SEPARATOR
from marin_profile.schema import DurationStats, ProfileSummary, Step

_MEASURES: tuple[tuple[str, Callable[[Step], float | None]], ...] = (
    ("period", lambda step: step.period),
    ("duration", lambda step: step.duration),
    ("critical_path", lambda step: step.critical_path),
)


def step_changes(before: ProfileSummary, after: ProfileSummary) -> list[StepChange]:
    """Median, p90 and mean of the kept steps, over all and class by class; of one step its length
    alone."""
    rows: list[StepChange] = []
    for measure, value in _MEASURES:
        rows += _statistics(measure, None, _stats(before, measure), _stats(after, measure))
        for name in _classes(before, after):
            rows += _statistics(
                measure, name, _of_class(before, name, value), _of_class(after, name, value)
            )
    return rows


def _stats(summary: ProfileSummary, measure: str) -> DurationStats | None:
    time = summary.step_time
    return {
        "period": time.period,
        "duration": time.steady_state_steps,
        "critical_path": time.critical_path,
    }[measure]


def _classes(before: ProfileSummary, after: ProfileSummary) -> list[str]:
    return sorted({one.name for side in (before, after) for one in side.step_time.classes})


def _of_class(
    summary: ProfileSummary, name: str, value: Callable[[Step], float | None]
) -> DurationStats | None:
    known = sorted(
        length
        for step in summary.step_time.steps
        if step.kept and step.step_class == name and (length := value(step)) is not None
    )
    if not known:
        return None
    return DurationStats(
        count=len(known),
        mean=float(sum(map(Fraction, known)) / len(known)),
        median=quantile(known, Fraction(1, 2)),
        p90=quantile(known, Fraction(9, 10)),
        min=known[0],
        max=known[-1],
    )


def quantile(ordered: Sequence[float], share: Fraction) -> float:
    """By linear interpolation."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return float(Fraction(ordered[low]) + (at - low) * Fraction(ordered[high] - ordered[low]))


def _statistics(
    measure: str, name: str | None, before: DurationStats | None, after: DurationStats | None
) -> list[StepChange]:
    rows = []
    for statistic in ("median", "p90", "mean"):
        values = [
            getattr(stats, statistic)
            if stats is not None and (stats.count > 1 or statistic == "median")
            else None
            for stats in (before, after)
        ]
        if values == [None, None]:
            continue
        rows.append(
            StepChange(
                measure=measure,
                step_class=name,
                statistic=statistic,
                before_count=before.count if before else None,
                after_count=after.count if after else None,
                **dict(plain_change(*values)),
            )
        )
    return rows


def inclusive_region_changes(
    before: SideAccount, after: SideAccount
) -> list[InclusiveRegionChange]:
    """Every region with all below it, the largest changes first."""
    rows = [
        InclusiveRegionChange(path=SEPARATOR.join(path), **change_fields(time.before, time.after))
        for path, time in sorted(inclusive_times(before.ops, after.ops).items())
    ]
    return sorted(
        rows,
        key=lambda row: (-abs(row.delta or 0), -max(row.before or 0, row.after or 0), row.path),
    )


def collective_changes(before: SideAccount, after: SideAccount) -> list[CollectiveChange]:
    """Per kind: exposed and overlapped time. Kinds that run at the same time may sum to more than
    the ledger's term."""
    sides = (before, after)
    kinds = sorted(
        {
            kind
            for side in sides
            for kind in (
                *side.account.exposed_communication_by_kind,
                *side.account.overlapped_communication_by_kind,
            )
        }
    )

    def of(name: str, kind: str) -> Change:
        values = [
            side.per_step(durations[kind]) if kind in durations else None
            for side in sides
            for durations in [getattr(side.account, name)]
        ]
        return change_of(values[0], values[1])

    rows = [
        CollectiveChange(
            collective=kind,
            exposed=of("exposed_communication_by_kind", kind),
            overlapped=of("overlapped_communication_by_kind", kind),
        )
        for kind in kinds
    ]
    return sorted(rows, key=lambda row: (-abs(row.exposed.delta or 0), row.collective))


def bandwidth_changes(before: ProfileSummary, after: ProfileSummary) -> list[BandwidthChange]:
    """Per (kind, group size) whose bandwidth is known on at least one side."""
    sides = [
        {
            (row.collective, row.group_size): row
            for row in summary.collectives
            if row.bus_gbps is not None or row.algorithm_gbps is not None
        }
        for summary in (before, after)
    ]
    keys = sorted({*sides[0], *sides[1]}, key=lambda key: (key[0], key[1] or 0))
    rows = []
    for key in keys:
        one, two = sides[0].get(key), sides[1].get(key)
        rows.append(
            BandwidthChange(
                collective=key[0],
                group_size=key[1],
                algorithm_gbps=plain_change(
                    one.algorithm_gbps if one else None, two.algorithm_gbps if two else None
                ),
                bus_gbps=plain_change(one.bus_gbps if one else None, two.bus_gbps if two else None),
            )
        )
    return rows


def gap_changes(before: SideAccount, after: SideAccount) -> list[GapChange]:
    """Idle time by the canonical name of the op that it ends at, which survives renumbering."""
    sums: list[dict[str, tuple[int, Fraction]]] = []
    for side in (before, after):
        sums.append({})
        for gap in side.summary.gap_before_ops:
            if not gap.account_count:
                continue
            name = canonical_name(gap.name)
            count, time = sums[-1].get(name, (0, Fraction(0)))
            sums[-1][name] = (
                count + gap.account_count,
                time + side.per_step(gap.account_gap_duration or 0.0),
            )
    rows = []
    for name in sorted({*sums[0], *sums[1]}):
        one, two = sums[0].get(name), sums[1].get(name)
        rows.append(
            GapChange(
                name=name,
                before_count=one and round(one[0] / before.divisor, 6),
                after_count=two and round(two[0] / after.divisor, 6),
                **change_fields(one and one[1], two and two[1]),
            )
        )
    return sorted(
        rows,
        key=lambda row: (-abs(row.delta or 0), -max(row.before or 0, row.after or 0), row.name),
    )
