"""A history's figures as one JSON document.

Contract: `history_figures` holds every number that the terminal and the page show. Step times are
microseconds; shifts, slopes and noise are natural logs (0.05 is about 5 %); six decimals, so that a
p below 5e-7 reads 0.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import median
from typing import Any

from marin_profile.history.change_points import ChangePoint
from marin_profile.history.record import HistoryRecord
from marin_profile.history.store import History
from marin_profile.history.trends import Group, groups_of

HISTORY_FIGURES_SCHEMA = "profile_history_trends.v1"
_POINT_FIELDS = (
    "time",
    "time_source",
    "median",
    "p90",
    "num_steps",
    "status",
    "confidence",
    "git_sha",
    "run_path",
    "run_id",
    "source_path",
    "trace_sha256",
)


def history_figures(history: History, *, tail: int = 20) -> dict[str, Any]:
    """`tail`: how many of the last points to list per group; the other figures cover all."""
    return {
        "schema_version": HISTORY_FIGURES_SCHEMA,
        "num_records": len(history.records),
        "problems": list(history.problems),
        "groups": [_group(group, tail) for group in groups_of(history)],
    }


def _group(group: Group, tail: int) -> dict[str, Any]:
    points = group.points
    return {
        **asdict(group.configuration),
        "num_records": group.num_records,
        "status_counts": dict(group.status_counts),
        "num_points": len(points),
        "first_median": points[0].median if points else None,
        "median": median(group.medians) if points else None,
        "last_median": points[-1].median if points else None,
        "slope": asdict(group.slope) if group.slope else None,
        "noise_floor": asdict(group.noise) if group.noise else None,
        "change_points": [_change(group, change) for change in group.changes],
        "recent_points": [_point(point) for point in points[max(0, len(points) - tail) :]],
    }


def _change(group: Group, change: ChangePoint) -> dict[str, Any]:
    return {
        "index": change.index,
        "median_before": math.exp(change.level_before),
        "median_after": math.exp(change.level_after),
        "log_shift": change.level_after - change.level_before,
        "p": change.p,
        "is_slower": change.level_after > change.level_before,
        "first_record": _point(group.points[change.index]),
    }


def _point(record: HistoryRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _POINT_FIELDS}
