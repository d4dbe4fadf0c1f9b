"""How long a step takes, how much that varies, and which steps are the slow ones.

The period is start to start, the duration the device interval of one step (median over devices),
the critical path the latest end minus the earliest start over devices: never mixed.
"""

from __future__ import annotations

from marin_profile.facts.device_time import kept_steps
from marin_profile.facts.rows import Row, as_count, as_share, in_us, measured
from marin_profile.queries.model import Answer, CannotAnswer, Parameters, Query, intent, listing
from marin_profile.schema import STEADY, DurationStats, ProfileSummary, Step

NO_STEPS = CannotAnswer(
    "No steps were found in the capture.",
    "Wrap each step in jax.profiler.StepTraceAnnotation outside of jit, and capture several steps.",
)


class Stats(Row):
    count: int = as_count()
    mean: float | None = in_us(default=None)
    median: float | None = in_us(default=None)
    p90: float | None = in_us(default=None)
    min: float | None = in_us(default=None)
    max: float | None = in_us(default=None)


class StepsRow(Row):
    record: str = "steps"
    source: str | None = None
    annotation: str | None = None
    linked: bool | None = None
    steps: int = as_count()
    kept_steps: int = as_count()
    warmup_steps_ignored: int = as_count()
    period: Stats | None = None
    duration: Stats | None = None
    critical_path: Stats | None = None


class StepClassRow(Row):
    record: str = "step_class"
    name: str
    steps: int = as_count()
    fraction_of_steady: float = as_share()
    duration: Stats
    periodicity: int | None = measured("step", default=None)


class StepRow(Row):
    record: str = "step"
    index: int
    step_num: int | None = None
    kept: bool
    start: float = in_us()
    period_of_step: float | None = in_us(default=None)
    duration_of_step: float | None = in_us(default=None)
    critical_path_of_step: float | None = in_us(default=None)
    step_class: str | None = None


def _stats(stats: DurationStats | None) -> Stats | None:
    if stats is None or not stats.count:
        return None
    return Stats(
        count=stats.count,
        mean=stats.mean,
        median=stats.median,
        p90=stats.p90,
        min=stats.min,
        max=stats.max,
    )


def _slowest_first(step: Step) -> tuple[float, int]:
    length = step.period if step.period is not None else step.duration
    return -(length or 0.0), step.index


def run(summary: ProfileSummary, parameters: Parameters) -> Answer | CannotAnswer:
    step_time = summary.step_time
    total = max(step_time.all_steps.count, len(step_time.steps))
    if not total:
        return NO_STEPS
    overall = StepsRow(
        source=step_time.source,
        annotation=step_time.annotation,
        linked=step_time.linked,
        steps=total,
        kept_steps=kept_steps(summary),
        warmup_steps_ignored=step_time.warmup_steps_ignored,
        period=_stats(step_time.period),
        duration=_stats(step_time.steady_state_steps),
        critical_path=_stats(step_time.critical_path),
    )
    classes = [
        StepClassRow(
            name=one.name,
            steps=one.count,
            fraction_of_steady=one.fraction_of_steady,
            duration=_stats(one.duration_stats) or Stats(count=0),
            periodicity=one.periodicity,
        )
        for one in step_time.classes
    ]
    steps = [
        StepRow(
            index=step.index,
            step_num=step.step_num,
            kept=step.kept,
            start=step.start,
            period_of_step=step.period,
            duration_of_step=step.duration,
            critical_path_of_step=step.critical_path,
            step_class=step.step_class,
        )
        for step in sorted(step_time.steps, key=_slowest_first)
    ]
    note = "One step was kept: no statistics." if overall.kept_steps == 1 else None
    return listing(STEADY, [overall], classes, steps, limit=parameters.limit, note=note)


QUERY = Query(
    name="step_time",
    description="Step period, duration and critical path, step classes, and the slowest steps.",
    example="How long does a step take?",
    run=run,
    rows=(StepsRow, Stats, StepClassRow, StepRow),
    parameters=("limit",),
    intents=(
        intent(
            9, "step", "time|long|period|fast|top|many|count|median|vary|kind|second|take|slower"
        ),
        intent(8, "period"),
        intent(6, "fast", "how"),
        intent(8, "step", "stat|p90|mean|average|stable|class|show|list|length"),
    ),
)
