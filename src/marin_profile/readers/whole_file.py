"""A file as one byte array in memory, unpacked if it is gzip-compressed, within a byte budget.

Contract
* The bytes are this process's own: a file that others cut or rewrite meanwhile is read as far as it
  goes. A memory map would kill the process then (SIGBUS).
* What unpacks to more than `budget` bytes raises BrokenInputError.
* A stretch that nobody reads again can be given back (`forget`): its bytes are undefined then.
"""

from __future__ import annotations

import io
import mmap
import os
from contextlib import suppress
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.errors import BrokenInputError
from marin_profile.base.progress import advance

MAGIC = b"\x1f\x8b"
# protobuf cannot write more.
LARGEST_FILE = 1 << 31
# Profiles pack to a tenth or so; a bomb to a thousandth.
LARGEST_RATIO = 24
ALWAYS_UNPACKED = 600 << 20
_BLOCK = 1 << 20
# A stretch of fewer bytes is not worth a call to the system.
_FORGETTABLE = 1 << 20
# What is read at once of a file on a disk.
_STRETCH = 1 << 26


def budget(packed: int) -> int:
    """How many bytes `packed` compressed ones may unpack to."""
    return min(LARGEST_FILE, max(ALWAYS_UNPACKED, LARGEST_RATIO * packed))


def read_whole(stream: BinaryIO, *, path: str) -> NDArray[np.uint8]:
    """All of `stream` from where it stands; `path` is for messages."""
    content = _read(stream, path)
    if content[:2].tobytes() != MAGIC:
        return content
    return np.frombuffer(_unpacked(content, path), np.uint8)


def _read(stream: BinaryIO, path: str) -> NDArray[np.uint8]:
    is_plain = isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)
    size = os.fstat(stream.fileno()).st_size - stream.tell() if is_plain else 0
    if size <= 0:
        # In blocks: one read of so many bytes would ask for the memory first.
        content = bytearray()
        while block := stream.read(_BLOCK):
            content += block
            advance(done=len(block))
            if len(content) > LARGEST_FILE:
                raise BrokenInputError(
                    f"{path} does not end after {LARGEST_FILE:,} bytes, which is as large as a "
                    "protobuf can be; name the .xplane.pb of a capture."
                )
        return np.frombuffer(content, np.uint8)
    whole = _room(size)
    view = memoryview(whole.data)
    filled = 0
    while filled < size:
        count = stream.readinto(view[filled : filled + _STRETCH])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
        advance(done=count)
    return whole[:filled] if filled < size else whole


def _room(size: int) -> NDArray[np.uint8]:
    """Fresh memory, in a map of its own where the system lets go of parts of one."""
    if size < _FORGETTABLE or not hasattr(mmap, "MADV_DONTNEED"):
        return np.empty(size, np.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def forget(content: NDArray[np.uint8], at: int, end: int) -> None:
    """Give the memory of content[at:end] back, if it is large and `read_whole` had it from a file
    on a disk."""
    memory = content.base.obj if isinstance(content.base, memoryview) else None
    if isinstance(memory, mmap.mmap) and end - at >= _FORGETTABLE:
        first, last = -(-at // mmap.PAGESIZE), end // mmap.PAGESIZE
        memory.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)


def _unpacked(content: NDArray[np.uint8], path: str) -> bytearray:
    from isal import igzip

    limit = budget(len(content))
    unpacked = bytearray()
    try:
        with igzip.IGzipFile(fileobj=io.BytesIO(content.data)) as packed:
            while piece := packed.read(_BLOCK):
                unpacked += piece
                if len(unpacked) > limit:
                    raise BrokenInputError(
                        f"{path} expands to more than {limit / 1e9:.1f} GB from "
                        f"{len(content):,} bytes, which no profile does; unpack it by hand if it "
                        "is one."
                    )
    except (OSError, EOFError) as error:
        raise BrokenInputError(
            f"{path} is a damaged gzip file ({error}); copy it again from where it was made."
        ) from error
    return unpacked
