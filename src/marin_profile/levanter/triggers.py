"""Captures on demand: a touched file, and SIGUSR2.

Contract: a check costs microseconds and never raises. The file is never removed, so that every
process of a run sees it; it may be touched again.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

TOUCH_NAME = "profile_now"
CHECK_FILE_EVERY = 0.5  # seconds: the folder may be on a slow disk


class OnDemand:
    """`requested()` is true once after each touch of the file or signal."""

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / TOUCH_NAME
        self._seen = _touched(self.path)
        self._looked = time.monotonic()
        self._signalled = False
        self._take_signal()

    def _take_signal(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and hasattr(signal, "SIGUSR2") and _is_free(signal.getsignal(signal.SIGUSR2)):
            signal.signal(signal.SIGUSR2, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def requested(self) -> bool:
        if self._signalled:
            self._signalled = False
            return True
        now = time.monotonic()
        if now - self._looked < CHECK_FILE_EVERY:
            return False
        self._looked = now
        touched = _touched(self.path)
        if touched is None or touched == self._seen:
            return False
        self._seen = touched
        return True


def _is_free(handler: object) -> bool:
    """No handler, or that of an earlier training in this process."""
    return handler == signal.SIG_DFL or getattr(handler, "__func__", None) is OnDemand._on_signal


def _touched(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
