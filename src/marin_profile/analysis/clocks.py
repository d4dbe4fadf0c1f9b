"""Whether the clocks of a host and of its devices agree, and the least that they are apart.

Contract
* A device cannot begin work before its launch, and the host cannot see an end before it happens.
  Work that begins before its own launch, or ends after the host saw it end, is a *conflict*.
* The *offset* is what must be added to the devices' times to put them on the host's clock. Every
  launch bounds it from below (launch - begin), every completion from above (seen - end); of several
  devices the tightest bounds count. Where no offset fits both, clocks do not differ by a constant.
* Event times are whole nanoseconds: one tick is no conflict.
* CPU devices are on their host's clock. Nothing to compare is no conflict: `compared` is then 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marin_profile.analysis.device_ops import HostDevices
from marin_profile.analysis.launches import Matched, find_launches
from marin_profile.base.times import PS_PER_NS, PS_PER_US

_PS_PER_MS = 1000 * PS_PER_US


@dataclass(frozen=True)
class ClockCheck:
    """conflicts: how many of `compared` pairs of device work and host event contradict each other.
    bound_ps: nothing that relates host and device times is known below this (0 without conflict).
    at_least, at_most: the bounds of the offset in ps, None where nothing tells. example: the
    widest conflict in words, "" without one."""

    compared: int
    conflicts: int
    bound_ps: int
    at_least: int | None
    at_most: int | None
    example: str

    @property
    def agrees(self) -> bool:
        return self.conflicts == 0

    @property
    def offset(self) -> int | None:
        """The least correction that mends every conflict, in ps; None where clocks agree, or where
        no constant does."""
        if self.agrees:
            return None
        low, high = self.at_least, self.at_most
        if low is not None and high is not None and low > high:
            return None
        return low if low is not None and low > 0 else high


def host_clock(host: HostDevices) -> ClockCheck:
    """Compare every launch and completion of the host's devices with their work; O(n log n)."""
    launches = find_launches(host)
    early = _widest(launches.begun, 1)
    late = _widest(launches.ended, -1)
    widest = max(early, late, key=lambda side: side.gap)
    conflicts = early.conflicts + late.conflicts
    return ClockCheck(
        compared=early.compared + late.compared,
        conflicts=conflicts,
        bound_ps=widest.gap if conflicts else 0,
        at_least=early.gap if early.compared else None,
        at_most=-late.gap if late.compared else None,
        example=_in_words(host, widest, is_early=widest is early) if conflicts else "",
    )


@dataclass(frozen=True)
class _Side:
    """One direction of the comparison; gap: the widest (host - device) time in that direction."""

    compared: int = 0
    conflicts: int = 0
    gap: int = np.iinfo(np.int64).min
    device: str = ""
    op: int = -1


def _widest(found: Sequence[Matched], sign: int) -> _Side:
    side = _Side()
    for matched in found:
        gaps = sign * (matched.host_time - matched.device_time)
        at = int(np.argmax(gaps))
        is_wider = int(gaps[at]) > side.gap
        side = _Side(
            compared=side.compared + len(gaps),
            conflicts=side.conflicts + int((gaps > PS_PER_NS).sum()),
            gap=int(gaps[at]) if is_wider else side.gap,
            device=matched.device.name if is_wider else side.device,
            op=int(matched.op[at]) if is_wider else side.op,
        )
    return side


def _in_words(host: HostDevices, side: _Side, *, is_early: bool) -> str:
    event = host.timeline.ops[side.op].name
    milliseconds = f"{side.gap / _PS_PER_MS:,.3f} ms"
    if is_early:
        return f"work of {side.device} began {milliseconds} before its launch ({event})"
    return f"work of {side.device} ended {milliseconds} after the host saw it end ({event})"
