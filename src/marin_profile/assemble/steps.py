"""The step_time section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from marin_profile import schema
from marin_profile.analysis.steps.classes import classify_steps, periodicity
from marin_profile.analysis.steps.merge import MergedSteps
from marin_profile.assemble.context import Context, us, us_or_none


def duration_stats(values: Sequence[float | None]) -> schema.DurationStats:
    """Statistics of picosecond values, in microseconds; None values are left out of all but the
    count, which is that of the steps."""
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
    return schema.StepTime(
        warmup_steps_ignored=merged.warmup_ignored,
        all_steps=duration_stats([step.duration for step in steps if not step.cut]),
        steady_state_steps=duration_stats([step.duration for step in kept]),
        classes=classes,
        source=merged.source,
        annotation=merged.annotation,
        linked=merged.linked if steps else None,
        period=duration_stats(_known(step.period for step in kept)),
        critical_path=duration_stats(_known(step.critical_path for step in kept)),
        steps=[
            schema.Step(
                index=index,
                step_num=step.number,
                start=us(step.start),
                duration=us_or_none(step.duration),
                critical_path=us_or_none(step.critical_path),
                period=us_or_none(step.period),
                boundary=us(step.boundary),
                kept=step.kept,
                cut=step.cut,
                step_class=class_of.get(index),
                ledger=_step_ledger(step.terms),
            )
            for index, step in enumerate(steps)
        ],
    )


def _step_ledger(terms: Mapping[str, int]) -> schema.StepLedger | None:
    if not terms:
        return None
    return schema.StepLedger(
        window_duration=us(terms["window"]),
        compute_duration=us(terms["compute"]),
        exposed_communication_duration=us(terms["exposed_communication"]),
        exposed_transfer_duration=us(terms["exposed_transfer"]),
        unattributed_duration=us(terms["unattributed"]),
        idle_duration=us(terms["idle"]),
    )


def _step_classes(merged: MergedSteps) -> tuple[list[schema.StepClass], dict[int, str]]:
    """Classes of the kept steps, by duration (by period where the duration is not known)."""
    lengths = [
        (index, step.duration if merged.linked else step.period)
        for index, step in enumerate(merged.steps)
        if step.kept
    ]
    known = [(index, length) for index, length in lengths if length is not None]
    found = classify_steps([length for _, length in known])
    if found is None:
        return [], {}
    rows, class_of = [], {}
    for name, heavy in (("light", False), ("heavy", True)):
        members = [
            row for row, is_heavy in zip(known, found.heavy, strict=True) if is_heavy is heavy
        ]
        stats = duration_stats([length for _, length in members])
        middle = sorted(members, key=lambda row: (row[1], row[0]))[(len(members) - 1) // 2]
        number = merged.steps[middle[0]].number
        rows.append(
            schema.StepClass(
                name=name,
                count=len(members),
                fraction_of_steady=len(members) / len(known),
                duration_stats=stats,
                representative_step=middle[0] if number is None else number,
                representative_duration=us(middle[1]),
                periodicity=periodicity([index for index, _ in members]),
            )
        )
        class_of.update({index: name for index, _ in members})
    return rows, class_of
