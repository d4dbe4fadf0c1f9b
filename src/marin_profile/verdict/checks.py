"""The rows of a verdict: each quantity's change, bounds and threshold.

Contract: figures are rounded before anything is decided on them; a quantity whose interval is not
known is "not judged", with the reason, and never warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from marin_profile.verdict.estimate import ChangeEstimate, Design, StepChange, are_few, combine
from marin_profile.verdict.inputs import CaptureSeries
from marin_profile.verdict.model import (
    Check,
    CheckName,
    DecileShift,
    Result,
    Thresholds,
    Unit,
)
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.quantities import log_quantile, log_quantile_variance, mean_variance
from marin_profile.verdict.rules import (
    INCONCLUSIVE,
    WARN,
    Bounds,
    as_difference,
    as_percent,
    other_result,
    step_result,
)
from marin_profile.verdict.series import Variance
from marin_profile.verdict.student import Floats

DECIMALS = 6
NOT_JUDGED = "not judged"
# A pattern this likely by chance is no finding.
MOST_CHANCE = 0.01
MOST_STRAY_PHI = 0.3
# What slow steps must add to be a finding, per cent of a step.
LEAST_SLOW_COST = 1.0
DECILES = range(1, 10)

Sides = tuple[Sequence[CaptureSeries], Sequence[CaptureSeries]]


def step_check(
    name: CheckName, change: ChangeEstimate, threshold: float, *, confirmed: bool, settles: bool
) -> tuple[Check, Bounds]:
    """One estimand."""
    bounds = as_percent(change).rounded(DECIMALS)
    result = step_result(bounds, threshold, confirmed=confirmed, settles=settles)
    return _row(name, result, "%", threshold, bounds, change, math.exp), bounds


def slow_steps_check(change: StepChange) -> Check:
    """Whether combs and strays add more to the mean than before."""
    percent = replace(
        change.slow_cost,
        before=100.0 * change.slow_cost.before,
        after=100.0 * change.slow_cost.after,
        standard_error=100.0 * change.slow_cost.standard_error,
    )
    bounds = as_difference(percent).rounded(DECIMALS)
    result = other_result(bounds, LEAST_SLOW_COST)
    if result == WARN and _may_be_chance(change):
        result = INCONCLUSIVE  # the largest of many patterns looks clearer than it is
    return _row("slow_steps", result, "% of a step", LEAST_SLOW_COST, bounds, percent, _itself)


def _may_be_chance(change: StepChange) -> bool:
    """Steps that are slow for a while may be the usual ones of the other side."""
    return change.stray_phi > MOST_STRAY_PHI or any(
        comb.chance > MOST_CHANCE for side in change.sides for one in side for comb in one.own
    )


def other_checks(
    sides: Sides,
    change: StepChange,
    thresholds: Thresholds,
    *,
    design: Design,
    noise: NoiseFloor | None = None,
) -> list[Check]:
    """The checks that can warn, nothing more. `noise`: by how much runs differ, in the p90 too."""
    ninth = _decile(sides, 0.9, change.phi, noise, design=design)
    bounds = as_percent(ninth).rounded(DECIMALS)
    most = thresholds.max_step_p90_regression_pct
    step = math.exp(change.mean.before)
    return [
        slow_steps_check(change),
        _row("step_p90", other_result(bounds, most), "%", most, bounds, ninth, math.exp),
        _device_time_check(
            "exposed_communication",
            ([one.communication for one in sides[0]], [one.communication for one in sides[1]]),
            thresholds.max_communication_share_regression_abs * step,
            design=design,
        ),
        _device_time_check(
            "idle",
            ([one.idle for one in sides[0]], [one.idle for one in sides[1]]),
            thresholds.max_stall_share_regression_abs * step,
            design=design,
        ),
    ]


def decile_shifts(
    sides: Sides, phi: float, *, design: Design, noise: NoiseFloor | None = None
) -> list[DecileShift]:
    """The shift function of the step times."""
    found = []
    for decile in DECILES:
        change = _decile(sides, decile / 10.0, phi, noise, design=design)
        bounds = as_percent(change).rounded(DECIMALS)
        found.append(
            DecileShift(
                decile=decile,
                before=round(math.exp(change.before), DECIMALS),
                after=round(math.exp(change.after), DECIMALS),
                change=bounds.estimate,
                interval=(bounds.low, bounds.high) if bounds.is_known else None,
            )
        )
    return found


def _decile(
    sides: Sides, probability: float, phi: float, noise: NoiseFloor | None, *, design: Design
) -> ChangeEstimate:
    lengths = [[one.lengths.lengths for one in side] for side in sides]
    values = [[log_quantile(one, probability) for one in side] for side in lengths]
    variances = [[log_quantile_variance(one, probability, phi) for one in side] for side in lengths]
    return _combined((values[0], values[1]), (variances[0], variances[1]), noise, design=design)


def _combined(
    values: tuple[list[float], list[float]],
    variances: tuple[list[Variance], list[Variance]],
    noise: NoiseFloor | None,
    *,
    design: Design,
) -> ChangeEstimate:
    """Of variances whose degrees of freedom are the independent steps of a capture."""
    few_steps = any(are_few(one.degrees_of_freedom) for side in variances for one in side)
    return combine(values, variances, noise, design=design, few_steps=few_steps)


def _device_time_check(
    name: CheckName,
    sides: tuple[Sequence[Floats | None], Sequence[Floats | None]],
    threshold: float,
    *,
    design: Design,
) -> Check:
    threshold = round(threshold, DECIMALS)
    known = [[one for one in side if one is not None] for side in sides]
    if [len(side) for side in known] != [len(side) for side in sides]:
        reason = "a capture holds no device time per step"
        return Check(check=name, result=NOT_JUDGED, unit="us", threshold=threshold, reason=reason)
    values = [[float(one.mean()) for one in side] for side in known]
    variances = [[mean_variance(one) for one in side] for side in known]
    change = _combined((values[0], values[1]), (variances[0], variances[1]), None, design=design)
    bounds = as_difference(change).rounded(DECIMALS)
    return _row(name, other_result(bounds, threshold), "us", threshold, bounds, change, _itself)


def _itself(value: float) -> float:
    return value


def _row(
    name: CheckName,
    result: Result,
    unit: Unit,
    threshold: float,
    bounds: Bounds,
    change: ChangeEstimate,
    shown: Callable[[float], float],
) -> Check:
    """`shown`: from the scale of the change to that of before and after."""
    known = bounds.is_known
    return Check(
        check=name,
        result=result if known else NOT_JUDGED,
        unit=unit,
        threshold=threshold,
        before=round(shown(change.before), DECIMALS),
        after=round(shown(change.after), DECIMALS),
        change=bounds.estimate,
        interval=(bounds.low, bounds.high) if known else None,
        lower_bound=bounds.lower if known else None,
        upper_bound=bounds.upper if known else None,
        error_from=change.error_from if known else None,
        degrees_of_freedom=round(change.degrees_of_freedom, DECIMALS) if known else None,
        reason=None if known else "too few steps for an interval",
    )
