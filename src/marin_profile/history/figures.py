"""A history's figures as one JSON document.

Contract: `history_figures` holds every number that the text and the page show. Step times are
microseconds; shifts, slopes, drifts and noise are natural logs (0.05 is about 5 %); six decimals,
so that a p below 5e-7 reads 0. A group's own figures are those of the typical step; `mean` holds
the same of the mean step (where "median" is that of the captures' means), or null.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import median
from typing import Any

from marin_profile.history.baseline import Baseline
from marin_profile.history.causes import Cause
from marin_profile.history.change_points import ChangePoint
from marin_profile.history.findings import Findings, GroupFindings, TrendFindings
from marin_profile.history.record import HistoryRecord
from marin_profile.history.trends import Trend
from marin_profile.verdict.noise import NoiseFloor

HISTORY_FIGURES_SCHEMA = "profile_history_trends.v1"
_POINT_FIELDS = (
    "time",
    "time_source",
    "median",
    "p90",
    "mean_period",
    "num_steps",
    "status",
    "confidence",
    "git_sha",
    "run_path",
    "run_id",
    "source_path",
    "trace_sha256",
)


def history_figures(findings: Findings, *, tail: int = 20) -> dict[str, Any]:
    """`tail`: how many of the last points to list per group; the other figures cover all."""
    return {
        "schema_version": HISTORY_FIGURES_SCHEMA,
        "num_records": findings.num_records,
        "problems": list(findings.problems),
        "baseline": findings.baseline,
        "groups": [_group(one, tail) for one in findings.groups],
    }


def _group(one: GroupFindings, tail: int) -> dict[str, Any]:
    group = one.group
    points = group.typical.points
    typical, *others = (_trend(found) for found in one.trends)
    return {
        **asdict(group.configuration),
        "num_records": group.num_records,
        "status_counts": dict(group.status_counts),
        "without_commit": group.without_commit,
        **typical,
        "mean": others[0] if others else None,
        "recent_points": [_point(point) for point in points[max(0, len(points) - tail) :]],
    }


def _trend(found: TrendFindings) -> dict[str, Any]:
    trend = found.trend
    lengths = trend.lengths
    drift = trend.drift
    return {
        "num_points": len(lengths),
        "first_median": lengths[0] if lengths else None,
        "median": median(lengths) if lengths else None,
        "last_median": lengths[-1] if lengths else None,
        "slope": asdict(trend.slope) if trend.slope else None,
        "noise_floor": _noise(trend.noise) if trend.noise else None,
        "change_points": [
            _change(trend, change, cause)
            for change, cause in zip(trend.changes, found.causes, strict=True)
        ],
        "drift": asdict(drift) | {"is_slower": drift.is_slower} if drift else None,
        "baseline": _baseline(found.baseline) if found.baseline else None,
        "is_slower": found.is_slower,
    }


def _noise(floor: NoiseFloor) -> dict[str, Any]:
    return asdict(floor) | {"degrees_of_freedom": floor.degrees_of_freedom}


def _baseline(found: Baseline) -> dict[str, Any]:
    later = found.later_level
    return {
        "num_records": found.num_records,
        "step_time": math.exp(found.level),
        "num_later": found.num_later,
        "later_step_time": None if later is None else math.exp(later),
        "log_shift": found.log_shift,
        "interval": found.interval,
        "p": found.p,
        "is_slower": found.is_slower,
    }


def _change(trend: Trend, change: ChangePoint, cause: Cause) -> dict[str, Any]:
    return {
        "index": change.index,
        "median_before": math.exp(change.level_before),
        "median_after": math.exp(change.level_after),
        "log_shift": change.level_after - change.level_before,
        "p": change.p,
        "is_slower": change.level_after > change.level_before,
        "first_record": _point(trend.points[change.index]),
        "cause": {
            "before": _point(cause.before) if cause.before else None,
            "after": _point(cause.after) if cause.after else None,
            "step_delta": cause.step_delta,
            "parts": [asdict(part) for part in cause.parts],
            "caveats": list(cause.caveats),
            "why_not": cause.why_not,
        },
    }


def _point(record: HistoryRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _POINT_FIELDS}
