"""Where the time of a host goes whose devices share its processors, as CPU devices do.

Contract: at each instant of the window some device computes, or else one communicates, or else one
has other work, or all idle. A device that idles or waits while another one computes waits for
processors, so that is computing time. The four sum to the window exactly. Times are picoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_profile.analysis.device_ops import DeviceOps
from marin_profile.analysis.ledger import DeviceIntervals
from marin_profile.analysis.planes import CPU
from marin_profile.base.errors import InternalError
from marin_profile.base.intervals import Intervals, Window


@dataclass(frozen=True)
class SharedTime:
    """length: of the window; other: transfers and ops of no known group."""

    length: int
    compute: int
    communication: int
    other: int
    idle: int

    def __post_init__(self) -> None:
        if self.compute + self.communication + self.other + self.idle != self.length:
            raise InternalError("shared time sums to its window", str(self))


class SharedProcessors:
    """The CPU devices of one host, which are on one clock; others are left out."""

    def __init__(self) -> None:
        self._windows: list[Window] = []
        self._compute = Intervals.empty()
        self._communication = Intervals.empty()
        self._other = Intervals.empty()

    def add(self, device: DeviceOps, time: DeviceIntervals, window: Window) -> None:
        if device.kind != CPU:
            return
        self._windows.append(window)
        self._compute |= time.compute
        self._communication |= time.exposed_communication
        self._other |= time.exposed_transfer | time.unattributed

    def time(self) -> SharedTime | None:
        """From the first window's begin to the last one's end; None with fewer than two devices,
        where the ledger tells it."""
        if len(self._windows) < 2:
            return None
        begin = min(start for start, _ in self._windows)
        end = max(stop for _, stop in self._windows)
        sets = [self._compute, self._communication - self._compute]
        sets.append(self._other - self._compute - self._communication)
        compute, communication, other = (one.clip(begin, end).total for one in sets)
        length = end - begin
        idle = length - compute - communication - other
        return SharedTime(length, compute, communication, other, idle)
