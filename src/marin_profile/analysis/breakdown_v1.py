"""The two older bases of `time_breakdown`, for people who hold numbers made with them.

exclusive_per_track: exclusive time of every event on every track of every process, summed by
category. exclusive_global: device events on one timeline, communication before compute, between
the first and last compute event; the rest is stall. Both judge an event by its name and process
alone, count modules and ops alike, and use the event clock: new work should use device_ledger.
"""

from __future__ import annotations

import re

import numpy as np

from marin_profile.base.columns import sum_by
from marin_profile.base.intervals import Intervals, self_pieces
from marin_profile.events.timeline import Timeline

PER_TRACK = "exclusive_per_track"
GLOBAL = "exclusive_global"
BASIS_NAMES = {
    PER_TRACK: "exclusive_duration_per_track",
    GLOBAL: "exclusive_duration_global_timeline",
}

_STALL = re.compile(
    r"wait|barrier|donation holds|semaphore|acquire|idle|blocked|sleep", re.IGNORECASE
)
_COMMUNICATION = re.compile(
    r"all-reduce|all[-_]gather|reduce-scatter|all-to-all|alltoall|collective|permute|psum|send|recv"
    r"|nccl|allgather|allreduce|reducescatter",
    re.IGNORECASE,
)


def breakdown_v1(timeline: Timeline, mode: str) -> dict[str, int]:
    """Picoseconds per bucket (compute, communication, host, stall, other)."""
    return _per_track(timeline) if mode == PER_TRACK else _global(timeline)


def _category(name: str, process: str) -> str:
    if _STALL.search(name):
        return "stall"
    if process.startswith("/host:"):
        return "host"
    if _COMMUNICATION.search(name):
        return "communication"
    return "compute" if process.startswith("/device:") else "other"


def _per_track(timeline: Timeline) -> dict[str, int]:
    totals = dict.fromkeys(("compute", "communication", "host", "stall", "other"), 0)
    for line in timeline.lines:
        if not line.count or line.name == "Steps":
            continue
        process = timeline.planes[line.plane].name
        rows = timeline.rows_of(line)
        start, end = timeline.start[rows], timeline.start[rows] + timeline.duration[rows]
        order = np.lexsort((-end, start))
        pieces = self_pieces(start[order], end[order], np.ones(len(rows), np.bool_))
        length = pieces[1] - pieces[0]
        op = timeline.op[rows[order]][pieces[2]]
        per_op = sum_by(op, length, len(timeline.ops))
        for index in np.flatnonzero(per_op).tolist():
            category = _category(timeline.ops[index].name, process)
            totals[category] += int(per_op[index])
    return totals


def _global(timeline: Timeline) -> dict[str, int]:
    starts: dict[str, list[np.ndarray]] = {"compute": [], "communication": []}
    ends: dict[str, list[np.ndarray]] = {"compute": [], "communication": []}
    for line in timeline.lines:
        process = timeline.planes[line.plane].name
        if not line.count or line.name == "Steps" or not process.startswith("/device:"):
            continue
        rows = timeline.rows_of(line)
        categories = [_category(op.name, process) for op in timeline.ops]
        for category in starts:
            chosen = np.array([name == category for name in categories], np.bool_)
            picked = rows[chosen[timeline.op[rows]]]
            starts[category].append(timeline.start[picked])
            ends[category].append(timeline.start[picked] + timeline.duration[picked])
    union = {
        category: Intervals.union_of(
            np.concatenate([*starts[category], np.zeros(0, np.int64)]),
            np.concatenate([*ends[category], np.zeros(0, np.int64)]),
        )
        for category in starts
    }
    totals = dict.fromkeys(("compute", "communication", "host", "stall", "other"), 0)
    if not len(union["compute"]):
        return totals
    low, high = int(union["compute"].starts[0]), int(union["compute"].ends[-1])
    communication = union["communication"].clip(low, high)
    totals["communication"] = communication.total
    totals["compute"] = (union["compute"] - communication).total
    totals["stall"] = high - low - totals["communication"] - totals["compute"]
    return totals
