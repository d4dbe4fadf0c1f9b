"""Judge summaries before against summaries after a change.

Contract
* Each summary is one capture of one run; several a side bring in the spread between runs.
* The rules are those of `rules.statuses`, on figures rounded as they are written.
* Captures that cannot be judged or compared are inconclusive, with the reason.
* "confirmed" needs several captures on both sides or a measured noise floor, which is one of step
  times; else "likely".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from marin_profile.base.errors import UsageError
from marin_profile.schema import ProfileSummary
from marin_profile.verdict import planning, sentence
from marin_profile.verdict.checks import DECIMALS, row_of, warning_checks
from marin_profile.verdict.estimate import ChangeEstimate, alike, change_of_location
from marin_profile.verdict.inputs import CaptureSeries, capture_series, objections, shared_basis
from marin_profile.verdict.model import Assessment, Check, Needed, Noise, SideStepTimes, Thresholds
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.rules import FAIL, INCONCLUSIVE, WARN, Bounds, as_percent, statuses
from marin_profile.verdict.series import LEAST_STEPS, Series

STRONG = 0.6  # an autocorrelation beyond those of docs/verdict.md
ONE_CAPTURE = (
    "one capture a side: the interval leaves out the spread between runs; several captures a side, "
    "or a history of repeats, bring it in"
)


def assess(
    before: Sequence[ProfileSummary],
    after: Sequence[ProfileSummary],
    thresholds: Thresholds | None = None,
    *,
    not_comparable: Sequence[str] = (),
    noise: NoiseFloor | None = None,
) -> Assessment:
    """The verdict on the change from `before` to `after`.

    `not_comparable` are reasons found by the caller not to judge the two sides; `noise` is
    the run-to-run spread of this configuration. Raises UsageError without a summary on each side.
    """
    if not before or not after:
        raise UsageError("Name at least one summary before and one after.")
    thresholds = thresholds or Thresholds()
    reasons = [*not_comparable, *objections(before, after)]
    basis = shared_basis([*before, *after])
    if basis is None:
        reasons = reasons or ["no step length is known on both sides"]
        return _blocked(reasons, _unmeasured(before), _unmeasured(after), thresholds)
    sides = [[capture_series(summary, basis) for summary in side] for side in (before, after)]
    if reasons:
        described = [_side([one.lengths for one in side], None) for side in sides]
        return _blocked(reasons, described[0], described[1], thresholds, basis=basis)
    return _judge(sides[0], sides[1], thresholds, basis, noise)


def _judge(
    before: Sequence[CaptureSeries],
    after: Sequence[CaptureSeries],
    thresholds: Thresholds,
    basis: str,
    noise: NoiseFloor | None,
) -> Assessment:
    steps = [[one.lengths for one in side] for side in (before, after)]
    if min(series.steps for side in steps for series in side) < LEAST_STEPS:
        noise = None  # it is measured on medians of many steps
    compared = alike(steps[0], steps[1])
    change = change_of_location(compared[0], compared[1], noise)
    sides = [
        _side(lengths, math.exp(float(value[0])))
        for lengths, value in zip(compared, (change.before, change.after), strict=True)
    ]
    if not np.isfinite(change.standard_error[0]):
        return _blocked(
            [_too_few(steps)],
            sides[0],
            sides[1],
            thresholds,
            basis=basis,
            change_pct=round(float(as_percent(change).estimate[0]), DECIMALS),
            needed=planning.more_than_nothing(),
        )
    others = warning_checks(before, after, thresholds, change, noise)
    threshold = thresholds.max_step_median_regression_pct
    bounds = as_percent(change).rounded(DECIMALS)
    warning = [(found, row.threshold) for row, found in others if found is not None]
    status = str(statuses(bounds, threshold, warning)[0])
    own = str(statuses(bounds, threshold)[0])
    on_captures = bool(change.between[0])
    several = min(len(before), len(after)) > 1
    # A noise floor is one of step times: a warning of shares alone does not rest on it.
    on_shares_alone = status == WARN and own != WARN and not _warns("step_p90", others)
    on_noise = noise is not None and not on_shares_alone
    confidence = "confirmed" if several or on_noise else "likely"
    step_row = row_of("step_time", own, "%", threshold, bounds).model_copy(
        update={"before": sides[0].step_time, "after": sides[1].step_time}
    )
    checks = [step_row, *(row for row, _ in others)]
    needed = _needed(change, threshold, steps, noise) if own == INCONCLUSIVE else None
    error_from = "captures" if on_captures else "steps"
    return Assessment(
        status=status,
        confidence=confidence,
        sentence=sentence.judged(
            status, confidence, (sides[0], sides[1]), error_from, checks, needed
        ),
        reasons=_reasons(steps, compared, checks, confidence, float(change.phi[0])),
        basis=basis,
        error_from=error_from,
        before=sides[0],
        after=sides[1],
        change_pct=step_row.change,
        interval_pct=step_row.interval,
        lower_bound_pct=step_row.lower_bound,
        upper_bound_pct=step_row.upper_bound,
        degrees_of_freedom=round(float(change.degrees_of_freedom[0]), DECIMALS),
        autocorrelation=round(float(change.phi[0]), DECIMALS),
        noise_floor=Noise(num_repeats=noise.num_repeats, log_sd=noise.log_sd) if noise else None,
        needed=needed,
        checks=checks,
        thresholds=thresholds,
    )


def _warns(name: str, checks: Sequence[tuple[Check, Bounds | None]]) -> bool:
    return any(row.check == name and row.result == WARN for row, _ in checks)


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


def _needed(
    change: ChangeEstimate,
    threshold: float,
    steps: Sequence[Sequence[Series]],
    noise: NoiseFloor | None,
) -> Needed:
    estimate, limit = float(change.estimate[0]), math.log1p(threshold / 100.0)
    error = float(change.standard_error[0])
    if change.between[0]:
        counts = (len(steps[0]), len(steps[1]))
        return planning.captures_needed(estimate, limit, error, counts, noise)
    totals = [sum(series.steps for series in side) for side in steps]
    freedom = float(change.degrees_of_freedom[0])
    return planning.steps_needed(estimate, limit, error, freedom, (totals[0], totals[1]))


def _too_few(steps: Sequence[Sequence[Series]]) -> str:
    if all([series.steps for series in side] == [1] for side in steps):
        return "one step per side cannot be judged"
    counts = " against ".join(" + ".join(str(series.steps) for series in side) for side in steps)
    return f"{counts} steps are too few to judge (of one capture a side, at least {LEAST_STEPS})"


def _reasons(
    steps: Sequence[Sequence[Series]],
    compared: tuple[Sequence[Series], Sequence[Series]],
    checks: Sequence[Check],
    confidence: str,
    phi: float,
) -> list[str]:
    found = [
        f"{row.check} is beyond its threshold, and its one-sided 99.5 % bound beyond zero"
        for row in checks
        if row.result == FAIL or (row.result == WARN and row.check != "step_time")
    ]
    if checks[0].result == WARN:
        found.append("the step time is certainly longer, but not beyond its threshold")
    if compared[0] is not steps[0]:
        found.append("not every capture has the same step classes: all steps are compared together")
    if phi >= STRONG and confidence == "likely":
        found.append(
            f"neighbouring steps are correlated (autocorrelation {phi:.2f}), so that the interval "
            "may be too narrow: take several captures a side"
        )
    if confidence == "likely":
        found.append(ONE_CAPTURE)
    return found


def _side(lengths: Sequence[Series], step_time: float | None) -> SideStepTimes:
    """`step_time` None: not located, since it is not compared."""
    return SideStepTimes(
        captures=len(lengths),
        steps=sum(series.steps for series in lengths),
        steps_per_capture=[series.steps for series in lengths],
        step_time=None if step_time is None else round(step_time, DECIMALS),
        median=_quantile(lengths, 0.5),
        p90=_quantile(lengths, 0.9),
    )


def _quantile(lengths: Sequence[Series], probability: float) -> float:
    logs = [float(series.log_quantile(probability)[0]) for series in lengths]
    return round(math.exp(math.fsum(logs) / len(logs)), DECIMALS)


def _unmeasured(side: Sequence[ProfileSummary]) -> SideStepTimes:
    kept = [sum(step.kept for step in summary.step_time.steps) for summary in side]
    return SideStepTimes(captures=len(side), steps=sum(kept), steps_per_capture=kept)
