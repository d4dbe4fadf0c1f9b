"""How long a step takes: typically, on average, and why the two differ.

Contract
* Steps count if they are kept. The measure is the period; with one step, or where no period is
  known, the duration.
* The typical step is the median. The mean is the time between the first and the last boundary by
  the periods between them: what training pays. They differ if they are more than 2 % apart; then
  every view gives both and says what makes the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_profile.base.text import duration, plural
from marin_profile.base.units import Count, Microseconds, Share, Steps
from marin_profile.facts.device_time import ratio
from marin_profile.facts.rows import Row
from marin_profile.schema import DurationStats, OutlierCause, ProfileSummary

# What a step's length measures: from its boundary to the next one's, or its ops' extent.
PERIOD, DURATION = "period", "duration"
LEAST_DIFFERENCE = 0.02
LOOP_WORK = "loop_work"

# The share of the difference from which the outliers alone explain it.
NEARLY_ALL = 0.8
CAUSES_NAMED = 2
STEPS_NAMED = 6


class OutlierCost(Row, frozen=True, kw_only=True, tag_field="record", tag="outlier_cause"):
    """What the outliers of one cause add to the mean."""

    cause: str | None = None
    cause_name: str | None = None
    before_op: str | None = None
    outliers: Count
    total_excess: Microseconds
    excess_per_period: Microseconds
    periodicity: Steps | None = None
    outlier_steps: list[int]


class StepLength(Row, frozen=True, kw_only=True):
    """`difference` is mean - typical, `difference_share` its share of typical; the outliers'
    excess and the rest sum to it. `periods`: how many whole ones the mean is over."""

    measure: str
    steps: Count
    typical: Microseconds
    mean: Microseconds | None = None
    p90: Microseconds | None = None
    periods: Count | None = None
    difference: Microseconds | None = None
    difference_share: Share | None = None
    outlier_excess: Microseconds = 0.0
    rest: Microseconds | None = None

    @property
    def differ(self) -> bool:
        return self.difference_share is not None and abs(self.difference_share) > LEAST_DIFFERENCE


def kept_steps(summary: ProfileSummary) -> int:
    """How many steps the statistics speak for."""
    step_time = summary.step_time
    if step_time.steps:
        return sum(step.kept for step in step_time.steps)
    return max(
        step_time.steady_state_steps.count, step_time.period.count if step_time.period else 0
    )


def step_length(summary: ProfileSummary) -> tuple[str, DurationStats] | None:
    """The measure that speaks for a step, and its statistics. None where there is no length."""
    step_time = summary.step_time
    period, duration = step_time.period, step_time.steady_state_steps
    if (
        period
        and period.median is not None
        and (kept_steps(summary) > 1 or duration.median is None)
    ):
        return PERIOD, period
    if duration.median is not None:
        return DURATION, duration
    return None


def typical_and_mean(summary: ProfileSummary) -> StepLength | None:
    """None where there is no step length. Summaries that hold no mean period give the mean of the
    known ones."""
    length = step_length(summary)
    typical = length[1].median if length else None
    if length is None or typical is None:
        return None
    measure, stats = length
    step_time = summary.step_time
    mean, outlier_excess = stats.mean, 0.0
    if measure == PERIOD:
        mean = stats.mean if step_time.mean_period is None else step_time.mean_period
        outlier_excess = sum(one.excess_per_period for one in step_time.outlier_causes)
    difference = None if mean is None else mean - typical
    return StepLength(
        measure=measure,
        steps=kept_steps(summary),
        typical=typical,
        mean=mean,
        p90=stats.p90,
        periods=step_time.whole_periods if measure == PERIOD else None,
        difference=difference,
        difference_share=ratio(difference, typical),
        outlier_excess=outlier_excess,
        rest=None if difference is None else difference - outlier_excess,
    )


def outlier_costs(summary: ProfileSummary) -> list[OutlierCost]:
    """The one that costs most first. What the capture shows as waiting alone is named after what
    training's loop did between its steps, where that is known to be as long."""
    return [
        OutlierCost.of(
            one,
            outliers=one.count,
            outlier_steps=one.steps,
            **({"cause": LOOP_WORK, "before_op": None} if _is_loop_work(summary, one) else {}),
        )
        for one in summary.step_time.outlier_causes
    ]


