"""Lines that `marin.profiling`'s track wrote, read as records.

Contract: such a line holds the median and p90 of the capture after the change, but not what they
measure, nor its steps, hardware or config. Its basis is "unknown", so it joins no noise floor; its
time is when the line was written.
"""

from __future__ import annotations

import math
from typing import Any

from marin_profile.history.record import NOT_RECORDED, HistoryRecord, utc
from marin_profile.schema import EPOCH_UTC


def is_legacy_line(data: dict[str, Any]) -> bool:
    return isinstance(data.get("assessment"), dict) and isinstance(data.get("after"), dict)


def record_of_legacy_line(data: dict[str, Any]) -> HistoryRecord:
    after, assessment = data["after"], data["assessment"]
    comparison = _map(assessment.get("comparison"))
    step_time = _map(comparison.get("step_time"))
    provenance = _map(comparison.get("provenance_checks"))
    recorded = utc(_text(data.get("recorded_at_utc")))
    return HistoryRecord(
        time=recorded or EPOCH_UTC,
        time_source="recorded" if recorded else NOT_RECORDED,
        recorded_at_utc=recorded,
        label=_text(data.get("label")),
        run_path=_text(after.get("run_path")),
        run_id=_text(after.get("run_id")),
        source_path=_text(after.get("source_path")),
        trace_sha256=_text(provenance.get("after_trace_sha256")),
        median=_positive(step_time.get("steady_state_median_after")),
        p90=_positive(step_time.get("steady_state_p90_after")),
        status=_text(assessment.get("status")),
    )


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _positive(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value > 0 else None
