"""A command line that is killed at its k-th write below a folder.

Each runs in a fork of one process that has a single thread, and neither JAX nor pytest in it.
Besides the verbs of the command line there are what has no verb: `redact CAPTURE INTO`, and
`stage CAPTURE OUTPUT UPLOAD`. Writes are what changes the folder, and what makes that last: opening
to write, writing (half of it, then the kill), syncing, renaming, exchanging, removing, making
folders.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

from patience import wait_until

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


def load(arguments: list[str]) -> int:
    """Run the command line once where the others fork from, so that they start with all loaded."""
    return _ask(kind="load", commands=[arguments])[0]


def end_of(arguments: list[str], folder: str, at: int = 0) -> int:
    """How the command line ends; at 0 it is not killed."""
    return _ask(kind="run", commands=[arguments], folder=folder, at=at)[0]


def ends_of(commands: Sequence[list[str]], folder: str, times: int) -> list[int]:
    """Run command lines at the same time, so many times each; for each 0, or the first other
    code."""
    return _ask(kind="run", commands=commands, folder=folder, times=times)


def _ask(**request: Any) -> list[int]:
    asked, answers = _server()
    asked.write(json.dumps({"cwd": os.getcwd(), "environment": dict(os.environ), **request}) + "\n")
    asked.flush()
    codes: list[int] = json.loads(answers.readline())
    return codes


@cache
def _server() -> tuple[IO[str], IO[str]]:
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.communicate)
    return process.stdin, process.stdout


# In that process


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    asked = os.fdopen(os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for line in asked:
        request = json.loads(line)
        os.chdir(request["cwd"])
        os.environ.update(request["environment"])
        commands = request["commands"]
        if request["kind"] == "load":
            codes = [run_any(command) for command in commands]
            wait_until(lambda: len(os.listdir("/proc/self/task")) == 1)  # a fork has one of several
        else:
            codes = _ends(commands, request["folder"], request.get("at", 0), request.get("times"))
        answers.write(json.dumps(codes) + "\n")
        answers.flush()


def _ends(commands: list[list[str]], folder: str, at: int, times: int | None) -> list[int]:
    def repeated(command: list[str]) -> int:
        codes = (_end(_forked(partial(_watched, command, folder, at))) for _ in range(times or 1))
        return next((code for code in codes if code), 0)

    if times is None:
        return [_end(_forked(partial(_watched, command, folder, at))) for command in commands]
    children = [_forked(partial(repeated, command)) for command in commands]
    return [_end(child) for child in children]


def _forked(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        try:
            code = work()
        except BaseException:
            code = 99
        os._exit(code)
    return child


def _end(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _watched(arguments: list[str], folder: str, at: int) -> int:
    os.dup2(1, 2)
    Killer(folder, at).watch()
    return run_any(arguments)


def run_any(arguments: list[str]) -> int:
    """Run a command line, or what has no verb, in this process."""
    verb, *rest = arguments
    if verb in _OTHERS:
        _OTHERS[verb](*rest)
        return 0
    from marin_profile.cli import run

    return run(arguments)


def _redact(capture: str, into: str) -> None:
    from marin_profile.redact import Redactor, redact_capture

    redact_capture(sorted(Path(capture).iterdir()), Path(into), Redactor(hosts=("tw003",)))


def _stage(capture: str, output: str, upload: str) -> None:
    from marin_profile.capture.sources import from_folder
    from marin_profile.pipeline import summarize_capture
    from marin_profile.profiling.job import Job, Publish
    from marin_profile.profiling.staging import stage

    found, _ = from_folder(capture)
    job = Job(Path(capture), Path(output), publish=Publish("r", upload, redact=True))
    stage(job, found, summarize_capture(found), ingest_seconds=1.0)


_OTHERS: dict[str, Callable[..., None]] = {"redact": _redact, "stage": _stage}


if __name__ == "__main__":
    _serve()
