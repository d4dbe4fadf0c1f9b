"""A JSON file, gzip-compressed or not, as a sliding window of its bytes.

Contract
* The text is never held as a whole: the window holds what its user has not consumed yet. Where
  loops are compiled, the next WINDOW bytes are unpacked meanwhile, in a thread.
* Damage is no error: what can be read is read, and `Window.damage` then says what is wrong.
* JSON has no zero bytes: `first_zero` is where the first one stands, -1 where there is none.
* How much text there is to read is told (`expect`) with the first window, as far as it can be
  reckoned from the size of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from isal import igzip_lib
from numpy.typing import NDArray

from marin_profile.base.jit import expect, is_compiled
from marin_profile.base.progress import advance
from marin_profile.readers.whole_file import MAGIC

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

# Compressed bytes per step. Small, because an error costs the output of its step.
STEP = 1 << 12
PIECE = 1 << 16
WINDOW = 1 << 20
# So much text is read in the plain form as fast as one byte of a protobuf.
TEXT_OF_BYTE = 4
# An incomplete object beyond this size is damage.
MAX_OBJECT = 1 << 24
# What unpacks to more is cut there: traces pack to a tenth or so.
LARGEST_RATIO = 64
ALWAYS_UNPACKED = 4 << 30
# The scanners read whole words.
PADDING = 8

# The stub declares the class as an instance.
IsalError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]


class StreamWindow:
    """Bytes `start` to `end` of `buf` are the file's bytes from `offset` + `start` on."""

    def __init__(self, stream: BinaryIO) -> None:
        self.buf = np.zeros(WINDOW + PIECE + PADDING, np.uint8)
        self.start = 0
        self.end = 0
        self.offset = 0
        self.damage = ""
        self.first_zero = -1
        self.finished = False
        self._size = _size_left(stream)
        self._expected = 0
        self._steps = _Steps(stream)
        self._pieces = self._read(stream)
        self._beside: Executor | None = None
        self._ahead: Future[tuple[NDArray[np.uint8], bool]] | None = None
        self.more()

    def more(self) -> bool:
        """Drop the bytes before `start`, append about WINDOW bytes; False if there are none."""
        kept = self.end - self.start
        need = kept + WINDOW + PIECE + PADDING
        old = self.buf
        if need > len(old):
            self.buf = np.zeros(2 * need, np.uint8)
        self.buf[:kept] = old[self.start : self.end]
        self.offset += self.start
        self.start, self.end = 0, kept
        fresh, self.finished = self._ahead.result() if self._ahead else self._take()
        self.end += len(fresh)
        self.buf[kept : self.end] = fresh
        self._expect()
        self._ahead = None if self.finished or not is_compiled() else self._take_ahead()
        self._look_for_zeros(kept)
        return self.end > kept

    def _take(self) -> tuple[NDArray[np.uint8], bool]:
        """About WINDOW bytes, and whether the file ends with them."""
        fresh, size = np.empty(WINDOW + PIECE, np.uint8), 0
        while size < WINDOW:
            piece = next(self._pieces, b"")
            if not piece:
                return fresh[:size], True
            fresh[size : size + len(piece)] = np.frombuffer(piece, np.uint8)
            size += len(piece)
        return fresh[:size], False

    def _take_ahead(self) -> Future[tuple[NDArray[np.uint8], bool]]:
        """`_take` beside the scan: both work without the GIL."""
        if self._beside is None:
            from concurrent.futures import ThreadPoolExecutor

            self._beside = ThreadPoolExecutor(1)
        return self._beside.submit(copy_context().run, self._take)

    def _expect(self) -> None:
        text = self.offset + self.end
        if text <= self._expected:
            return
        whole = text if self.finished else max(text, self._steps.text_of(self._size, text))
        expect((whole - self._expected) // TEXT_OF_BYTE)
        self._expected = whole

    def _look_for_zeros(self, start: int) -> None:
        fresh = self.buf[start : self.end]
        if self.first_zero < 0 and len(fresh) and not fresh.min():
            self.first_zero = self.offset + start + int(np.argmin(fresh))

    @property
    def buffer(self) -> memoryview:
        return self.buf.data

    def grow(self) -> bool:
        """`more`, but False if what starts at `start` is too long to be an object."""
        return self.end - self.start <= MAX_OBJECT and self.more()

    def bytes_at(self, start: int, stop: int) -> bytes:
        return self.buf[start:stop].tobytes()

    def _read(self, stream: BinaryIO) -> Iterator[bytes]:
        steps = self._steps
        if not steps.is_packed:
            yield from steps.plain()
            return
        produced = 0
        try:
            for piece in _gunzip(steps):
                produced += len(piece)
                if produced > max(ALWAYS_UNPACKED, LARGEST_RATIO * steps.taken):
                    self.damage = f"it expands to more than {produced / 1e9:.1f} GB"
                    return
                yield piece
            self.damage = steps.problem
        except IsalError as error:
            self.damage = f"its gzip data is damaged ({error})"
            if steps.origin >= 0:
                stream.seek(steps.origin)
                yield from _salvage(_Steps(stream, fine_from=steps.taken), produced)


def _size_left(stream: BinaryIO) -> int:
    """0 where it cannot be told."""
    if not stream.seekable():
        return 0
    start = stream.tell()
    size = stream.seek(0, os.SEEK_END) - start
    stream.seek(start)
    return size


class _Steps:
    """The bytes of `stream` in steps of STEP bytes, single bytes around byte `fine_from`."""

    def __init__(self, stream: BinaryIO, fine_from: int | None = None) -> None:
        self.origin = stream.tell() if stream.seekable() else -1
        self._stream = stream
        self._fine_from = fine_from
        self.block = stream.read(PIECE)
        if len(self.block) == 1:
            self.block += stream.read(1)
        self.is_packed = self.block[:2] == MAGIC
        self.taken = 0
        self.problem = ""

    def text_of(self, size: int, text: int) -> int:
        """How much text a file of `size` bytes holds, if the rest is packed like the `text`."""
        return size * text // max(self.taken, STEP) if self.is_packed else size

    def plain(self) -> Iterator[bytes]:
        while self.block:
            advance(done=len(self.block))
            yield self.block
            self.block = self._stream.read(PIECE)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.plain():
            at = 0
            while at < len(block):
                fine = self._fine_from is not None and self.taken > self._fine_from - STEP
                step = block[at : at + (1 if fine else STEP)]
                yield step
                at += len(step)
                self.taken += len(step)


def _gunzip(steps: _Steps) -> Iterator[bytes]:
    """Pieces of at most PIECE bytes; what follows the last gzip member is ignored."""
    decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    fresh, members = True, 0
    for step in steps:
        while step:
            if decoder.eof:
                members += 1
                decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
                fresh = True
            try:
                piece = decoder.decompress(step, PIECE)
            except IsalError:
                if fresh and members:
                    return
                raise
            step = b""
            while piece:
                fresh = False
                yield piece
                piece = (
                    b"" if decoder.eof or decoder.needs_input else decoder.decompress(b"", PIECE)
                )
            if decoder.eof:
                step = decoder.unused_data
    if not decoder.eof and not (fresh and members):
        steps.problem = "its gzip stream ends too early"


def _salvage(steps: _Steps, produced: int) -> Iterator[bytes]:
    """What follows the first `produced` bytes, up to the damage."""
    try:
        for piece in _gunzip(steps):
            if len(piece) > produced:
                yield piece[produced:]
            produced = max(produced - len(piece), 0)
    except IsalError:
        return
