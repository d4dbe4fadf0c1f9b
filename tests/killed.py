"""A command line that is killed at its k-th write below a folder.

Writes are what changes the folder, and what makes that last: opening to write, writing (half of
it, then the kill), syncing, renaming, exchanging, removing, making folders.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Killer:
    def __init__(self, folder: str, at: int) -> None:
        self._folder = os.path.realpath(folder)
        self._left = at

    def watch(self) -> None:
        from marin_profile.base import durable

        write, fsync, exchange = os.write, os.fsync, durable._exchange

        def half_written(descriptor: int, content: Any) -> int:
            if self._is_watched(descriptor) and self._is_last():
                write(descriptor, bytes(content)[: len(content) // 2])
                self._end()
            return write(descriptor, content)

        def synced(descriptor: int) -> None:
            self._count(descriptor)
            fsync(descriptor)

        def exchanged(one: Any, two: Any) -> bool:
            self._count(one)
            return exchange(one, two)

        os.write, os.fsync, durable._exchange = half_written, synced, exchanged
        sys.addaudithook(self._seen)

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _TO_WRITE:
                self._count(path)
        elif event in _CHANGES:
            self._count(arguments[0])

    def _count(self, where: Any) -> None:
        if self._is_watched(where) and self._is_last():
            self._end()

    def _is_watched(self, where: Any) -> bool:
        if isinstance(where, int):
            where = os.readlink(f"/proc/self/fd/{where}")
        elif not isinstance(where, str | bytes | os.PathLike):
            return False
        path = os.path.realpath(os.fsdecode(where))
        return path == self._folder or path.startswith(f"{self._folder}{os.sep}")

    def _is_last(self) -> bool:
        self._left -= 1
        return self._left == 0

    def _end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def end_of(arguments: list[str], folder: str, at: int = 0) -> int:
    """How a child of this process that runs the command line ends; at 0 it is not killed."""
    child = os.fork()
    if child == 0:
        try:
            Killer(folder, at).watch()
            from marin_profile.cli import run

            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            code = run(arguments)
        except BaseException:
            code = 99
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
