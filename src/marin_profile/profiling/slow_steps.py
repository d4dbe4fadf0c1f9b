"""Which steps are slow enough for a capture of what follows.

Contract: a check costs about a microsecond: the median is taken anew every few steps only. A slow
step is left out of the median. Slow steps are found without end; the caller counts captures.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

MEDIAN_OF = 64
FEWEST_FOR_MEDIAN = 8
NEW_MEDIAN_EVERY = 16


@dataclass
class SlowSteps:
    """Steps beyond `factor` running medians."""

    factor: float
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=MEDIAN_OF))
    _bound: float | None = None
    _since: int = 0

    def is_slow(self, seconds: float) -> bool:
        """Whether a step that was not profiled, and in which nothing was compiled, was slow."""
        if self._bound is not None and seconds > self._bound:
            return True
        self._recent.append(seconds)
        self._since += 1
        known = len(self._recent)
        if known >= FEWEST_FOR_MEDIAN and (known < MEDIAN_OF or self._since >= NEW_MEDIAN_EVERY):
            self._bound = self.factor * median(self._recent)
            self._since = 0
        return False
