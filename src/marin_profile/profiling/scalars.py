"""The few numbers of a summary that a tracker shows as scalars.

Contract: plain floats by name, only those that the summary knows. Times are microseconds per step,
shares are of device time in the headline's window, hence of the mean step.
"""

from __future__ import annotations

from marin_profile.facts.device_time import headline_time
from marin_profile.facts.step_time import typical_and_mean
from marin_profile.schema import ProfileSummary

_LEDGER_TERMS = (
    "compute",
    "exposed_communication",
    "exposed_transfer",
    "unattributed",
    "idle",
)


def scalars_of(summary: ProfileSummary) -> dict[str, float]:
    """Step times (typical: the median period; mean: what training pays; with one step its
    duration), what slow steps add to the mean, ledger shares and, where known, MFU and HFU: lower
    bounds where not all of the compute time is covered."""
    duration, period = summary.step_time.steady_state_steps, summary.step_time.period
    length = typical_and_mean(summary)
    found = {
        "step_typical_us": length.typical if length else None,
        "step_mean_us": length.mean if length else None,
        "step_outlier_excess_us": length.outlier_excess if length else None,
        "num_outlier_steps": len(summary.step_time.outliers) if length else None,
        "step_period_median_us": period.median if period else None,
        "step_period_p90_us": period.p90 if period else None,
        "step_duration_median_us": duration.median,
        "step_duration_p90_us": duration.p90,
        "num_steps": duration.count,
        **_of_the_peak(summary),
        **_ledger_shares(summary),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _of_the_peak(summary: ProfileSummary) -> dict[str, float | None]:
    roofline = summary.roofline
    if roofline is None or roofline.mfu is None:
        return {}
    return {
        "mfu": roofline.mfu,
        "hfu": roofline.hfu,
        "roofline_coverage": roofline.coverage,
    }


def _ledger_shares(summary: ProfileSummary) -> dict[str, float | None]:
    time = headline_time(summary)
    if time is None:
        return {}
    return {f"{term}_share": getattr(time, f"{term}_share") for term in _LEDGER_TERMS}
