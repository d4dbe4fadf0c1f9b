"""The step_time section.

Contract: statistics are of the kept steps; classes and outliers are judged by the period alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from marin_profile import schema
from marin_profile.analysis.steps.classes import classify_steps, periodicity
from marin_profile.analysis.steps.merge import MergedStep, MergedSteps
from marin_profile.analysis.steps.outliers import GAP, outliers
from marin_profile.analysis.steps.series import LongOp
from marin_profile.assemble.context import Context, us, us_or_none
from marin_profile.events.timeline import Int64s


def duration_stats(values: Sequence[float | None] | Int64s) -> schema.DurationStats:
    """Statistics of picosecond values, in microseconds; None values are left out of all but the
    count, which is that of the steps."""
    if isinstance(values, np.ndarray):
        known = values.astype(np.float64)
    else:
        known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return schema.DurationStats(count=len(values))
    median, p90 = np.quantile(known, (0.5, 0.9), method="linear")
    return schema.DurationStats(
        count=len(values),
        mean=us(float(known.mean())),
        median=us(float(median)),
        p90=us(float(p90)),
        min=us(float(known.min())),
        max=us(float(known.max())),
    )


def _known(values: Iterable[float | None]) -> list[float | None]:
    return [value for value in values if value is not None]


def step_time_section(context: Context) -> schema.StepTime:
    merged = context.steps
    steps, kept = merged.steps, context.kept_steps
    classes, class_of = _step_classes(merged)
    period = duration_stats(_known(step.period for step in kept))
    excesses = _excesses(merged)
    return schema.StepTime(
        warmup_steps_ignored=merged.warmup_ignored,
        all_steps=duration_stats([step.duration for step in steps if not step.cut]),
        steady_state_steps=duration_stats([step.duration for step in kept]),
        classes=classes,
        source=merged.source,
        annotation=merged.annotation,
        linked=merged.linked if steps else None,
        period=period,
        critical_path=duration_stats(_known(step.critical_path for step in kept)),
        typical_period=period.median,
        mean_period=us_or_none(merged.mean_period),
        whole_periods=merged.whole_periods if steps else None,
        outliers=[_outlier(merged, index, excess) for index, excess in excesses.items()],
        outlier_causes=_outlier_causes(merged, excesses),
        steps_without_work=merged.without_work if steps else None,
        long_op=_long_op(merged.long_op),
        steps=schema.Step.of_columns(
            index=range(len(steps)),
            step_num=[step.number for step in steps],
            start=[us(step.start) for step in steps],
            duration=[us_or_none(step.duration) for step in steps],
            critical_path=[us_or_none(step.critical_path) for step in steps],
            period=[us_or_none(step.period) for step in steps],
            boundary=[us(step.boundary) for step in steps],
            kept=[step.kept for step in steps],
            cut=[step.cut for step in steps],
            step_class=map(class_of.get, range(len(steps))),
            ledger=_step_ledgers(steps),
        ),
    )


def _long_op(op: LongOp | None) -> schema.LongOp | None:
    if op is None:
        return None
    return schema.LongOp(name=op.name, device=op.device, duration=us(op.time), steps=op.steps)


def _step_ledgers(steps: Sequence[MergedStep]) -> list[schema.StepLedger | None]:
    """None for steps whose terms are not known."""
    known = [step.terms for step in steps if step.terms]
    ledgers = iter(
        schema.StepLedger.of_columns(
            window_duration=[us(terms["window"]) for terms in known],
            compute_duration=[us(terms["compute"]) for terms in known],
            exposed_communication_duration=[us(terms["exposed_communication"]) for terms in known],
            exposed_transfer_duration=[us(terms["exposed_transfer"]) for terms in known],
            unattributed_duration=[us(terms["unattributed"]) for terms in known],
            idle_duration=[us(terms["idle"]) for terms in known],
        )
    )
    return [next(ledgers) if step.terms else None for step in steps]


def _name(merged: MergedSteps, index: int) -> int:
    """What people call a step: its number, else its index."""
    number = merged.steps[index].number
    return index if number is None else number


def _places(steps: Sequence[MergedStep]) -> list[int]:
    """Where each step stands in the training, counted in steps: its number where all have one and
    they ascend one by one or with gaps, else its index."""
    numbers = [step.number for step in steps if step.number is not None]
    distances = np.diff(numbers)
    is_counted = len(numbers) == len(steps) and (distances > 0).all() and 1 in distances
    return numbers if is_counted else list(range(len(steps)))


def _periodicity(merged: MergedSteps, members: Sequence[int]) -> int | None:
    """Of the steps at the indexes `members`, among the kept steps whose period is known."""
    places = _places(merged.steps)
    known = [
        places[index]
        for index, step in enumerate(merged.steps)
        if step.kept and step.period is not None
    ]
    return periodicity([places[index] for index in members], known[-1] - known[0] + 1)


def _excesses(merged: MergedSteps) -> dict[int, float]:
    """What each outlier takes beyond the median, by its index; picoseconds."""
    periods = [step.period if step.kept else None for step in merged.steps]
    known = [period for period in periods if period is not None]
    median = float(np.median(known)) if known else 0.0
    return {index: (periods[index] or 0.0) - median for index in outliers(periods)}


def _outlier(merged: MergedSteps, index: int, excess: float) -> schema.StepOutlier:
    step = merged.steps[index]
    cause = step.cause
    return schema.StepOutlier(
        index=index,
        step_num=step.number,
        period=us(step.period or 0.0),
        excess=us(excess),
        cause=cause.kind if cause else None,
        cause_name=(cause.name or None) if cause else None,
        before_op=(cause.before or None) if cause else None,
        cause_duration=us(cause.growth) if cause else None,
    )


def _outlier_causes(
    merged: MergedSteps, excesses: Mapping[int, float]
) -> list[schema.OutlierCause]:
    """One row per cause and name, for gaps per op after it; the one that costs most first."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index in excesses:
        cause = merged.steps[index].cause
        before = cause.before if cause and cause.kind == GAP else ""
        key = (cause.kind, cause.name, before) if cause else ("", "", "")
        groups.setdefault(key, []).append(index)
    rows = []
    for (kind, name, _), members in groups.items():
        total = sum(excesses[index] for index in members)
        causes = [merged.steps[index].cause for index in members]
        before_ops = {cause.before for cause in causes if cause and cause.before}
        rows.append(
            schema.OutlierCause(
                cause=kind or None,
                cause_name=name or None,
                before_op=before_ops.pop() if len(before_ops) == 1 else None,
                count=len(members),
                total_excess=us(total),
                excess_per_period=us(total / max(1, merged.whole_periods)),
                periodicity=_periodicity(merged, members),
                steps=[_name(merged, index) for index in members],
            )
        )
    return sorted(
        rows, key=lambda row: (-row.total_excess, row.cause or "", row.cause_name or "", row.steps)
    )


def _step_classes(merged: MergedSteps) -> tuple[list[schema.StepClass], dict[int, str]]:
    """Classes of the kept steps, by period."""
    known = [
        (index, step.period)
        for index, step in enumerate(merged.steps)
        if step.kept and step.period is not None
    ]
    found = classify_steps([period for _, period in known])
    if found is None:
        return [], {}
    rows, class_of = [], {}
    for name, heavy in (("light", False), ("heavy", True)):
        members = [
            row for row, is_heavy in zip(known, found.heavy, strict=True) if is_heavy is heavy
        ]
        middle, _ = sorted(members, key=lambda row: (row[1], row[0]))[(len(members) - 1) // 2]
        durations = [merged.steps[index].duration for index, _ in members]
        rows.append(
            schema.StepClass(
                name=name,
                count=len(members),
                fraction_of_steady=len(members) / len(known),
                duration_stats=duration_stats(durations),
                representative_step=_name(merged, middle),
                representative_duration=us_or_none(merged.steps[middle].duration),
                periodicity=_periodicity(merged, [index for index, _ in members]),
                period_stats=duration_stats([period for _, period in members]),
            )
        )
        class_of.update({index: name for index, _ in members})
    return rows, class_of
