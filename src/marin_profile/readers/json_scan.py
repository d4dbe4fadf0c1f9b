"""Reads the events array of a JSON window.

Contract: a damaged object costs itself only: the scan goes on at the next object that is an event.
"""

from __future__ import annotations

import re

from marin_profile.base.jit import is_compiled
from marin_profile.base.progress import advance
from marin_profile.readers.json_events import Events
from marin_profile.readers.json_loop import CHUNK, UsualEvents
from marin_profile.readers.json_objects import find_event, read_object
from marin_profile.readers.json_stream import MAX_OBJECT, StreamWindow
from marin_profile.readers.json_text import BAD, CUT, Buffer

ARRAY_CLOSED = -3
ROOM_FULL = -4

# At most so many unusual objects are read in the plain form before the compiled loop tries again.
FEW = 64
# How a file ends whose last event is damaged: the array's end, perhaps some plain keys.
TAIL = 1 << 12
ARRAY_END = re.compile(rb"\](\s*,[^\[\]{}]*)?\s*\}?\s*$")
_between = re.compile(rb"[\x00-\x20,]*+").match


def scan(window: StreamWindow) -> Events:
    """Read the events array whose first object is at `window.start`; leaves it after the `]`."""
    events = Events()
    usual = UsualEvents()
    few = 1
    while not events.is_torch:
        before, objects = events.num_rows, events.num_objects
        window.start = usual.read(window.buf, window.start, window.end, events)
        outcome = ROOM_FULL
        if events.num_rows < before + CHUNK:
            few = min(2 * few, FEW) if events.num_objects == objects else 1
            window.start, outcome = read_objects(
                window.buffer, window.start, window.end, few if is_compiled() else CHUNK, events
            )
        advance(events=events.num_rows - before)
        if outcome == ARRAY_CLOSED:
            events.closed = True
            break
        if outcome == ROOM_FULL or (outcome == CUT and window.grow()):
            continue
        if window.start == window.end:
            events.cut = True
            break
        if not _resume(window, events, outcome):
            break
    return events


def read_objects(buffer: Buffer, i: int, end: int, most: int, events: Events) -> tuple[int, int]:
    """Read at most so many objects of the array from `i` on.

    Returns the position and ROOM_FULL, ARRAY_CLOSED (after the `]`), CUT, or BAD (at the damaged
    object).
    """
    for _ in range(most):
        found = _between(buffer, i, end)
        i = found.end() if found else i
        if i >= end:
            return i, CUT
        opens = buffer[i]
        if opens == ord("]"):
            return i + 1, ARRAY_CLOSED
        if opens != ord("{"):
            return i, BAD
        stop, own, args = read_object(buffer, i, end)
        if stop < 0:
            return i, stop
        events.add_object(own, args)
        i = stop
    return i, ROOM_FULL


def _resume(window: StreamWindow, events: Events, outcome: int) -> bool:
    """Go on behind the unreadable object at `start`; False if no event follows."""
    broken = window.offset + window.start
    at = window.start + 1
    while True:
        last = window.finished
        final = last or window.end - at > MAX_OBJECT
        at, found = find_event(window.buffer, at, window.end, final=final)
        if found:
            _damaged(events, broken, window.offset + at)
            window.start = at
            return True
        if last:
            _lose_tail(window, events, broken, outcome)
            return False
        window.start = max(at - TAIL, window.start)
        kept = at - window.start
        window.more()
        at = window.start + kept


def _lose_tail(window: StreamWindow, events: Events, broken: int, outcome: int) -> None:
    """The last event is damaged if the array's end follows it, else the file is cut."""
    end = window.offset + window.end
    tail = window.bytes_at(max(window.end - TAIL, 0), window.end)
    window.start = window.end
    events.cut = outcome == CUT or ARRAY_END.search(tail) is None
    if events.cut:
        events.lost_tail = end - broken
        events.dropped["damaged_event"] += events.lost_tail > 0
    else:
        _damaged(events, broken, end)


def _damaged(events: Events, start: int, stop: int) -> None:
    events.damage.add(start, stop)
    events.dropped["damaged_event"] += 1
