"""Records as points in time: one per capture.

Contract: a point has the step length that is asked for, and a time of its own. Of records of one
capture (trace digest) the first counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from marin_profile.history.record import NOT_RECORDED, Estimand, HistoryRecord


def points_of(records: Iterable[HistoryRecord], estimand: Estimand) -> list[HistoryRecord]:
    """In the order of the records."""
    seen: set[str] = set()
    points = []
    for record in records:
        if record.length(estimand) is None or record.time_source == NOT_RECORDED:
            continue
        if record.trace_sha256 is not None:
            if record.trace_sha256 in seen:
                continue
            seen.add(record.trace_sha256)
        points.append(record)
    return points


def lengths_of(points: Sequence[HistoryRecord], estimand: Estimand) -> list[float]:
    """In microseconds."""
    return [length for point in points if (length := point.length(estimand)) is not None]


def logs_of(points: Sequence[HistoryRecord], estimand: Estimand) -> list[float]:
    return [math.log(length) for length in lengths_of(points, estimand)]
