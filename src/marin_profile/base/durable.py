"""The one way to write on a local disk: a file, several together, a folder, a line at a file's end.

Contract
* What is written appears whole and in one step. Until then what was there stays, and it stays if
  the disk is full, the process is killed or the power fails: all is synced before it is renamed.
* What is under way lies beside its place as `.marin-profile-<hex>.tmp`, locked (flock) by its
  writer. A write removes what writers that are gone left in the same folder; where file locks do
  not work, once it is a day old.
* Of two writers at once the later one's stays, unless it is told what to leave alone; appended
  lines both do.
* What the system refuses raises OSError.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path

_PREFIX, _SUFFIX = ".marin-profile-", ".tmp"
_NEW, _OLD = "new", "old"
_ABANDONED_AFTER = 86_400  # seconds
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_LONGEST_LINE = 1 << 26


def write_whole(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files of these names into a folder, which is made; all of them are written before the
    first one takes its place."""
    with ExitStack() as files:
        for name, content in contents.items():
            partial = files.enter_context(new_file(folder / name))
            descriptor = os.open(partial, os.O_WRONLY)
            try:
                _write_all(descriptor, content)
            finally:
                os.close(descriptor)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """An empty file to fill, which takes the target's place when the block ends without an
    error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with _partial(target.parent, _make_file) as (partial, descriptor):
        yield partial
        os.fsync(descriptor)
        os.replace(partial, target)
        _sync_folder(target.parent)


@contextmanager
def new_folder(target: Path, unless: Callable[[], bool] = lambda: False) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of the target (a folder, or nothing) when the
    block ends without an error; not where `unless` is true then, which no other writer changes
    meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with _partial(target.parent, _make_folder) as (partial, _):
        new = partial / _NEW
        new.mkdir()
        yield new
        _sync_below(new)
        with _locked(target.parent):
            if not unless():
                _put_in_place(new, target, partial / _OLD)
        _sync_folder(target.parent)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, which is never replaced; it is on disk when this returns. A record
    (JSON) that a killed writer did not finish gives way to it; another torn end is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with _appending(path) as descriptor:
        size = os.fstat(descriptor).st_size
        torn = _torn_end(descriptor, size)
        if torn and _is_unfinished_record(torn):
            size -= len(torn)
            torn = b""
            os.ftruncate(descriptor, size)
        try:
            _write_all(descriptor, (b"\n" if torn else b"") + line + b"\n")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    if is_new:
        _sync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Remove what writers that are gone left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [one for one in entries if _is_partial(one.name)]
        for entry in left:
            with suppress(OSError):
                _remove_if_abandoned(Path(entry.path))


# What is under way


def _is_partial(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def _make_file(path: Path) -> int | None:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _make_folder(path: Path) -> int | None:
    path.mkdir()
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY)
    return None


@contextmanager
def _partial(folder: Path, make: Callable[[Path], int | None]) -> Iterator[tuple[Path, int]]:
    """(path, descriptor) of something new that this process holds the lock of; what is left of it
    at the end is removed. Another process may take it for abandoned before it is locked: then there
    is another one."""
    while True:
        path = folder / f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}"
        descriptor = None
        try:
            descriptor = make(path)
            if descriptor is None or _lock(descriptor) is False:
                continue
            if _is_still(path, descriptor):
                yield path, descriptor
                return
        finally:
            _remove(path)
            if descriptor is not None:
                os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether this process holds the lock now; None where locks do not work."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """What one process does at a time in a folder, where locks work."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the path leads to the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_if_abandoned(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        locked = _lock(descriptor)
        if locked is None:
            locked = time.time() - os.fstat(descriptor).st_mtime > _ABANDONED_AFTER
        if locked and _is_still(path, descriptor):
            _bring_back(path)
            _remove(path)
    finally:
        os.close(descriptor)


def _bring_back(partial: Path) -> None:
    """The folder whose writer was killed after it put it aside."""
    aside = partial / _OLD
    for name in os.listdir(aside) if aside.is_dir() else ():
        if not (partial.parent / name).exists():
            os.rename(aside / name, partial.parent / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


# Into its place


def _put_in_place(new: Path, target: Path, aside: Path) -> None:
    """In one step where the system can exchange folders; else the old one is put aside first, where
    the next writer finds it should this one be killed between the two."""
    while not _renamed(new, target) and not _exchange(new, target):
        aside.mkdir(exist_ok=True)
        old = aside / target.name
        with suppress(FileNotFoundError):  # another writer has just done the same
            os.rename(target, old)
        try:
            if _renamed(new, target):
                return
        finally:
            if old.exists() and not _renamed(old, target):
                shutil.rmtree(old)


def _renamed(folder: Path, target: Path) -> bool:
    """False if there is a folder already that holds something."""
    try:
        os.rename(folder, target)
    except OSError as error:
        if error.errno not in (EEXIST, ENOTEMPTY):
            raise
        return False
    return True


def _exchange(one: Path, two: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(two))
    return bool(rename(*paths, _RENAME_EXCHANGE) == 0)


def _sync_below(folder: Path) -> None:
    for below, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(below, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _sync_folder(Path(below))


def _sync_folder(folder: Path) -> None:
    """Not every file system can; what was renamed is in its place anyway."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# Lines


@contextmanager
def _appending(path: Path) -> Iterator[int]:
    """The file, open for appending and locked."""
    import fcntl

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # An editor may have put another file in its place while we waited.
            if _is_still(path, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _torn_end(descriptor: int, size: int) -> bytes:
    """What stands behind the last line's end."""
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return b""
    tail = os.pread(descriptor, _LONGEST_LINE, max(0, size - _LONGEST_LINE))
    return tail.rpartition(b"\n")[2]


def _is_unfinished_record(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
