"""The captures of one process, and what is said of them.

Contract
* `move` and `fail` apply the transitions of `record.py`, from any thread; a capture is named by its
  number here.
* Each change reaches every listener once, in order, and is one log line at most: what the line says
  comes from the record alone.
* Nothing here touches a disk. Of the captures that are over, the newest are kept.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Collection
from typing import Any

from marin_profile.profiling.record import OVER, CaptureRecord, State, failed, moved, noted
from marin_profile.profiling.sentences import line_of

logger = logging.getLogger(__name__)

KEPT = 20

Listener = Callable[[int, CaptureRecord], None]


class Records:
    """`over`: states that nothing follows here, beside those that are over by themselves."""

    def __init__(self, listen: Listener, over: Collection[State] = ()) -> None:
        self._listen = listen
        self._over = OVER.union(over)
        self._lock = threading.Lock()
        self._all: dict[int, CaptureRecord] = {}
        self._numbers = itertools.count()
        self.num_begun = 0

    def add(self, record: CaptureRecord) -> int:
        """A capture, in the state that it was left in or begins with; its number."""
        with self._lock:
            number = next(self._numbers)
            self.num_begun += record.state is State.PLANNED
            self._forget()
            self._changed(number, record)
        _say(record)
        return number

    def move(self, number: int, to: State, **facts: Any) -> CaptureRecord:
        with self._lock:
            record = self._changed(number, moved(self._all[number], to, **facts))
        return _say(record)

    def fail(self, number: int, why: str, **facts: Any) -> CaptureRecord:
        with self._lock:
            record = self._changed(number, failed(self._all[number], why, **facts))
        return _say(record)

    def note(self, number: int, **facts: Any) -> CaptureRecord:
        """What became known of a capture; its state stays."""
        with self._lock:
            return self._changed(number, noted(self._all[number], **facts))

    def __getitem__(self, number: int) -> CaptureRecord:
        return self._all[number]

    def in_state(self, *states: State) -> list[int]:
        with self._lock:
            return [number for number, one in self._all.items() if one.state in states]

    def every(self) -> list[CaptureRecord]:
        with self._lock:
            return list(self._all.values())

    def _forget(self) -> None:
        over = [number for number, one in self._all.items() if one.state in self._over]
        for number in over[:-KEPT]:
            del self._all[number]

    def _changed(self, number: int, record: CaptureRecord) -> CaptureRecord:
        self._all[number] = record
        self._listen(number, record)
        return record


def _say(record: CaptureRecord) -> CaptureRecord:
    """Outside the lock: nobody knows how long a handler takes."""
    line = line_of(record)
    if line is not None:
        logger.log(*line)
    return record
