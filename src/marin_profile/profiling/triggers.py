"""Captures asked for by a touched file, by SIGUSR2 or after a slow step; and when they begin.

Contract
* `due` is the first step before which one may begin, NEVER if none is asked for; a look at it costs
  nothing. The file is looked at in `look`, which belongs in a thread.
* In one process a capture begins at once; with an agreement, at the step that all processes agreed
  on, or not at all. A step inside another capture waits for its end, in all processes alike.
* The file is never removed, so that every process of a run sees it; it may be touched again. The
  signal is used only if nobody else does, and given back.
"""

from __future__ import annotations

import logging
from collections import deque
from pathlib import Path
from typing import Protocol

from marin_profile.profiling.record import ON_DEMAND
from marin_profile.profiling.signals import taken

logger = logging.getLogger(__name__)

NEVER = 1 << 62  # a step that no run reaches
TOUCH_NAME = "profile_now"


class Agreement(Protocol):
    """What several processes agree on. One thread calls it, not training's."""

    def propose(self, trigger: str, step: int, touched: int | None = None) -> None:
        """Ask all processes for a capture after `step`. `touched`: when the file that asks for it
        was touched, in ns: all processes may see it, some of them late."""

    def poll(self, last_step: int, step_seconds: float | None) -> tuple[int, str] | None:
        """The step that all agreed on, and the trigger, once; `last_step`: the newest one here;
        `step_seconds`: what a step usually takes, if that is known."""

    def close(self) -> None:
        """Leave nothing behind."""


class Requests:
    """`run_dir`: where the touched file is looked for; None: neither the file nor the signal."""

    def __init__(self, run_dir: Path | None, agreement: Agreement | None = None) -> None:
        self.due = NEVER
        self._trigger = ON_DEMAND
        self._agreement = agreement
        self._path = run_dir / TOUCH_NAME if run_dir is not None else None
        self._seen = _touched(self._path)
        self._signalled = False
        self._asked: deque[tuple[str, int]] = deque()
        self._signal = taken("SIGUSR2", self._on_signal) if run_dir is not None else None

    def ask(self, trigger: str, step: int) -> None:
        """Ask for a capture after `step`, from any thread."""
        if self._agreement is not None:
            self._asked.append((trigger, step))
        elif self.due == NEVER:
            self._trigger, self.due = trigger, 0

    def look(self, last_step: int, step_seconds: float | None = None) -> None:
        """Whether the file was touched or the signal came, and what the processes agreed on."""
        touched = _touched(self._path)
        is_new = touched is not None and touched != self._seen
        was_signalled, self._signalled = self._signalled, False
        if is_new or was_signalled:
            logger.info("a profile was requested")
        self._seen = touched
        if self._agreement is None:
            if is_new:
                self.ask(ON_DEMAND, last_step)
            return
        if is_new or was_signalled:
            self._agreement.propose(ON_DEMAND, last_step, touched if is_new else None)
        while self._asked:
            self._agreement.propose(*self._asked.popleft())
        agreed = self._agreement.poll(last_step, step_seconds)
        if agreed is not None:
            step, self._trigger = agreed
            self.due = step

    def captured(self, steps: range) -> None:
        """A capture of these steps has ended: one that was to begin among them is next."""
        if self.due in steps:
            self.due = steps.stop

    def take(self, step: int) -> str | None:
        """The trigger of the capture that begins with `step`, if one is due."""
        due = self.due
        if step < due:
            return None
        self.due = NEVER
        if due > 0 and step > due:
            logger.warning(
                "not profiled: the processes agreed on step %d, which was over before it was known",
                due,
            )
            return None
        return self._trigger

    def withdraw(self) -> None:
        """No capture can begin any more: the agreement leaves nothing behind. For the thread that
        looks."""
        if self._agreement is not None:
            self._agreement.close()

    def give_back(self) -> None:
        """The signal to whoever had it."""
        if self._signal is not None:
            self._signal.give_back()

    def _on_signal(self, *_: object) -> None:
        # In the thread of training, between two of its instructions: no lock may be taken here.
        self._signalled = True
        if self._agreement is None and self.due == NEVER:
            self._trigger, self.due = ON_DEMAND, 0


def _touched(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
