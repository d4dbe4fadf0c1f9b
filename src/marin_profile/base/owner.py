"""A process of some machine, told from a later one of the same number."""

from __future__ import annotations

import os
import socket

import msgspec


class Owner(msgspec.Struct, frozen=True):
    """The process that works on something, such as a capture. `started`: what tells it from another
    of that number."""

    host: str
    pid: int
    started: int

    @staticmethod
    def this_process() -> Owner:
        pid = os.getpid()
        return Owner(socket.gethostname(), pid, _started(pid) or 0)

    @staticmethod
    def of(pid: int) -> Owner | None:
        """The process of this machine that has this number; None if there is none."""
        started = _started(pid)
        return None if started is None else Owner(socket.gethostname(), pid, started)

    def is_alive(self) -> bool:
        """False also for a process of another machine: nobody can tell, and a run's next start may
        be elsewhere."""
        return self.host == socket.gethostname() and _started(self.pid) == self.started


def _started(pid: int) -> int | None:
    """When a process of this machine started, in ticks since boot; None if it is not there, or has
    ended and its parent does not know yet. 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, *fields = stat.read().rpartition(b")")[2].split()
        return None if state == b"Z" else int(fields[18])
    except (OSError, ValueError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return 0
    return 0