def _is_loop_work(summary: ProfileSummary, cause: OutlierCause) -> bool:
    profiling = summary.capture.profiling if summary.capture is not None else None
    if profiling is None or cause.cause not in (None, "gap") or len(cause.steps) < cause.count:
        return False
    around = {one.step_num: one.duration for one in profiling.work_between}
    # What follows a step is told of before its hooks or after them.
    work = [max(around.get(step, 0.0), around.get(step + 1, 0.0)) for step in cause.steps]
    return all(work) and sum(work) >= NEARLY_ALL * cause.total_excess


def why_they_differ(summary: ProfileSummary) -> str:
    """What makes typical and mean differ, as the end of a sentence; "" if they do not."""
    length = typical_and_mean(summary)
    if length is None or not length.differ or length.difference is None or length.rest is None:
        return ""
    costs = outlier_costs(summary)
    parts = [cost_text(cost) for cost in costs[:CAUSES_NAMED]]
    if len(costs) > CAUSES_NAMED:
        more = costs[CAUSES_NAMED:]
        excess = sum(cost.excess_per_period for cost in more)
        parts.append(f"{plural(len(more), 'more cause')} {_adds(excess, of_many=len(more) > 1)}")
    if abs(length.outlier_excess) < NEARLY_ALL * abs(length.difference):
        parts.append(_rest(summary, length.rest))
    return "; ".join(parts)


def _rest(summary: ProfileSummary, rest: float) -> str:
    step_time = summary.step_time
    known = step_time.period.count if step_time.period else 0
    lacking = (step_time.whole_periods or 0) - known
    if rest < 0:
        others = "steps shorter than typical"
    else:
        others = "the other steps" if step_time.outlier_causes else "steps longer than typical"
    if lacking > 0:
        others = f"{others} and {plural(lacking, 'period')} missing from the capture"
    return f"{others} {_adds(rest, of_many=True)}"


def _adds(amount: float, *, of_many: bool = False) -> str:
    ending = "" if of_many else "s"
    if amount >= 0:
        return f"add{ending} {duration(amount)} to the mean"
    return f"lower{ending} the mean by {duration(-amount)}"


def cost_text(cost: OutlierCost) -> str:
    """ "3 steps (3, 7, 11) compiled in f, which adds 4.00 ms to the mean"."""
    every = f"; every {ordinal(cost.periodicity)}" if cost.periodicity else ""
    if cost.outliers == 1:
        who = f"step {cost.outlier_steps[0]}" if cost.outlier_steps else "1 step"
    else:
        who = f"{cost.outliers} steps ({_some(cost.outlier_steps)}{every})"
    what = cause_text(cost.cause, cost.cause_name, cost.before_op)
    return f"{who} {what}, which {_adds(cost.excess_per_period)}"


_VERBS = {
    "compile": "compiled in {name}",
    "host_event": "waited for host event {name}",
    "program": "also ran {name}",
    "communication": "waited longer in {name}",
    "transfer": "waited longer in {name}",
    "compute": "spent longer in {name}",
    "recompute": "recomputed longer in {name}",
    "unattributed": "spent longer in {name}",
    LOOP_WORK: "waited for other work of training's loop, such as a checkpoint",
}


def cause_text(cause: str | None, name: str | None, before: str | None) -> str:
    """What a slow step did, as a verb phrase."""
    if cause == "gap":
        return f"waited before {before}" if before else "waited"
    if cause in _VERBS:
        return _VERBS[cause].format(name=name or f"{cause} ops")
    return "took longer for an unknown reason"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"


def _some(steps: Sequence[int]) -> str:
    shown = ", ".join(map(str, steps[:STEPS_NAMED]))
    return shown if len(steps) <= STEPS_NAMED else f"{shown}, ..."
