"""A file system "faulty://" on a local folder, whose requests fail as told: `with faulty(folder) as
store:` then `faulty://bucket/...`.

Contract
* A request is a list, facts about a file, or a range of one; `store.requests` lists all of them.
* `store.share` of the requests fail, drawn with a seed, in turn as FAULTS say. `store.next` are
  faults for the next requests, before that; None lets one pass. `store.is_gone` fails all.
* `store.hook` is called before each request, with it: the folder may change there.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

PROTOCOL = "faulty"
BUCKET = "bucket"
Request = tuple[str, str, int | None, int | None]  # what, path, from byte, to byte


class Unavailable(Exception):
    """What a store's package makes of a 503."""

    status = 503
    message = "Service Unavailable"


SHORT = "short"
FAULTS: tuple[Any, ...] = (
    Unavailable,
    lambda: ConnectionResetError(104, "Connection reset by peer"),
    SHORT,
    lambda: TimeoutError("no answer"),
)


@dataclass
class Store:
    folder: Path
    share: float = 0.0
    is_gone: bool = False
    versions: bool = True
    next: list[Any] = field(default_factory=list)
    hook: Callable[[Request], None] = lambda _: None
    requests: list[Request] = field(default_factory=list)
    failed: int = 0
    draw: random.Random = field(default_factory=lambda: random.Random(7))

    def asked(self, what: str) -> list[str]:
        """The paths of all requests of a kind."""
        return [path for kind, path, _, _ in self.requests if kind == what]

    def answers(self, request: Request) -> bool:
        """Whether the answer is whole; raises where there is none."""
        self.requests.append(request)
        self.hook(request)
        fault: Any = None
        if self.is_gone:
            fault = FAULTS[1]
        elif self.next:
            fault = self.next.pop(0)
        elif self.draw.random() < self.share:
            fault = FAULTS[self.failed % len(FAULTS)]
        if fault is None:
            return True
        self.failed += 1
        if fault == SHORT:
            if request[0] == "range":
                return False
            fault = FAULTS[0]
        raise fault()


_STORE: Store | None = None


class FaultyFileSystem(AbstractFileSystem):
    protocol = PROTOCOL
    cachable = False

    def _local(self, path: str) -> Path:
        assert _STORE is not None
        return _STORE.folder / str(self._strip_protocol(path)).removeprefix(BUCKET).lstrip("/")

    def _facts(self, path: str) -> dict[str, Any]:
        assert _STORE is not None
        local = self._local(path)
        found = local.stat()
        kind = "directory" if local.is_dir() else "file"
        size = 0 if kind == "directory" else found.st_size
        facts = {"name": self._strip_protocol(path), "type": kind, "size": size}
        return facts | ({"mtime": found.st_mtime_ns} if _STORE.versions else {})

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        assert _STORE is not None
        _STORE.answers(("info", path, None, None))
        return self._facts(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        assert _STORE is not None
        _STORE.answers(("list", path, None, None))
        top = str(self._strip_protocol(path)).rstrip("/")
        found = [self._facts(f"{top}/{name}") for name in sorted(os.listdir(self._local(path)))]
        return found if detail else [one["name"] for one in found]

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        assert _STORE is not None
        is_whole = _STORE.answers(("range", path, start, end))
        with self._local(path).open("rb") as stream:
            stream.seek(start or 0)
            found = stream.read() if end is None else stream.read(end - (start or 0))
        return found if is_whole else found[: len(found) // 2]


@contextmanager
def faulty(folder: Path, **settings: Any) -> Iterator[Store]:
    global _STORE
    fsspec.register_implementation(PROTOCOL, FaultyFileSystem, clobber=True)
    _STORE = Store(folder, **settings)
    try:
        yield _STORE
    finally:
        _STORE = None


def url(path: str = "") -> str:
    return f"{PROTOCOL}://{BUCKET}/{path}".rstrip("/")
