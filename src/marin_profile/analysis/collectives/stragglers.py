"""Which device or host makes the others wait.

Contract: delay = the wait it causes, per device that may wait for it: for a host the devices of
other hosts, for a device those of its own host (of other hosts, where it is alone on its own). So
the devices of a slow host do not stand out against each other, but the host does, and they with
it. Delays that are spread evenly make no straggler: one must stand out above the median by a
modified z = 0.6745 (x - median) / max(MAD, floor) of more than 3.5; of two, one must lie above the
other by more than 5 % of the window. The floor is 1 % of the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marin_profile.analysis.collectives.waits import MemberWaits

STANDS_OUT = 3.5
FLOOR = 0.01
OF_TWO = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """delay: picoseconds in the window, None where nobody can wait for it; z: None for two.
    with_its_host: a device that is a straggler because its host is one, no more than the others."""

    delay: float | None
    is_straggler: bool
    z: float | None
    with_its_host: bool = False


@dataclass(frozen=True, slots=True)
class HostWaits:
    """One host's devices together; picoseconds. wait_caused: of devices on other hosts."""

    host: str
    devices: int
    wait: int
    wait_caused: int
    verdict: Verdict


def judge_hosts(members: Sequence[MemberWaits], window: int) -> list[HostWaits]:
    """In the order of the members; none for a single host."""
    by_host: dict[str, list[MemberWaits]] = {}
    for member in members:
        by_host.setdefault(member.host, []).append(member)
    if len(by_host) < 2:
        return []
    caused = {
        host: sum(one.wait_caused - one.caused_on_host for one in own)
        for host, own in by_host.items()
    }
    delays = [caused[host] / (len(members) - len(own)) for host, own in by_host.items()]
    return [
        HostWaits(host, len(own), sum(one.wait for one in own), caused[host], verdict)
        for (host, own), verdict in zip(by_host.items(), _judge(delays, window), strict=True)
    ]


def judge_devices(
    members: Sequence[MemberWaits], hosts: Sequence[HostWaits], window: int
) -> list[Verdict]:
    """One per member; the devices of a straggling host are stragglers with it."""
    devices = Counter(one.host for one in members)
    delays = [
        one.caused_on_host / (devices[one.host] - 1)
        if devices[one.host] > 1
        else one.wait_caused / max(1, len(members) - 1)
        for one in members
    ]
    verdicts = _judge(delays, window)
    of_host = {host.host: host.verdict for host in hosts}
    return [
        _with_host(own, of_host.get(member.host))
        for member, own in zip(members, verdicts, strict=True)
    ]


def _with_host(own: Verdict, host: Verdict | None) -> Verdict:
    if host is None:
        return own
    if own.is_straggler or not host.is_straggler:
        return own
    return replace(own, is_straggler=True, with_its_host=True)


def _judge(delays: Sequence[float], window: int) -> list[Verdict]:
    if len(delays) < 2:
        return [Verdict(None, False, None) for _ in delays]
    if len(delays) == 2:
        least = min(delays)
        return [Verdict(one, one - least > OF_TWO * window, None) for one in delays]
    values = np.array(delays, np.float64)
    median = float(np.median(values))
    spread = float(np.median(np.abs(values - median)))
    scale = max(spread, FLOOR * window)
    scores = [0.6745 * (one - median) / scale if scale else 0.0 for one in delays]
    return [
        Verdict(one, score > STANDS_OUT, score) for one, score in zip(delays, scores, strict=True)
    ]
