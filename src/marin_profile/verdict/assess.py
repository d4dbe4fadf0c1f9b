"""Judge summaries before against summaries after a change.

Contract
* Each summary is one capture of one run; the run is the unit. One capture a side without a noise
  floor says nothing of what runs differ by: its verdict is "likely", never a fail.
* Captures taken in turn may be judged as pairs.
* The rules are those of `rules`, on figures rounded as they are written.
* Captures that cannot be judged or compared are inconclusive, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from marin_profile.base.errors import UsageError
from marin_profile.facts.step_time import ordinal
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import planning, sentence
from marin_profile.verdict.checks import (
    DECIMALS,
    Sides,
    decile_shifts,
    other_checks,
    step_check,
)
from marin_profile.verdict.estimate import (
    CAPTURES,
    LOOKS,
    Design,
    StepChange,
    change_of_steps,
)
from marin_profile.verdict.inputs import CaptureSeries, capture_series, objections, shared_basis
from marin_profile.verdict.model import (
    Assessment,
    Check,
    Needed,
    Noise,
    SequentialLook,
    SideStepTimes,
    Thresholds,
)
from marin_profile.verdict.noise import Floors
from marin_profile.verdict.paired import paired_change
from marin_profile.verdict.patterns import LEAST_CYCLES
from marin_profile.verdict.quantities import log_quantile
from marin_profile.verdict.rules import (
    FAIL,
    INCONCLUSIVE,
    LIKELY_FAIL,
    PASS,
    WARN,
    as_percent,
    helped,
    status_of,
)
from marin_profile.verdict.sequential import LAST_LOOK, Look
from marin_profile.verdict.series import LEAST_STEPS, SortedSteps

ONE_CAPTURE = (
    "one capture a side: the interval leaves out what runs differ by; several captures a side, "
    "taken in turn, or a history of repeats, bring it in"
)
NOT_INDEPENDENT = (
    "the steps of a capture are not independent (slow changes, or strongly alike neighbours): one "
    "capture a side cannot tell them from a change"
)


def assess(
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    thresholds: Thresholds | None = None,
    *,
    not_comparable: Sequence[str] = (),
    floors: Floors | None = None,
    design: Design = CAPTURES,
) -> Assessment:
    """The verdict on the change from `before` to `after`.

    `not_comparable` are reasons found by the caller not to judge the two sides; `floors` are
    the run-to-run spreads of this configuration. Of other designs than "captures" the captures
    belong together one by one, in this order; "looks" allows to judge after each pair and to stop.
    Raises UsageError without a summary on each side, or for pairs of unequal counts.
    """
    if not before or not after:
        raise UsageError("Name at least one summary before and one after.")
    if design != CAPTURES and len(before) != len(after):
        raise UsageError(
            f"Pairs need as many captures before as after; there are {len(before)} and "
            f"{len(after)}."
        )
    thresholds = thresholds or Thresholds()
    reasons = [*not_comparable, *objections(before, after)]
    basis = shared_basis([*before, *after])
    if basis is None:
        reasons = reasons or ["no step length is known on both sides"]
        return _blocked(reasons, _unmeasured(before), _unmeasured(after), thresholds)
    series = [[capture_series(summary, basis) for summary in side] for side in (before, after)]
    sides = (series[0], series[1])
    if reasons:
        described = [_side(side) for side in sides]
        return _blocked(reasons, described[0], described[1], thresholds, basis=basis)
    return _judge(sides, thresholds, basis, floors or Floors(), design=design)


def _judge(
    sides: Sides, thresholds: Thresholds, basis: str, floors: Floors, *, design: Design
) -> Assessment:
    lengths = [[one.lengths for one in side] for side in sides]
    if min(series.steps for side in lengths for series in side) < LEAST_STEPS:
        floors = Floors()  # they are measured on many steps
    change = change_of_steps(lengths[0], lengths[1], floors, design=design)
    described = (_side(sides[0], change, 0), _side(sides[1], change, 1))
    if not (
        math.isfinite(change.mean.standard_error) or math.isfinite(change.typical.standard_error)
    ):
        return _blocked(
            [_too_few(sides)],
            *described,
            thresholds,
            basis=basis,
            change_pct=round(as_percent(change.mean).estimate, DECIMALS),
            needed=planning.more_than_nothing(),
        )
    several = min(map(len, sides)) > 1
    settles = not change.drifts or floors.mean is not None
    threshold = thresholds.max_step_median_regression_pct
    mean, mean_bounds = step_check(
        "mean_step_time",
        change.mean,
        threshold,
        confirmed=several or floors.mean is not None,
        settles=settles,
    )
    typical, typical_bounds = step_check(
        "step_time",
        change.typical,
        threshold,
        confirmed=several or floors.typical is not None,
        settles=not change.drifts or floors.typical is not None,
    )
    others = other_checks(sides, change, thresholds, design=design, noise=floors.typical)
    checks = [mean, typical, *others]
    status = status_of(
        (mean.result, typical.result), [row.result for row in others], settles=settles
    )
    verdict = helped(mean_bounds, typical_bounds, settles=settles)
    leading = _leading(mean, typical)
    on_others_alone = status == WARN and WARN not in (mean.result, typical.result)
    floor = floors.mean if leading is mean else floors.typical
    confidence = "confirmed" if several or (floor and not on_others_alone) else "likely"
    needed = _needed(status, leading, change, threshold, lengths, floors)
    disagrees = abs((mean.change or 0.0) - (typical.change or 0.0)) >= sentence.LEAST_DISAGREEMENT
    return Assessment(
        status=status,
        confidence=confidence,
        helped=verdict,
        sentence=sentence.judged(
            verdict,
            status,
            confidence,
            described,
            leading,
            checks,
            why=_why(sides, described) if disagrees else "",
            doubt=NOT_INDEPENDENT if not settles and status == INCONCLUSIVE else "",
            unseen=_unseen(sides),
            needed=needed,
        ),
        decided_by=leading.check,
        reasons=_reasons(sides, checks, confidence, change, disagrees),
        basis=basis,
        error_from=leading.error_from,
        before=described[0],
        after=described[1],
        change_pct=leading.change,
        interval_pct=leading.interval,
        lower_bound_pct=leading.lower_bound,
        upper_bound_pct=leading.upper_bound,
        degrees_of_freedom=leading.degrees_of_freedom,
        autocorrelation=round(change.phi, DECIMALS),
        sequential=_looks(change, threshold) if design == LOOKS else None,
        drifts=change.drifts,
        noise_floor=Noise(num_repeats=floor.num_repeats, log_sd=floor.log_sd) if floor else None,
        needed=needed,
        checks=checks,
        deciles=decile_shifts(sides, change.phi, design=design, noise=floors.typical),
        thresholds=thresholds,
    )


def _looks(change: StepChange, threshold: float) -> SequentialLook:
    mean = [[one.mean for one in side] for side in change.sides]
    pairs = [after - before for before, after in zip(*mean, strict=True)]
    look = Look(paired_change(pairs, math.nan))
    return SequentialLook(
        pairs=len(pairs),
        last_look=LAST_LOOK,
        slower_p=round(float(look.slower_p()), DECIMALS),
        within_p=round(float(look.within_p(math.log1p(threshold / 100.0))), DECIMALS),
    )


_WORST_FIRST = (FAIL, LIKELY_FAIL, INCONCLUSIVE, WARN, PASS)


def _leading(mean: Check, typical: Check) -> Check:
    """The estimand that decides; of two alike the mean, which training pays."""
    ranks = [
        _WORST_FIRST.index(row.result) if row.result in _WORST_FIRST else len(_WORST_FIRST)
        for row in (mean, typical)
    ]
    return typical if ranks[1] < ranks[0] else mean


def _needed(
    status: str,
    leading: Check,
    change: StepChange,
    threshold: float,
    lengths: Sequence[Sequence[object]],
    floors: Floors,
) -> Needed | None:
    if status == LIKELY_FAIL:
        return planning.to_confirm()
    if leading.result != INCONCLUSIVE:
        return planning.more_than_nothing() if status == INCONCLUSIVE else None
    if change.drifts:
        return planning.more_than_nothing()
    on_mean = leading.check == "mean_step_time"
    totals = [sum(one.series.steps for one in side) for side in change.sides]
    return planning.to_settle(
        change.mean if on_mean else change.typical,
        math.log1p(threshold / 100.0),
        (len(lengths[0]), len(lengths[1])),
        (totals[0], totals[1]),
        floors.mean if on_mean else floors.typical,
    )


def _why(sides: Sides, described: Sequence[SideStepTimes]) -> str:
    """What makes mean and typical step differ, in each side where they do."""
    found = []
    for when, side, times in zip(("before", "after"), sides, described, strict=True):
        known = next((one.why for one in side if one.why), None)
        if known is None and times.slow_steps_every:
            every = " and ".join(f"every {ordinal(one)} step" for one in times.slow_steps_every)
            known = f"{every} differs from the others"
        if known is not None:
            found.append(f"{when} the change {known}")
    return ", ".join(found)


def _unseen(sides: Sides) -> str:
    """What windows of this length cannot show."""
    steps = min(one.lengths.steps for side in sides for one in side)
    rarest = max(1, steps // LEAST_CYCLES)
    return f"windows of {steps:,} steps may miss what comes less often than every {rarest:,} steps"


def _blocked(
    reasons: Sequence[str],
    before: SideStepTimes,
    after: SideStepTimes,
    thresholds: Thresholds,
    *,
    basis: str | None = None,
    change_pct: float | None = None,
    needed: Needed | None = None,
) -> Assessment:
    return Assessment(
        status=INCONCLUSIVE,
        confidence="likely",
        sentence=sentence.blocked(reasons, needed),
        reasons=list(reasons),
        basis=basis,
        before=before,
        after=after,
        change_pct=change_pct,
        needed=needed,
        thresholds=thresholds,
    )


def _too_few(sides: Sides) -> str:
    steps = [[one.lengths.steps for one in side] for side in sides]
    if steps == [[1], [1]]:
        return "one step per side cannot be judged"
    counts = " against ".join(" + ".join(map(str, side)) for side in steps)
    return f"{counts} steps are too few to judge (of one capture a side, at least {LEAST_STEPS})"


def _reasons(
    sides: Sides, checks: Sequence[Check], confidence: str, change: StepChange, disagrees: bool
) -> list[str]:
    found = [
        f"{row.check} is beyond its threshold, and its one-sided 99.5 % bound beyond zero"
        for row in checks
        if row.result in (FAIL, LIKELY_FAIL)
        or (row.result == WARN and row.check not in sentence.STEP_CHECKS)
    ]
    found += [
        f"the {sentence.NAMES[row.check]} is certainly longer, but not beyond its threshold"
        for row in checks
        if row.result == WARN and row.check in sentence.STEP_CHECKS
    ]
    if disagrees:
        found.append(
            "mean and typical step changed differently: slow steps became more or fewer, or longer "
            "or shorter"
        )
    if change.drifts:
        found.append(f"{NOT_INDEPENDENT} (autocorrelation {change.phi:.2f})")
    if confidence == "likely":
        found.append(ONE_CAPTURE)
    found.append(_unseen(sides))
    return found


def _side(
    side: Sequence[CaptureSeries], change: StepChange | None = None, at: int = 0
) -> SideStepTimes:
    """Without a change: not located, since it is not compared."""
    captures: Sequence[SortedSteps] = change.sides[at] if change else ()
    located = {}
    if change:
        values = (change.mean, change.typical)
        mean, typical = ((one.before, one.after)[at] for one in values)
        located = {
            "mean_step_time": round(math.exp(mean), DECIMALS),
            "step_time": round(math.exp(typical), DECIMALS),
        }
    return SideStepTimes(
        captures=len(side),
        steps=sum(one.lengths.steps for one in side),
        steps_per_capture=[one.lengths.steps for one in side],
        median=_quantile(side, 0.5),
        p90=_quantile(side, 0.9),
        slow_steps_every=sorted({comb.every for one in captures for comb in one.own}),
        stray_steps=sum(len(one.strays) for one in captures),
        **located,
    )


def _quantile(side: Sequence[CaptureSeries], probability: float) -> float:
    logs = [log_quantile(one.lengths.lengths, probability) for one in side]
    return round(math.exp(math.fsum(logs) / len(logs)), DECIMALS)


def _unmeasured(side: Sequence[ProfileSummary]) -> SideStepTimes:
    kept = [sum(step.kept for step in summary.step_time.steps) for summary in side]
    return SideStepTimes(captures=len(side), steps=sum(kept), steps_per_capture=kept)
