"""How many processes to read a capture's hosts with, where nobody says.

Contract: one for what is read in the time that processes take to start; no more than there are
processors, or than fit into free memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from marin_profile.capture.formats import format_named
from marin_profile.capture.trace_files import HostFile

# Measured: what reading takes beside a file's bytes, and how many of them a second.
SECONDS_PER_HOST = 0.02
BYTES_PER_SECOND = 60e6
# More processes take as long to start as they save below.
WORTH_SECONDS = 3.0
BYTES_PER_PROCESS = 150e6  # what each holds beside its file
_UNLIMITED = 1 << 60


def is_much(hosts: Sequence[HostFile]) -> bool:
    """Whether reading them takes longer than a moment."""
    alone = len(hosts) * SECONDS_PER_HOST + sum(host.size for host in hosts) / BYTES_PER_SECOND
    return alone >= WORTH_SECONDS


def default_jobs(hosts: Sequence[HostFile]) -> int:
    if len(hosts) < 2 or not is_much(hosts):
        return 1
    each = BYTES_PER_PROCESS + max(
        host.size * format_named(host.format).memory_per_byte for host in hosts
    )
    return max(1, min(processors(), len(hosts), int(free_memory() / each)))


def processors() -> int:
    """How many this process may use."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _text("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdecimal() and period.strip().isdecimal():
        own = min(own, max(1, int(quota) // int(period)))
    return own


def free_memory() -> int:
    """Bytes that are free, or that this process's group may still take; much where that is not
    known."""
    free = _UNLIMITED
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = (_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdecimal() and used.isdecimal():
        free = min(free, max(0, int(limit) - int(used) + _cached_files()))
    return free


def _cached_files() -> int:
    """What the group's memory holds of files, which gives way."""
    for line in _text("/sys/fs/cgroup/memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "file":
            return int(value)
    return 0


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
