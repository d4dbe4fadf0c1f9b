"""Publishing as training sees it: outputs in, what the tracker confirmed out.

Contract: `start` and `ended` return at once. One thread at a time talks to the tracker, as long as
that takes.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from marin_profile.profiling.record import Logged


class Tracker(Protocol):
    """Where summaries are logged."""

    def log(
        self, outputs: Path, run_id: str, seconds: float, held: tuple[Logged, ...]
    ) -> tuple[Logged, ...]:
        """Log what lies staged below `outputs`, waiting at most so long for each artifact; what the
        tracker confirmed. Of several trackers those that hold all of it, by the rows `held`, are
        left alone: their rows stay. Raises what stands in the way, where no tracker holds any."""


@dataclass
class Publishing:
    """What a run logs to its tracker; `seconds` is how long that may take for one artifact."""

    tracker: Tracker | None
    run_id: str
    seconds: float
    _waiting: queue.SimpleQueue[tuple[int, Path, tuple[Logged, ...]]] = field(
        default_factory=queue.SimpleQueue
    )
    _ended: queue.SimpleQueue[tuple[int, tuple[Logged, ...], str | None]] = field(
        default_factory=queue.SimpleQueue
    )
    _begun: set[int] = field(default_factory=set)
    _thread: threading.Thread | None = None

    def start(self, number: int, outputs: Path, held: tuple[Logged, ...]) -> None:
        """Log the outputs of capture `number`, once, to the trackers that do not hold them."""
        if number in self._begun:
            return
        self._begun.add(number)
        self._waiting.put((number, outputs, held))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._work, name="marin-profile-tracker", daemon=True
            )
            self._thread.start()

    def ended(self) -> list[tuple[int, tuple[Logged, ...], str | None]]:
        """The captures that came to an end since the last call: what was logged, or why nothing."""
        found = []
        while not self._ended.empty():
            one = self._ended.get()
            self._begun.discard(one[0])
            found.append(one)
        return found

    def _work(self) -> None:
        while True:
            try:
                number, outputs, held = self._waiting.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                return
            try:
                logged = () if self.tracker is None else self._log(outputs, held)
            except Exception as error:
                self._ended.put((number, (), f"{type(error).__name__}: {error}"))
            else:
                self._ended.put((number, logged, None))

    def _log(self, outputs: Path, held: tuple[Logged, ...]) -> tuple[Logged, ...]:
        assert self.tracker is not None
        return self.tracker.log(outputs, self.run_id, self.seconds, held)


_IDLE_SECONDS = 1.0
