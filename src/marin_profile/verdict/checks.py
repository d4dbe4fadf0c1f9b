"""The rows of a verdict: each quantity's change, bounds and threshold.

Contract: figures are rounded before anything is decided on them; a quantity whose interval is not
known is "not judged", with the reason, and never warns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from marin_profile.verdict.estimate import ChangeEstimate, change_of_location, change_of_quantile
from marin_profile.verdict.inputs import CaptureSeries
from marin_profile.verdict.model import Check, Thresholds
from marin_profile.verdict.noise import NoiseFloor
from marin_profile.verdict.rules import (
    INCONCLUSIVE,
    PASS,
    WARN,
    Bounds,
    as_difference,
    as_percent,
)
from marin_profile.verdict.series import Series

DECIMALS = 6
NOT_JUDGED = "not judged"


def warning_checks(
    before: Sequence[CaptureSeries],
    after: Sequence[CaptureSeries],
    thresholds: Thresholds,
    change: ChangeEstimate,
    noise: NoiseFloor | None,
) -> list[tuple[Check, Bounds | None]]:
    """The checks that can warn, each with its bounds where they are known."""
    lengths = [[one.lengths for one in side] for side in (before, after)]
    p90 = change_of_quantile(lengths[0], lengths[1], 0.9, change.phi, noise)
    most = thresholds.max_step_p90_regression_pct
    bounds = as_percent(p90).rounded(DECIMALS)
    row = row_of("step_p90", _result(bounds, most), "%", most, bounds).model_copy(
        update={
            "before": round(math.exp(float(p90.before[0])), DECIMALS),
            "after": round(math.exp(float(p90.after[0])), DECIMALS),
        }
    )
    return [
        (row, bounds),
        _share_check(
            "communication_share",
            [[one.communication for one in side] for side in (before, after)],
            thresholds.max_communication_share_regression_abs,
        ),
        _share_check(
            "stall_share",
            [[one.stall for one in side] for side in (before, after)],
            thresholds.max_stall_share_regression_abs,
        ),
    ]


def _share_check(
    name: str, sides: Sequence[Sequence[Series | None]], threshold: float
) -> tuple[Check, Bounds | None]:
    known = [[one for one in side if one is not None] for side in sides]
    if [len(side) for side in known] != [len(side) for side in sides]:
        reason = "a capture holds no device time per step"
        row = Check(check=name, result=NOT_JUDGED, unit="share", threshold=threshold, reason=reason)
        return row, None
    change = change_of_location(known[0], known[1])
    bounds = as_difference(change).rounded(DECIMALS)
    row = row_of(name, _result(bounds, threshold), "share", threshold, bounds).model_copy(
        update={
            "before": round(float(change.before[0]), DECIMALS),
            "after": round(float(change.after[0]), DECIMALS),
        }
    )
    return row, bounds


def _result(bounds: Bounds, threshold: float) -> str:
    if not _is_known(bounds):
        return NOT_JUDGED
    if bounds.is_beyond(threshold)[0]:
        return WARN
    return PASS if bounds.is_within(threshold)[0] else INCONCLUSIVE


def _is_known(bounds: Bounds) -> bool:
    return bool(np.isfinite(bounds.lower[0]) and np.isfinite(bounds.upper[0]))


def row_of(name: str, result: str, unit: str, threshold: float, bounds: Bounds) -> Check:
    known = _is_known(bounds)
    values = {
        field: float(getattr(bounds, field)[0]) + 0.0 for field in ("low", "high", "lower", "upper")
    }
    return Check(
        check=name,
        result=result,
        unit=unit,
        threshold=threshold,
        change=float(bounds.estimate[0]) + 0.0,
        interval=(values["low"], values["high"]) if known else None,
        lower_bound=values["lower"] if known else None,
        upper_bound=values["upper"] if known else None,
        reason=None if known else "too few steps for an interval",
    )
