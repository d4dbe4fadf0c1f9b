"""Events that cannot be: what no profiler writes is left out, counted, and said.

Contract
* Both readers pass what they read through `checked`. A sound Timeline comes back as it is, after
  one pass over its columns.
* Left out are events outside the profile, by `dropped["outside_profile"]`, and ops far longer than
  any module execution of their plane, by `dropped["longer_than_program"]`. A device time far off
  the event's own is forgotten, by `dropped["implausible_device_time"]` (the event stays).
* The profile is what the file says, [start, stop]. Where it does not, work is measured by when
  everything else began. Where most events would be outside, it is the clock that is wrong: nothing
  is left out, and that is said.
* A line in which a few events stand out of order is said; nobody knows which of them is wrong. In
  JSON, and of a short line, it is said of the only such line among several.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.times import PS_PER_NS
from marin_profile.capture.formats import XPLANE
from marin_profile.events.timeline import Flow, Int64s, Line, Sparse, Timeline

PS_PER_MS = 1_000_000_000
PS_PER_SECOND = 1000 * PS_PER_MS
# The profiler reads its own stop time a little before it stops.
LEAST_SLACK_PS = PS_PER_SECOND // 10
SLACK = 0.05
# Without a window: so many times the extent of most starts, to each side.
SPARE_EXTENTS = 3
SAMPLED_STARTS = 4096
LONGEST_PS = 26 * 24 * 3600 * PS_PER_SECOND
# An op may be cut from its module at the profile's start, where the module is not written.
OVER_LONGEST_MODULE = 1.5
# A line with more events out of order than this is written so.
FEW_OUT_OF_ORDER = 0.02
LEAST_ORDERED, LONG_LINE = 8, 50
LEAST_SORTED_LINES = 4

MODULE_LINES = ("XLA Modules", "Sparse Core Modules")
OP_LINES = ("XLA Ops", "Sparse Core Ops")
WORK_LINES = (*MODULE_LINES, *OP_LINES, "Steps", "Sparse Core Steps", "Stream")

FIRST, LAST, END, LONGEST, DESCENTS = range(5)
Bools = NDArray[np.bool_]


def checked(timeline: Timeline) -> Timeline:
    """The Timeline without what cannot be; `doubts` say what was left out."""
    if not timeline.num_events:
        return timeline
    facts = line_facts(timeline)
    found = _Found()
    timeline = _without_odd_device_times(timeline, facts, found)
    drop = np.zeros(timeline.num_events, np.bool_)
    _outside(timeline, facts, drop, found)
    _longer_than_programs(timeline, facts, drop, found)
    _out_of_order(timeline, facts, found)
    if not found.doubts:
        return timeline
    return replace(
        _without(timeline, drop),
        dropped=dict(Counter(timeline.dropped) + found.dropped),
        doubts=(*timeline.doubts, *found.doubts),
    )


class _Found:
    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.doubts: list[str] = []


def line_facts(timeline: Timeline) -> Int64s:
    """Per line: first and last start, last end, longest duration, how often starts descend."""
    facts = np.zeros((len(timeline.lines), 5), np.int64)
    for index, line in enumerate(timeline.lines):
        if line.count:
            rows = slice(line.first, line.first + line.count)
            start, duration = timeline.start[rows], timeline.duration[rows]
            facts[index] = (
                start.min(),
                start.max(),
                (start + duration).max(),
                duration.max(),
                np.count_nonzero(start[1:] < start[:-1]),
            )
    return facts


# --- events outside the profile ----------------------------------------------------------------


@dataclass(frozen=True)
class _Bounds:
    """From when until when events can be, picoseconds of the Timeline; what says so."""

    low: int
    high: int
    is_told: bool


def _told_window(timeline: Timeline) -> tuple[int, int] | None:
    start, stop, origin = timeline.profile_start_ns, timeline.profile_stop_ns, timeline.origin
    if start is None or stop is None or origin is None:
        return None
    length = (stop - start) * PS_PER_NS
    begin = (start - origin[0]) * PS_PER_NS - origin[1]
    is_sane = 0 < length <= LONGEST_PS and abs(begin) <= LONGEST_PS
    return (begin, begin + length) if is_sane else None


def _bounds(timeline: Timeline) -> _Bounds:
    told = _told_window(timeline)
    if told:
        slack = LEAST_SLACK_PS + int(SLACK * (told[1] - told[0]))
        return _Bounds(told[0] - slack, told[1] + slack, is_told=True)
    sample = np.sort(timeline.start[:: max(1, timeline.num_events // SAMPLED_STARTS)])
    rare = len(sample) // 100 + (len(sample) > 2)
    low, high = int(sample[rare]), int(sample[len(sample) - 1 - rare])
    spare = SPARE_EXTENTS * (high - low) + LEAST_SLACK_PS
    return _Bounds(low - spare, high + spare, is_told=False)


def _outside(timeline: Timeline, facts: Int64s, drop: Bools, found: _Found) -> None:
    bounds = _bounds(timeline)
    suspects = [
        (index, line)
        for index, line in enumerate(timeline.lines)
        if line.count and (facts[index, FIRST] < bounds.low or facts[index, END] > bounds.high)
    ]
    if suspects and not bounds.is_told:
        work = _is_work(timeline)
        bounds = _widened(bounds, timeline.start[~work])
    if not suspects:
        return
    outside = np.zeros(timeline.num_events, np.bool_)
    for _, line in suspects:
        rows = slice(line.first, line.first + line.count)
        begin = timeline.start[rows]
        outside[rows] = (begin < bounds.low) | (begin + timeline.duration[rows] > bounds.high)
    if not bounds.is_told:
        outside &= work
    count = int(outside.sum())
    if not count:
        return
    if 2 * count > timeline.num_events:
        found.doubts.append(
            f"{count:,} of {timeline.num_events:,} events lie outside the profile's own start and "
            "stop: its clocks do not agree, or the file is damaged."
        )
        return
    drop |= outside
    found.dropped["outside_profile"] = count
    what = "the profile's own start and stop" if bounds.is_told else "the time of all others"
    found.doubts.append(
        f"{_events(count)} outside {what} {_are(count)} left out ({_example(timeline, outside)}): "
        "the file may be damaged."
    )


def _is_work(timeline: Timeline) -> Bools:
    """Rows of the op, module and step lines of devices, and ops wherever they are."""
    of_line = np.array([line.name.startswith(WORK_LINES) for line in timeline.lines], np.bool_)
    is_op = np.array([bool(op.hlo_op) for op in timeline.ops], np.bool_)
    work: Bools = of_line[timeline.line] | is_op[timeline.op]
    return work


def _widened(bounds: _Bounds, starts: Int64s) -> _Bounds:
    if not len(starts):
        return bounds
    low, high = int(starts.min()), int(starts.max()) + LEAST_SLACK_PS
    return _Bounds(min(bounds.low, low), max(bounds.high, high), is_told=False)


# --- ops longer than their program -------------------------------------------------------------


def _longest_module(timeline: Timeline, facts: Int64s) -> dict[int, int]:
    """By plane; planes without module executions are left out."""
    longest: dict[int, int] = {}
    for index, line in enumerate(timeline.lines):
        if line.count and line.name in MODULE_LINES:
            longest[line.plane] = max(longest.get(line.plane, 0), int(facts[index, LONGEST]))
    return longest


def _op_lines(timeline: Timeline) -> list[tuple[int, Line]]:
    return [
        (index, line)
        for index, line in enumerate(timeline.lines)
        if line.count and line.name.startswith(OP_LINES)
    ]


def _longer_than_programs(timeline: Timeline, facts: Int64s, drop: Bools, found: _Found) -> None:
    longest = _longest_module(timeline, facts)
    too_long = np.zeros(timeline.num_events, np.bool_)
    for index, line in _op_lines(timeline):
        most = int(OVER_LONGEST_MODULE * longest.get(line.plane, LONGEST_PS)) + PS_PER_MS
        if facts[index, LONGEST] > most:
            rows = slice(line.first, line.first + line.count)
            too_long[rows] = (timeline.duration[rows] > most) & ~drop[rows]
    count = int(too_long.sum())
    if not count:
        return
    drop |= too_long
    found.dropped["longer_than_program"] = count
    found.doubts.append(
        f"{_events(count)} far longer than any module execution {_are(count)} left out "
        f"({_example(timeline, too_long)}): the file may be damaged."
    )


# --- device times ------------------------------------------------------------------------------


def _without_odd_device_times(timeline: Timeline, facts: Int64s, found: _Found) -> Timeline:
    column = timeline.device_start
    if not len(column):
        return timeline
    longest = _longest_module(timeline, facts)
    odd: list[Int64s] = []
    for index, line in enumerate(timeline.lines):
        first, last = np.searchsorted(column.rows, (line.first, line.first + line.count))
        if first == last:
            continue
        rows = column.rows[first:last]
        shift = column.values[first:last] - timeline.start[rows]
        # Clocks drift; an op's device time may be any part of its execution.
        own = longest.get(line.plane, 2 * int(facts[index, LONGEST]))
        spread = own + (int(facts[index, LAST]) - int(facts[index, FIRST])) // 100 + PS_PER_MS
        if int(shift.max()) - int(shift.min()) <= spread:
            continue
        odd.append(rows[np.abs(shift - int(np.median(shift))) > spread])
    rows = np.concatenate([*odd, _too_long_on_device(timeline, longest)])
    if not len(rows):
        return timeline
    is_odd = np.zeros(timeline.num_events, np.bool_)
    is_odd[rows] = True
    count = int(is_odd.sum())
    found.dropped["implausible_device_time"] = count
    found.doubts.append(
        f"The device time of {_events(count)} is far off their own and not used "
        f"({_example(timeline, is_odd)}): the file may be damaged."
    )
    start = _kept(timeline.device_start, ~is_odd)
    if len(start):
        start = Sparse(start.rows, start.values - start.values.min())
    return replace(
        timeline,
        device_start=start,
        device_duration=_kept(timeline.device_duration, ~is_odd),
    )


def _too_long_on_device(timeline: Timeline, longest: dict[int, int]) -> Int64s:
    column = timeline.device_duration
    if not longest or not len(column):
        return np.zeros(0, np.int64)
    most = int(OVER_LONGEST_MODULE * max(longest.values())) + PS_PER_MS
    if column.values.max() <= most:
        return np.zeros(0, np.int64)
    return column.rows[column.values > most]


def _kept(column: Sparse, keep: Bools) -> Sparse:
    chosen = keep[column.rows]
    return Sparse(column.rows[chosen], column.values[chosen])


# --- order -------------------------------------------------------------------------------------


def _out_of_order(timeline: Timeline, facts: Int64s, found: _Found) -> None:
    """The profiler sorts the events of each line as it writes an XSpace. Of a short line, and in
    JSON, which not every writer sorts, that is known if all other lines are sorted."""
    known = [index for index, line in enumerate(timeline.lines) if line.count >= LEAST_ORDERED]
    unsorted = [index for index in known if facts[index, DESCENTS]]
    is_alone = len(unsorted) == 1 and len(known) >= LEAST_SORTED_LINES
    for index in unsorted:
        line, descents = timeline.lines[index], int(facts[index, DESCENTS])
        is_sorted = timeline.source_format == XPLANE and line.count >= LONG_LINE
        if (is_sorted or is_alone) and descents <= max(1, FEW_OUT_OF_ORDER * line.count):
            plane = timeline.planes[line.plane].name
            found.doubts.append(
                f"{_events(descents)} of line {line.name!r} of {plane} {_are(descents)} out of "
                "order, which the profiler writes sorted: times there may be damaged."
            )


# --- without the rows --------------------------------------------------------------------------


def _without(timeline: Timeline, drop: Bools) -> Timeline:
    if not drop.any():
        return timeline
    keep = ~drop
    place = np.cumsum(keep) - 1
    start = timeline.start[keep]
    moved = int(start.min()) if len(start) else 0
    origin = timeline.origin
    if origin is not None:
        nanoseconds, picoseconds = divmod(origin[1] + moved, PS_PER_NS)
        origin = (origin[0] + nanoseconds, picoseconds)
    lines = []
    first = 0
    for line in timeline.lines:
        count = int(keep[line.first : line.first + line.count].sum())
        lines.append(replace(line, first=first if line.count else line.first, count=count))
        first += count

    def sparse(column: Sparse) -> Sparse:
        kept = _kept(column, keep)
        return Sparse(place[kept.rows], kept.values)

    def flow(column: Flow) -> Flow:
        chosen = keep[column.rows]
        return Flow(place[column.rows[chosen]], column.types[chosen], column.ids[chosen])

    device_start = sparse(timeline.device_start)
    if len(device_start):
        device_start = Sparse(device_start.rows, device_start.values - device_start.values.min())
    return replace(
        timeline,
        lines=tuple(lines),
        line=timeline.line[keep],
        op=timeline.op[keep],
        start=start - moved,
        duration=timeline.duration[keep],
        device_start=device_start,
        device_duration=sparse(timeline.device_duration),
        run_id=sparse(timeline.run_id),
        correlation_id=sparse(timeline.correlation_id),
        step_num=sparse(timeline.step_num),
        device_ordinal=sparse(timeline.device_ordinal),
        produced=flow(timeline.produced),
        consumed=flow(timeline.consumed),
        allocations=tuple(replace(one, start=one.start - moved) for one in timeline.allocations),
        origin=origin,
        first_ts=None if timeline.first_ts is None else timeline.first_ts + moved,
    )


def _events(count: int) -> str:
    return f"{count:,} event" + ("" if count == 1 else "s")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _example(timeline: Timeline, chosen: Bools) -> str:
    row = int(np.argmax(chosen))
    line = timeline.lines[timeline.line[row]]
    seconds = (float(timeline.start[row]) + float(timeline.duration[row])) / PS_PER_SECOND
    length = float(timeline.duration[row]) / PS_PER_SECOND
    return (
        f"{timeline.ops[timeline.op[row]].name!r} on {timeline.planes[line.plane].name} lasts "
        f"{length:,.6f} s and ends at {seconds:,.6f} s"
    )
