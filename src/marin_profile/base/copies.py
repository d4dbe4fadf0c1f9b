"""Remote files, copied here to be read: as long as they are read, or kept in a folder.

Contract
* A copy holds one version of a file: what is replaced while it is copied is copied again, at most
  TRIES times. Files travel in blocks; none is in memory as a whole.
* Kept copies go by URL, size and version. Where a store tells of no version, where the folder is
  not private, where it would hold more than MOST_BYTES and where the disk is full, a copy has no
  name and goes with the process.
* Processes may use one folder at the same time. Of two that fetch a file at once both do, and one
  copy stays; what another one removes can still be read to its end.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import BinaryIO

from marin_profile.base.durable import new_file
from marin_profile.base.errors import RemoteError, UsageError
from marin_profile.base.kept import forget_oldest, made_private
from marin_profile.base.progress import advance, doing
from marin_profile.base.remote import RemoteFile, remote_file, shown
from marin_profile.base.remote_stream import ChangedError, changed, open_remote

MOST_BYTES = 8 << 30
TRIES = 3
_BLOCK = 1 << 20
_ENDING = ".copy"


def open_copy(url: str, folder: Path | None) -> BinaryIO:
    """The file as it is now, here. Raises NotFoundError, RemoteError or UsageError."""
    for _ in range(TRIES):
        with suppress(ChangedError):
            return _copy_of(remote_file(url), folder)
    raise RemoteError(
        f"{shown(url)} was replaced each time it was read (try {TRIES} of {TRIES}); read it when "
        "it is complete."
    )


def _copy_of(file: RemoteFile, folder: Path | None) -> BinaryIO:
    if folder is not None and file.version and made_private(folder):
        path = folder / _name(file)
        found = _kept(path, file)
        if found is not None:
            return found
        if (file.size or 0) <= MOST_BYTES:
            try:
                return _keep(file, path)
            except OSError as error:
                if error.errno not in (ENOSPC, EDQUOT):
                    raise
    return _nameless(file)


def _name(file: RemoteFile) -> str:
    told = "\0".join((file.url, str(file.size), file.version))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest() + _ENDING


def _kept(path: Path, file: RemoteFile) -> BinaryIO | None:
    try:
        stream = path.open("rb")
    except OSError:
        return None
    if file.size is not None and os.fstat(stream.fileno()).st_size != file.size:
        stream.close()  # whatever happened to it
        return None
    with suppress(OSError):
        os.utime(path)
    return stream


def _keep(file: RemoteFile, path: Path) -> BinaryIO:
    forget_oldest(path.parent, f"*{_ENDING}", MOST_BYTES - (file.size or 0))
    with new_file(path) as partial:
        with partial.open("wb") as target:
            _copy(file, target)
        stream = partial.open("rb")
    forget_oldest(path.parent, f"*{_ENDING}", MOST_BYTES)
    return stream


def _nameless(file: RemoteFile) -> BinaryIO:
    try:
        target = tempfile.TemporaryFile()  # noqa: SIM115  # whoever reads it closes it
        try:
            _copy(file, target)
            target.seek(0)
        except BaseException:
            target.close()
            raise
    except OSError as error:
        raise UsageError(
            f"{shown(file.url)} cannot be copied to {tempfile.gettempdir()} to be read: "
            f"{error.strerror}; name another folder with TMPDIR."
        ) from error
    return target


def _copy(file: RemoteFile, target: BinaryIO) -> None:
    doing(f"copying {shown(file.url)}", size=file.size or 0)
    with open_remote(file) as source:
        while block := source.read(_BLOCK):
            target.write(block)
            advance(done=len(block))
    target.flush()
    if remote_file(file.url) != file:
        raise changed(file.url)
