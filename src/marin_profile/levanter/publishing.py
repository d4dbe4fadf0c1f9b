"""Publishing as training sees it: outputs in, one log line about each out.

Contract: `start` returns at once, `finish` within its timeout; neither raises. One thread at a
time talks to the tracker, as long as W&B takes.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.levanter.tracker import log_staged

logger = logging.getLogger(__name__)


@dataclass
class Publishing:
    """What a run logs to its tracker; `seconds` is how long W&B may take for one artifact."""

    run_id: str
    seconds: float
    _last: threading.Thread | None = None
    _at_work: str = ""
    _given_up: bool = False

    def start(self, tracker: Any, outputs: Path) -> None:
        arguments = (self._last, tracker, outputs)
        self._last = threading.Thread(target=self._work, args=arguments, daemon=True)
        self._last.start()

    def finish(self, timeout: float) -> None:
        """Wait for uploads that are running; log which one is not done by then."""
        if self._last is None:
            return
        self._last.join(timeout)
        if self._last.is_alive():
            self._given_up = True
            logger.warning(
                "the profile in %s was not logged within the time that training waits at its end",
                self._at_work,
            )

    def _work(self, before: threading.Thread | None, tracker: Any, outputs: Path) -> None:
        if before is not None:
            before.join()
        self._at_work = str(outputs)
        self._publish(tracker, outputs)

    def _publish(self, tracker: Any, outputs: Path) -> None:
        try:
            staged = log_staged(tracker, outputs=outputs, run_id=self.run_id, seconds=self.seconds)
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            level = logging.DEBUG if self._given_up else logging.WARNING
            logger.log(level, "the profile in %s was not logged: %s", outputs, cause)
        else:
            what = "with its capture" if staged.decision.wanted else "without its capture"
            logger.info("profile summary logged, %s (%s)", what, staged.decision.why)
