"""How long a step takes, how much that varies, and which steps are the slow ones, and why.

The period is boundary to boundary, the duration the device interval of one step (both the median
over devices), the critical path the latest end minus the earliest start over devices: never mixed.
"""

from __future__ import annotations

from marin_profile.base.units import Count, Microseconds, Share, Steps
from marin_profile.facts.rows import Row
from marin_profile.facts.step_time import (
    OutlierCost,
    StepLength,
    kept_steps,
    outlier_costs,
    typical_and_mean,
    why_they_differ,
)
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.schema import STEADY, DurationStats, ProfileSummary, Step

NO_STEPS = CannotAnswer(
    "No steps were found in the capture.",
    "Wrap each step in jax.profiler.StepTraceAnnotation outside of jit, and capture several steps.",
)


class Stats(Row, frozen=True, kw_only=True):
    count: Count
    mean: Microseconds | None = None
    median: Microseconds | None = None
    p90: Microseconds | None = None
    min: Microseconds | None = None
    max: Microseconds | None = None


class StepsRow(Row, frozen=True, kw_only=True, tag_field="record", tag="steps"):
    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    steps: Count
    kept_steps: Count
    warmup_steps_ignored: Count
    length: StepLength | None = None
    period: Stats | None = None
    duration: Stats | None = None
    critical_path: Stats | None = None


class StepClassRow(Row, frozen=True, kw_only=True, tag_field="record", tag="step_class"):
    name: str
    steps: Count
    fraction_of_steady: Share
    duration: Stats
    period: Stats | None = None
    periodicity: Steps | None = None


class OutlierRow(Row, frozen=True, kw_only=True, tag_field="record", tag="outlier"):
    index: int
    step_num: int | None = None
    period_of_step: Microseconds
    excess: Microseconds
    cause: str | None = None
    cause_name: str | None = None
    before_op: str | None = None
    cause_duration: Microseconds | None = None


class StepRow(Row, frozen=True, kw_only=True, tag_field="record", tag="step"):
    index: int
    step_num: int | None = None
    kept: bool
    start: Microseconds
    period_of_step: Microseconds | None = None
    duration_of_step: Microseconds | None = None
    critical_path_of_step: Microseconds | None = None
    step_class: str | None = None


def _stats(stats: DurationStats | None) -> Stats | None:
    if stats is None or not stats.count:
        return None
    return Stats.of(stats)


def _slowest_first(step: Step) -> tuple[float, int]:
    length = step.period if step.period is not None else step.duration
    return -(length or 0.0), step.index


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    step_time = summary.step_time
    total = max(step_time.all_steps.count, len(step_time.steps))
    if not total:
        return NO_STEPS
    overall = StepsRow.of(
        step_time,
        steps=total,
        kept_steps=kept_steps(summary),
        length=typical_and_mean(summary),
        period=_stats(step_time.period),
        duration=_stats(step_time.steady_state_steps),
        critical_path=_stats(step_time.critical_path),
    )
    classes = [
        StepClassRow.of(
            one,
            steps=one.count,
            duration=_stats(one.duration_stats) or Stats(count=0),
            period=_stats(one.period_stats),
        )
        for one in step_time.classes
    ]
    steps = [
        StepRow.of(
            step,
            period_of_step=step.period,
            duration_of_step=step.duration,
            critical_path_of_step=step.critical_path,
        )
        for step in sorted(step_time.steps, key=_slowest_first)
    ]
    outliers = [
        OutlierRow.of(one, period_of_step=one.period)
        for one in sorted(step_time.outliers, key=lambda one: (-one.excess, one.index))
    ]
    return listing(
        STEADY,
        [overall],
        classes,
        outlier_costs(summary),
        outliers,
        steps,
        limit=parameters.limit,
        note=_note(summary, overall.kept_steps),
    )


def _note(summary: ProfileSummary, kept: int) -> str | None:
    if kept == 1:
        return "One step was kept: no statistics."
    why = why_they_differ(summary)
    return f"The mean differs from the typical step: {why}." if why else None


QUERY = Query(
    name="step_time",
    description=(
        "Step period (typical and mean), duration and critical path, step classes, outliers with "
        "their causes, and the slowest steps."
    ),
    example="How long does a step take?",
    run=run,
    rows=(StepsRow, StepLength, Stats, StepClassRow, OutlierCost, OutlierRow, StepRow),
    parameters=("limit",),
    intents=(
        intent(
            9, "step", "time|long|period|fast|top|many|count|median|vary|kind|second|take|slower"
        ),
        intent(8, "period"),
        intent(6, "fast", "how"),
        intent(8, "step", "stat|p90|mean|average|stable|class|show|list|length"),
        intent(8, "step", "outlier|typical|compile"),
        intent(7, "outlier"),
    ),
)
