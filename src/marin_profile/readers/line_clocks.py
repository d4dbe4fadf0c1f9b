"""When the lines of an XSpace begin, on one clock.

Contract: lines count from the profile's start, or from 1970. `line_starts` puts them on one clock,
the one that most events are on. A line that lies far from the profile (from the other lines, where
the file does not say when it was taken) begins nowhere: None.
"""

from __future__ import annotations

from collections.abc import Sequence

# A line's timestamp from here on is a date (2001), not a distance.
EARLIEST_EPOCH_NS = 10**18
# Picoseconds of a profile this long, added and subtracted, fit int64.
LONGEST_NS = 26 * 24 * 3600 * 10**9
_LEAST_SLACK_NS = 10**8

Window = tuple[int, int]
Stamped = tuple[int, int]  # a line's timestamp, how many events it has


def line_starts(lines: Sequence[Stamped], window: Window | None) -> list[int | None]:
    """Nanoseconds, for each line; `window` is the profile's start and stop since 1970."""
    if window and 0 < window[1] - window[0] <= LONGEST_NS:
        found = _inside(lines, *window)
        if 2 * _events(lines, found) >= _events(lines):
            return found
    return _with_most(lines)


def _inside(lines: Sequence[Stamped], start: int, stop: int) -> list[int | None]:
    length = stop - start
    slack = _LEAST_SLACK_NS + length // 20
    distances = [ns - start if ns >= EARLIEST_EPOCH_NS else ns for ns, _ in lines]
    inside = [-slack <= distance <= length + slack for distance in distances]
    clocks = {
        ns >= EARLIEST_EPOCH_NS for (ns, _), is_in in zip(lines, inside, strict=True) if is_in
    }
    chosen = distances if len(clocks) > 1 else [ns for ns, _ in lines]
    return [ns if is_in else None for ns, is_in in zip(chosen, inside, strict=True)]


def _with_most(lines: Sequence[Stamped]) -> list[int | None]:
    """The lines within LONGEST_NS of the one in the middle, by events, of the commoner clock."""
    dates = [ns >= EARLIEST_EPOCH_NS for ns, _ in lines]
    of_dates = sum(count for (_, count), is_date in zip(lines, dates, strict=True) if is_date)
    wanted = 2 * of_dates > _events(lines)
    known = sorted(line for line, is_date in zip(lines, dates, strict=True) if is_date == wanted)
    middle, before, total = 0, 0, _events(known)
    for ns, count in known:
        middle, before = ns, before + count
        if 2 * before >= total:
            break
    return [
        ns if is_date == wanted and 2 * abs(ns - middle) <= LONGEST_NS else None
        for (ns, _), is_date in zip(lines, dates, strict=True)
    ]


def _events(lines: Sequence[Stamped], starts: Sequence[int | None] | None = None) -> int:
    """The events of all lines, or of those that begin somewhere."""
    return sum(
        count for at, (_, count) in enumerate(lines) if starts is None or starts[at] is not None
    )
