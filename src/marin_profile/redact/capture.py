"""Masked copies of a capture's files.

Contract
* The copies have masked names and, file by file, the structure of the originals. Memory stays
  bounded by blocks. The same input gives the same bytes.
* Only files whose content is understood are copied: those of the formats that say how they are
  masked, and `profile_context.json`.
* A copy is whole or not there.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

from marin_profile.base.durable import new_file
from marin_profile.base.errors import BrokenInputError, UsageError
from marin_profile.capture.filenames import CONTEXT_FILE
from marin_profile.capture.formats import format_of, host_suffixes, load
from marin_profile.readers.hlo import Buffer
from marin_profile.readers.json_stream import MAX_OBJECT, StreamWindow
from marin_profile.readers.whole_file import MAGIC, read_whole
from marin_profile.redact.names import Redactor
from marin_profile.redact.records import redact_json
from marin_profile.redact.stacks import STACK_STATS, masked_stack
from marin_profile.redact.xplane import host_names, mask_xspace

# Between two events, where no name and no stack can be cut.
_BETWEEN = (b"},{", b"}, {", b"},\n{", b"},\n  {", b"},\n    {")
_STACK = re.compile(
    rb'("(?:' + "|".join(STACK_STATS).encode() + rb')"\s*:\s*")([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL
)
_ESCAPE_OR_WORD = re.compile(rb"\\u[0-9a-fA-F]{4}|(\\.)|[A-Za-z0-9\x80-\xff]+", re.DOTALL)
_COMPRESSION = 6


def capture_host_names(files: Iterable[Path]) -> list[str]:
    """The hosts that the files' names and the files themselves name."""
    hosts = set()
    for file in files:
        suffix = next((suffix for suffix in host_suffixes() if file.name.endswith(suffix)), None)
        file_format = format_of(file.name)
        if suffix is None or file_format is None:
            continue
        hosts.add(file.name[: -len(suffix)])
        if file_format.host_names and file.stat().st_size:
            hosts.update(load(file_format.host_names)(file))
    return sorted(hosts - {""})


def redact_capture(files: Iterable[Path], into: Path, redactor: Redactor) -> list[Path]:
    """Write masked copies of `files` into the folder `into`; their paths, in the files' order.

    Files of other kinds are left out. Raises UsageError if two copies would have one name,
    BrokenInputError if a JSON file is damaged.
    """
    into.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for file in files:
        copy = _copier(file.name)
        if copy is None:
            continue
        target = into / redactor.file_name(file.name)
        if target in written:
            raise UsageError(
                f"Two files would be {target.name} in {into}; mask each folder into one of its own."
            )
        with new_file(target) as partial:
            copy(file, partial, redactor)
        written.append(target)
    return written


def _copier(name: str) -> Callable[[Path, Path, Redactor], None] | None:
    """What writes a masked copy of a file of this name."""
    if name == CONTEXT_FILE:
        return _mask_context
    file_format = format_of(name)
    if file_format is None or file_format.mask is None:
        return None
    mask: Callable[[Path, Path, Redactor], None] = load(file_format.mask)
    return mask


def _mask_context(file: Path, target: Path, redactor: Redactor) -> None:
    content = redact_json(json.loads(file.read_text()), redactor)
    target.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def xspace_host_names(file: Path) -> Iterable[str]:
    return host_names(_xspace(file))


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == MAGIC


def _xspace(file: Path) -> Buffer:
    with file.open("rb") as stream:
        return read_whole(stream, path=str(file))


def mask_xspace_file(file: Path, target: Path, redactor: Redactor) -> None:
    if _is_gzip(file):
        buffer = _xspace(file).copy()
        mask_xspace(buffer, redactor)
        target.write_bytes(gzip.compress(buffer.tobytes(), _COMPRESSION, mtime=0))
        return
    with file.open("rb") as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
    if target.stat().st_size:
        mapped = np.memmap(target, np.uint8, mode="r+")
        mask_xspace(mapped, redactor)
        mapped.flush()


def mask_json_file(file: Path, target: Path, redactor: Redactor) -> None:
    with file.open("rb") as stream, target.open("wb") as copy:
        if not _is_gzip(file):
            _mask_json(stream, copy, redactor, file)
            return
        with gzip.GzipFile("", "wb", _COMPRESSION, copy, mtime=0) as packed:
            _mask_json(stream, packed, redactor, file)


def _mask_json(
    stream: BinaryIO, copy: BinaryIO | gzip.GzipFile, redactor: Redactor, file: Path
) -> None:
    window = StreamWindow(stream)
    while window.end > window.start:
        block = window.bytes_at(window.start, window.end)
        cut = len(block)
        if not window.finished:
            cut = max(block.rfind(between) for between in _BETWEEN) + 1
            if cut == 0 and len(block) > MAX_OBJECT:
                raise BrokenInputError(f"{file} holds no event for {len(block):,} bytes.")
        copy.write(redactor.bytes(_STACK.sub(_masked_json_stack, block[:cut])))
        window.start += cut
        window.more()
    if window.damage:
        raise BrokenInputError(f"{file} is cut or damaged: {window.damage}; capture it again.")


def _masked_json_stack(stack: re.Match[bytes]) -> bytes:
    return stack[1] + _masked_escaped(stack[2]) + b'"'


# The ops of a few layers repeat a few stacks.
@lru_cache(maxsize=1 << 12)
def _masked_escaped(stack: bytes) -> bytes:
    return _ESCAPE_OR_WORD.sub(_masked_piece, stack)


def _masked_piece(piece: re.Match[bytes]) -> bytes:
    if piece[1]:
        return piece[1]
    return b"x" if piece[0].startswith(b"\\u") else masked_stack(piece[0])
