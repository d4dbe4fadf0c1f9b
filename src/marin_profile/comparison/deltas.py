"""Figures side by side that need not sum to anything: step times, collectives, gaps.

Contract: all are per step and device, except step lengths and bandwidths; of several captures the
mean over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from marin_profile.comparison.account import SideAccount
from marin_profile.comparison.exact import change_fields, change_of, plain_change
from marin_profile.comparison.model import (
    BandwidthChange,
    Change,
    CollectiveChange,
    GapChange,
    StepChange,
)
from marin_profile.events.classify import canonical_name
from marin_profile.schema import Collective, DurationStats, ProfileSummary, Step

_MEASURES: tuple[tuple[str, Callable[[Step], float | None]], ...] = (
    ("period", lambda step: step.period),
    ("duration", lambda step: step.duration),
    ("critical_path", lambda step: step.critical_path),
)


def step_changes(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> list[StepChange]:
    """Median, p90 and mean of the kept steps, over all and class by class; of one step its length
    alone. Of several captures the mean of each."""
    rows: list[StepChange] = []
    for measure, value in _MEASURES:
        rows += _statistics(
            measure,
            None,
            [_stats(one, measure) for one in before],
            [_stats(one, measure) for one in after],
        )
        for name in _classes([*before, *after]):
            rows += _statistics(
                measure,
                name,
                [_of_class(one, name, value) for one in before],
                [_of_class(one, name, value) for one in after],
            )
    return rows


def _stats(summary: ProfileSummary, measure: str) -> DurationStats | None:
    time = summary.step_time
    return {
        "period": time.period,
        "duration": time.steady_state_steps,
        "critical_path": time.critical_path,
    }[measure]


def _classes(summaries: Iterable[ProfileSummary]) -> list[str]:
    return sorted({one.name for summary in summaries for one in summary.step_time.classes})


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
    measure: str,
    name: str | None,
    before: Sequence[DurationStats | None],
    after: Sequence[DurationStats | None],
) -> list[StepChange]:
    rows = []
    for statistic in ("median", "p90", "mean"):
        values = [
            plain_mean(
                getattr(stats, statistic)
                for stats in side
                if stats is not None and (stats.count > 1 or statistic == "median")
            )
            for side in (before, after)
        ]
        if values == [None, None]:
            continue
        rows.append(
            StepChange(
                measure=measure,
                step_class=name,
                statistic=statistic,
                before_count=_steps(before),
                after_count=_steps(after),
                **dict(plain_change(*values)),
            )
        )
    return rows


def _steps(side: Sequence[DurationStats | None]) -> int | None:
    known = [stats.count for stats in side if stats is not None]
    return sum(known) if known else None


def collective_changes(before: SideAccount, after: SideAccount) -> list[CollectiveChange]:
    """Per kind: exposed and overlapped time. Kinds that run at the same time may sum to more than
    the ledger's term."""
    sides = (before, after)
    kinds = sorted(
        {
            kind
            for side in sides
            for one in side.captures
            for kind in (
                *one.account.exposed_communication_by_kind,
                *one.account.overlapped_communication_by_kind,
            )
        }
    )

    def of(name: str, kind: str) -> Change:
        values = [
            _mean_of_captures(
                one.per_step(durations[kind]) if kind in durations else None
                for one in side.captures
                for durations in [getattr(one.account, name)]
            )
            for side in sides
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


def bandwidth_changes(
    before: Sequence[ProfileSummary], after: Sequence[ProfileSummary]
) -> list[BandwidthChange]:
    """Per (kind, group size) whose bandwidth is known on at least one side; of several captures
    the mean of those that know it."""
    sides: list[dict[tuple[str, int | None], list[Collective]]] = []
    for summaries in (before, after):
        sides.append({})
        for row in (row for summary in summaries for row in summary.collectives):
            if row.bus_gbps is not None or row.algorithm_gbps is not None:
                sides[-1].setdefault((row.collective, row.group_size), []).append(row)

    def of(name: str, key: tuple[str, int | None]) -> Change:
        return plain_change(
            *(plain_mean(getattr(row, name) for row in side.get(key, [])) for side in sides)
        )

    return [
        BandwidthChange(
            collective=key[0],
            group_size=key[1],
            algorithm_gbps=of("algorithm_gbps", key),
            bus_gbps=of("bus_gbps", key),
        )
        for key in sorted({*sides[0], *sides[1]}, key=lambda key: (key[0], key[1] or 0))
    ]


def plain_mean(values: Iterable[float | None]) -> float | None:
    """Of what is known; of one value it alone."""
    known = [Fraction(value) for value in values if value is not None]
    return float(sum(known) / len(known)) if known else None


def _mean_of_captures(values: Iterable[Fraction | None]) -> Fraction | None:
    """What a capture lacks takes no time there; None where all lack it."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known, Fraction(0)) / len(found) if known else None


def gap_changes(before: SideAccount, after: SideAccount) -> list[GapChange]:
    """Idle time by the canonical name of the op that it ends at, which survives renumbering."""
    one, two = _gaps(before), _gaps(after)
    rows = []
    for name in sorted({*one, *two}):
        counts = [None if name not in side else side[name][0] for side in (one, two)]
        times = [None if name not in side else side[name][1] for side in (one, two)]
        rows.append(
            GapChange(
                name=name,
                before_count=None if counts[0] is None else round(float(counts[0]), 6),
                after_count=None if counts[1] is None else round(float(counts[1]), 6),
                **change_fields(times[0], times[1]),
            )
        )
    return sorted(
        rows,
        key=lambda row: (-abs(row.delta or 0), -max(row.before or 0, row.after or 0), row.name),
    )


def _gaps(side: SideAccount) -> dict[str, tuple[Fraction, Fraction]]:
    """By name: how many per step and device, and how long."""
    found: dict[str, tuple[Fraction, Fraction]] = {}
    for one in side.captures:
        for gap in one.summary.gap_before_ops:
            if not gap.account_count:
                continue
            name = canonical_name(gap.name)
            count, time = found.get(name, (Fraction(0), Fraction(0)))
            found[name] = (
                count + Fraction(gap.account_count, one.divisor * side.num_captures),
                time + one.per_step(gap.account_gap_duration or 0.0) / side.num_captures,
            )
    return found
