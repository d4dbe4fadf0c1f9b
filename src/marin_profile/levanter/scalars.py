"""The few numbers of a summary that a tracker shows as scalars.

Contract: plain floats by name, only those that the summary knows. Times are microseconds per step,
shares are of device time in the headline's window.
"""

from __future__ import annotations

from marin_profile.facts.device_time import headline_time
from marin_profile.schema import ProfileSummary

_LEDGER_TERMS = (
    "compute",
    "exposed_communication",
    "exposed_transfer",
    "unattributed",
    "idle",
)


def scalars_of(summary: ProfileSummary) -> dict[str, float]:
    """Step times (the period is from start to start), ledger shares and, where known, MFU."""
    duration, period = summary.step_time.steady_state_steps, summary.step_time.period
    found = {
        "step_period_median_us": period.median if period else None,
        "step_period_p90_us": period.p90 if period else None,
        "step_duration_median_us": duration.median,
        "step_duration_p90_us": duration.p90,
        "num_steps": duration.count,
        "mfu": summary.roofline.mfu if summary.roofline else None,
        **_ledger_shares(summary),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _ledger_shares(summary: ProfileSummary) -> dict[str, float | None]:
    time = headline_time(summary)
    if time is None:
        return {}
    return {f"{term}_share": getattr(time, f"{term}_share") for term in _LEDGER_TERMS}
