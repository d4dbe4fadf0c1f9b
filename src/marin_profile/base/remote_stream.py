"""A remote file as a stream that can be read in parts, and reads ahead.

Contract
* It holds two blocks at most, of LARGEST bytes each. Who reads on gets larger blocks, and the next
  one is fetched meanwhile; who seeks gets small ones.
* An answer that is cut, short or an error is asked for again (`remote.retried`), from where it is.
* A file that turns out to be another one in the middle raises ChangedError; that it is still the
  same at the end, whoever needs it asks `remote_file`. One that fits into a small block is read as
  it is now, in one request.
"""

from __future__ import annotations

import io
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from marin_profile.base.errors import ProfileError, RemoteError
from marin_profile.base.remote import (
    RemoteFile,
    ShortAnswer,
    file_system,
    is_http,
    named_errors,
    remote_file,
    retried,
    shown,
)
from marin_profile.base.retries import GaveUp

SMALLEST, LARGEST = 1 << 16, 8 << 20


class ChangedError(RemoteError):
    """The file was replaced while it was read."""


def changed(url: str) -> ChangedError:
    return ChangedError(f"{shown(url)} was replaced while it was read; read it again.")


def open_remote(file: RemoteFile) -> BinaryIO:
    """The file from its beginning."""
    with named_errors(file.url):
        system, path = file_system(file.url)
    source = _Page(system, path, file.size) if is_http(file.url) else _Object(system, path)
    return io.BufferedReader(_Blocks(file, source), buffer_size=SMALLEST)


class _Source(Protocol):
    def fetch(self, start: int, stop: int) -> bytes:
        """One request; fewer bytes where the file ends, or the answer does."""

    def whole(self) -> bytes | None:
        """All of a small file, as it is now; None if that takes more than one request."""

    def close(self) -> None: ...


class _Object:
    """In a store that answers with any part of a file."""

    def __init__(self, system: Any, path: str) -> None:
        self._system = system
        self._path = path

    def fetch(self, start: int, stop: int) -> bytes:
        found: bytes = self._system.cat_file(self._path, start=start, end=stop)
        return found[: stop - start]

    def whole(self) -> bytes | None:
        found: bytes = self._system.cat_file(self._path)
        return found

    def close(self) -> None:
        pass


class _Page:
    """On a web server, which may know no parts of files, nor their size: then its one answer is
    read on, and what lies before a place is passed over."""

    def __init__(self, system: Any, path: str, size: int | None) -> None:
        self._system = system
        self._path = path
        self._size = size
        self._has_parts = bool(size)
        self._answer: Any = None
        self._at = 0

    def fetch(self, start: int, stop: int) -> bytes:
        if self._has_parts:
            try:
                return self._part(start, stop)
            except ValueError:  # fsspec's word for an answer with the whole file
                self._has_parts = False
        return self._read_on(start, stop)

    def whole(self) -> bytes | None:
        return None

    def close(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            with suppress(Exception):
                answer.close()

    def _part(self, start: int, stop: int) -> bytes:
        with self._system.open(
            self._path, "rb", block_size=LARGEST, cache_type="none", size=self._size
        ) as part:
            part.seek(start)
            found: bytes = part.read(stop - start)
            return found

    def _read_on(self, start: int, stop: int) -> bytes:
        try:
            if self._answer is None or self._at > start:
                self.close()
                self._answer, self._at = self._system.open(self._path, "rb", block_size=0), 0
            while self._at < start and self._take(start):
                pass
            parts = []
            while self._at < stop and (part := self._take(stop)):
                parts.append(part)
        except Exception:
            self.close()
            raise
        if self._at < stop:
            self.close()
        return b"".join(parts)

    def _take(self, stop: int) -> bytes:
        found: bytes = self._answer.read(min(stop - self._at, LARGEST))
        self._at += len(found)
        return found


class _Blocks(io.RawIOBase):
    def __init__(self, file: RemoteFile, source: _Source) -> None:
        self._file = file
        self._source = source
        self._size = file.size
        self._at = 0
        self._start, self._block = 0, b""
        self._length = SMALLEST
        self._pool: ThreadPoolExecutor | None = None
        self._next: Future[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            if self._size is None:
                raise io.UnsupportedOperation("the end of a file whose size nobody tells")
            offset += self._size
        elif whence == io.SEEK_CUR:
            offset += self._at
        if offset < 0:
            raise ValueError(f"there is no byte {offset}")
        self._at = offset
        return offset

    def readinto(self, target: Any) -> int:
        if not self._start <= self._at < self._start + len(self._block):
            self._fill()
        inside = self._at - self._start
        part = self._block[inside : inside + len(target)]
        target[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._forget_next()
            if self._pool is not None:
                self._pool.shutdown()
            self._source.close()
            self._block = b""
        super().close()

    def _fill(self) -> None:
        """Let the block begin where reading is; it is empty at the end of the file."""
        follows = bool(self._block) and self._at == self._start + len(self._block)
        if follows and self._next is not None:
            block, self._next = self._next.result(), None
        else:
            self._forget_next()
            self._length = min(2 * self._length, LARGEST) if follows else SMALLEST
            self._block = b""
            block = self._fetch(self._at, self._length)
        self._start, self._block = self._at, block
        if follows and block and not self._ends_at(self._at + len(block)):
            self._length = min(2 * self._length, LARGEST)
            self._pool = self._pool or ThreadPoolExecutor(1)
            self._next = self._pool.submit(self._fetch, self._at + len(block), self._length)

    def _forget_next(self) -> None:
        if self._next is not None:
            wait([self._next])  # a source answers one at a time
            self._next = None

    def _ends_at(self, place: int) -> bool:
        return self._size is not None and place >= self._size

    def _fetch(self, start: int, length: int) -> bytes:
        if self._ends_at(start):
            return b""
        stop = start + length if self._size is None else min(start + length, self._size)
        is_small = start == 0 and self._size is not None and self._size <= SMALLEST
        ask = self._small if is_small else self._part
        try:
            with named_errors(self._file.url):
                found = retried(lambda: ask(start, stop))
        except RemoteError as error:
            if self._is_another(error.__cause__):
                raise changed(self._file.url) from error
            raise
        if self._size is None and len(found) < stop - start:
            self._size = start + len(found)
        return found

    def _part(self, start: int, stop: int) -> bytes:
        found = self._source.fetch(start, stop)
        if self._size is not None and len(found) < stop - start:
            raise ShortAnswer(f"{len(found):,} of {stop - start:,} bytes came from {start:,} on")
        return found

    def _small(self, start: int, stop: int) -> bytes:
        found = self._source.whole()
        if found is None:
            return self._part(start, stop)
        if len(found) != self._size:
            now = remote_file(self._file.url)
            if now.size != len(found):
                raise ShortAnswer(f"{len(found):,} of {now.size:,} bytes came")
            self._size = now.size
        return found

    def _is_another(self, cause: BaseException | None) -> bool:
        """Whether the file is known to be another one now; not asked of a store that is gone."""
        if isinstance(cause, GaveUp) and not isinstance(cause.error, ShortAnswer):
            return False
        with suppress(ProfileError):
            return remote_file(self._file.url) != self._file
        return False
