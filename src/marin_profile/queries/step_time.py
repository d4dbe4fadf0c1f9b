"""How long a step takes, how much that varies, and which steps are the slow ones, and why.

The period is boundary to boundary, the duration the device interval of one step (both the median
over devices), the critical path the latest end minus the earliest start over devices: never mixed.
"""

from __future__ import annotations

from statistics import mean, median

from marin_profile.base.units import Count, Microseconds, Share, Steps, StepsPerSecond
from marin_profile.facts.rows import Row
from marin_profile.facts.step_time import (
    OutlierCost,
    StepLength,
    kept_steps,
    outlier_costs,
    typical_and_mean,
    why_they_differ,
)
from marin_profile.queries.model import Answer, CannotAnswer, Query, in_order, intent, listing
from marin_profile.queries.parameters import LEAST, Parameters
from marin_profile.queries.settle import step_number
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
    """`gap_*`: between kept steps, the period less the duration."""

    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    steps: Count
    kept_steps: Count
    warmup_steps_ignored: Count
    length: StepLength | None = None
    steps_per_second: StepsPerSecond | None = None
    period: Stats | None = None
    duration: Stats | None = None
    critical_path: Stats | None = None
    gap_median: Microseconds | None = None
    gap_mean: Microseconds | None = None


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


class StepLedgerRow(Row, frozen=True, kw_only=True):
    """Device time in the step, over all devices."""

    window_duration: Microseconds
    compute_duration: Microseconds
    exposed_communication_duration: Microseconds
    exposed_transfer_duration: Microseconds
    unattributed_duration: Microseconds
    idle_duration: Microseconds


class StepRow(Row, frozen=True, kw_only=True, tag_field="record", tag="step"):
    index: int
    step_num: int | None = None
    kept: bool
    start: Microseconds
    period_of_step: Microseconds | None = None
    duration_of_step: Microseconds | None = None
    critical_path_of_step: Microseconds | None = None
    step_class: str | None = None
    ledger: StepLedgerRow | None = None


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
    gaps = [
        step.period - step.duration
        for step in step_time.steps
        if step.kept and step.period is not None and step.duration is not None
    ]
    overall = StepsRow.of(
        step_time,
        steps=total,
        kept_steps=kept_steps(summary),
        length=typical_and_mean(summary),
        steps_per_second=1e6 / step_time.mean_period if step_time.mean_period else None,
        period=_stats(step_time.period),
        duration=_stats(step_time.steady_state_steps),
        critical_path=_stats(step_time.critical_path),
        gap_median=median(gaps) if gaps else None,
        gap_mean=mean(gaps) if gaps else None,
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
            ledger=StepLedgerRow.of(step.ledger)
            if step.ledger and parameters.step is not None
            else None,
        )
        for step in sorted(step_time.steps, key=_slowest_first)
        if parameters.step in (None, step_number(step))
    ]
    if parameters.by is not None:
        return _by_term(summary, parameters)
    if parameters.order == LEAST:
        steps = [row for row in reversed(steps) if row.kept] + [
            row for row in steps if not row.kept
        ]
        return listing(
            STEADY, steps, limit=parameters.limit, note="The shortest first; dropped steps last."
        )
    outliers = [
        OutlierRow.of(one, period_of_step=one.period)
        for one in sorted(step_time.outliers, key=lambda one: (-one.excess, one.index))
    ]
    if parameters.step is not None:
        numbers = {row.index for row in steps}
        return listing(
            STEADY,
            steps,
            [one for one in outliers if one.index in numbers],
            limit=parameters.limit,
        )
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


def _by_term(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    """The kept steps by how much of a term of device time they hold."""
    kept = [step for step in summary.step_time.steps if step.kept]
    if parameters.by not in _TERM_OF or any(step.ledger is None for step in kept):
        return CannotAnswer(
            f"It is not known how much {parameters.by} each step holds.",
            "Ask for the slowest steps, or for where the time goes.",
        )
    rows = [
        StepRow.of(
            step,
            period_of_step=step.period,
            duration_of_step=step.duration,
            critical_path_of_step=step.critical_path,
            ledger=StepLedgerRow.of(step.ledger),
        )
        for step in kept
    ]
    name = f"{_TERM_OF[parameters.by]}_duration"
    rows.sort(key=lambda row: (-getattr(row.ledger, name), row.index))
    return listing(
        STEADY,
        in_order(rows, parameters.order),
        limit=parameters.limit,
        note=f"{'Least' if parameters.order == LEAST else 'Most'} {parameters.by} first.",
    )


_TERM_OF = {
    "idle": "idle",
    "compute": "compute",
    "communication": "exposed_communication",
    "transfer": "exposed_transfer",
}


def _note(summary: ProfileSummary, kept: int) -> str | None:
    if kept == 1:
        return "One step was kept: no statistics."
    why = why_they_differ(summary)
    return f"The mean differs from the typical step: {why}." if why else None


_OF_STEPS_PARTS = (
    "next",
    "op",
    "region",
    "memory",
    "family",
    "collective",
    "@kind",
    "program",
    "transfer",
)


QUERY = Query(
    name="step_time",
    description=(
        "Step period (typical and mean), duration and critical path, step classes, outliers with "
        "their causes, and the slowest steps."
    ),
    example="How long does a step take?",
    run=run,
    rows=(
        StepsRow,
        StepLength,
        Stats,
        StepClassRow,
        OutlierCost,
        OutlierRow,
        StepRow,
        StepLedgerRow,
    ),
    parameters=("limit", "step", "order", "by"),
    leaves_out=("outlier", "warmup"),
    gives={
        "step": ("period", "duration", "length", "period_of_step"),
        "second": ("steps_per_second",),
    },
    intents=(
        intent(
            9,
            "step",
            "time|long|period|fast|top|many|count|median|vary|kind|second|take|slower",
            unless=("@step", "host"),
        ),
        intent(8, "period"),
        intent(10, "gap|idle", "between", "step", unless=("top", "op")),
        intent(
            13,
            "@step",
            "time|long|take|slower|top|idle|fast|happen|happened|outlier|why|compute|communication|where|about|period",
            unless=_OF_STEPS_PARTS,
        ),
        intent(6, "fast", "how"),
        intent(8, "step", "stat|p90|mean|average|stable|class|show|list|length", unless=("@step",)),
        intent(8, "step", "outlier|typical"),
        intent(7, "outlier"),
    ),
)
