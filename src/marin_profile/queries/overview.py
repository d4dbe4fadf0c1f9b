"""Where the step time goes, in one row: the step's length and the shares of device time.

Where the typical and the mean step differ, the row holds what the outliers add to the mean.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Steps
from marin_profile.facts.device_time import (
    NOT_STATED,
    DeviceTime,
    Part,
    device_times,
    headline_window,
    ratio,
)
from marin_profile.facts.rows import Row
from marin_profile.facts.step_time import (
    OutlierCost,
    kept_steps,
    outlier_costs,
    typical_and_mean,
    why_they_differ,
)
from marin_profile.queries.model import Answer, CannotAnswer, Query, intent
from marin_profile.queries.parameters import Parameters
from marin_profile.schema import ProfileSummary


class LongOpRow(Row, frozen=True, kw_only=True):
    """The longest op that outlasts a typical step, and how many typical steps fit into it."""

    name: str
    device: str
    duration: Microseconds
    steps: Steps


class OverviewRow(Row, frozen=True, kw_only=True):
    """`step_measure` says what the step lengths measure: "period" or "duration"; the typical step
    is the median. Where median and mean are more than 2 % apart, `step_lengths_differ` is true and
    `outlier_causes` holds what single slow steps account for.

    `device_time` is the total of the leading device kind; `other_devices` those of the others.
    """

    step_source: str | None = None
    step_measure: str | None = None
    step_median: Microseconds | None = None
    step_mean: Microseconds | None = None
    step_p90: Microseconds | None = None
    step_lengths_differ: bool
    outlier_causes: list[OutlierCost]
    kept_steps: Count
    steps_without_work: Count
    long_op: LongOpRow | None = None
    device_time: DeviceTime | None = None
    other_devices: list[DeviceTime]
    breakdown: list[Part]


def overview(summary: ProfileSummary) -> OverviewRow:
    length = typical_and_mean(summary)
    differ = length is not None and length.differ
    times = device_times(summary, headline_window(summary))
    leading = times[0] if times and times[0].window_duration > 0 else None
    long_op = summary.step_time.long_op
    return OverviewRow(
        step_source=summary.step_time.source,
        step_measure=length.measure if length else None,
        step_median=length.typical if length else None,
        step_mean=length.mean if length else None,
        step_p90=length.p90 if length else None,
        step_lengths_differ=differ,
        outlier_causes=outlier_costs(summary) if differ else [],
        kept_steps=kept_steps(summary),
        steps_without_work=summary.step_time.steps_without_work or 0,
        long_op=LongOpRow.of(long_op) if long_op else None,
        device_time=leading,
        other_devices=times[1:],
        breakdown=_breakdown(summary),
    )


def _breakdown(summary: ProfileSummary) -> list[Part]:
    breakdown = summary.time_breakdown
    return [
        Part(
            kind=name,
            duration=getattr(breakdown, name).total_duration,
            share=ratio(getattr(breakdown, name).total_duration, breakdown.total_duration),
        )
        for name in ("compute", "communication", "host", "stall", "other")
    ]


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    row = overview(summary)
    has_breakdown = summary.time_breakdown.total_duration > 0
    if row.device_time is None and row.step_median is None and not has_breakdown:
        return CannotAnswer(
            "The summary holds neither steps nor device time.",
            "Profile a run that executes on the device, with the device tracer on.",
        )
    basis = row.device_time.window if row.device_time else summary.time_breakdown.basis
    why = why_they_differ(summary)
    note = f"The mean differs from the typical step: {why}." if why else None
    return Answer(basis or NOT_STATED, (row,), 1, note)


QUERY = Query(
    name="overview",
    description="Where the step time goes: step length and shares of device time.",
    example="Where does my step time go?",
    run=run,
    rows=(OverviewRow, OutlierCost, DeviceTime, Part),
    gives={"share": ("device_time", "breakdown"), "step": ("step_median", "step_mean")},
    intents=(
        intent(12, "where", "time|step", "spend", unless=("@op",)),
        intent(11, "time|step", "breakdown", unless=("device", "region", "communication")),
        intent(10, "what", "time|step", "spend", unless=("@op", "op")),
        intent(11, "what", "dominate", "time|step", unless=("@op", "op")),
        intent(9, "overview|summarize|headline"),
        intent(5, "dominate", unless=("op", "@op", "communication", "collective", "region")),
        intent(5, "top", "cost", unless=("op", "@op", "communication", "collective", "region")),
        intent(
            10, "why", "my|our|the", "step", "top|slower", unless=("op", "@op", "some", "outlier")
        ),
        intent(8, "bottleneck", unless=("communication", "collective", "memory")),
        intent(6, "what", "time", "take", unless=("op",)),
        intent(6, "where", "time", "lose", unless=("op", "@op")),
        intent(6, "why", "top", unless=("op", "@op", "@kind", "region", "collective")),
    ),
)
