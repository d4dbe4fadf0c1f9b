"""One runner at a time in a folder, and none before what an earlier one left has ended.

Contract
* The lock is the file's (flock), whose text says who holds it. It outlasts a runner that is killed
  for as long as the supervisor of its command still has something to end.
* Where file locks do not work, the text counts: a process of this machine that is alive.
* What carries the lock's mark in its environment is ended before the lock is given, however it came
  to be left (where the system tells: Linux).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from marin_profile.base.errors import UsageError
from marin_profile.base.owner import Owner

LOCK_FILE = "lock"
MARK = "MARIN_PROFILE_RUN_BELOW"
LOOK_EVERY = 0.1  # seconds
DYING = 3.0  # seconds, for a runner that was killed just now
LONGEST_WAIT = 600.0  # seconds, for a killed runner's command to end


@dataclass(frozen=True)
class Lock:
    """What is run below `folder` keeps `descriptor` open, and has `mark` in its environment."""

    folder: Path
    descriptor: int

    @property
    def mark(self) -> dict[str, str]:
        return {MARK: str(self.folder)}


@contextmanager
def only_runner(folder: Path) -> Iterator[Lock]:
    """While the block lasts nobody else runs anything below the folder. Raises UsageError where
    another runner is at work, or the folder cannot be written."""
    folder = folder.absolute()
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.") from error
    try:
        _take(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(Owner.this_process()), 0)
        lock = Lock(folder, descriptor)
        _end_all_with(lock.mark)
        yield lock
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    began = time.monotonic()
    while not _is_free(descriptor):
        waited = time.monotonic() - began
        owner = _owner(descriptor)
        if owner is not None and owner.is_alive() and waited > DYING:
            raise UsageError(
                f"Process {owner.pid} is at work in {path.parent}; wait for it, or name another "
                "folder."
            )
        if waited > LONGEST_WAIT:
            raise UsageError(
                f"{path} stays locked though its owner is gone; end what is left of its command, "
                "or name another folder."
            )
        time.sleep(LOOK_EVERY)


def _is_free(descriptor: int) -> bool:
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        owner = _owner(descriptor)
        return owner is None or not owner.is_alive()
    return True


def _owner(descriptor: int) -> Owner | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, 1 << 12, 0), type=Owner)
    except msgspec.DecodeError:
        return None


def _end_all_with(mark: dict[str, str]) -> None:
    """Kill this user's processes that have it in their environment, and wait until they are
    gone."""
    [sign] = [f"{name}={value}".encode() for name, value in mark.items()]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(process.name)
            if sign in (process / "environ").read_bytes().split(b"\0") and pid != os.getpid():
                owner = Owner.of(pid)
                os.kill(pid, signal.SIGKILL)
                while owner is not None and owner.is_alive():
                    time.sleep(LOOK_EVERY)
