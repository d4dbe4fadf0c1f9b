"""Local files and fsspec URLs alike: list, measure, open, write.

Contract
* What does not exist raises NotFoundError, what cannot be (a folder for a file, an unknown
  protocol) UsageError, and what a remote store refuses RemoteError; each names the path.
* A file that is written is whole or absent: readers never see half of it (local ones: durable.py).
* Requests to a store are bounded, and tried again (remote.py); fsspec is imported only for URLs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from marin_profile.base.durable import new_file, write_whole
from marin_profile.base.errors import (
    BrokenInputError,
    NotFoundError,
    ProfileError,
    UsageError,
)
from marin_profile.base.progress import advance
from marin_profile.base.text import size

_BLOCK = 4 << 20


def is_url(path: str) -> bool:
    return "://" in path


def plain(path: str) -> str:
    """A file:// URL as a local path; anything else as it is."""
    return path.removeprefix("file://") if path.startswith("file:///") else path


def unsigned(path: str) -> str:
    """A web address without what stands behind "?", as a signature that lets whoever has it read
    the file; other paths as they are."""
    is_web = path.lower().startswith(("http://", "https://"))
    return path.partition("?")[0] if is_web else path


def path_parts(path: str) -> tuple[str, ...]:
    """The parts of the absolute path, without the protocol."""
    path = unsigned(path).split("://", 1)[1] if is_url(path) else os.path.abspath(path)
    return tuple(part for part in path.replace(os.sep, "/").split("/") if part)


def base_name(path: str) -> str:
    return unsigned(path).rstrip("/").rsplit("/", 1)[-1]


def open_file(path: str) -> BinaryIO:
    """Open a local file or an fsspec URL for reading."""
    path = plain(path)
    if is_url(path):
        from marin_profile.base.remote import remote_file
        from marin_profile.base.remote_stream import open_remote

        return open_remote(remote_file(path))
    with _named_errors(path):
        return Path(path).open("rb")


def open_local(path: str, *, keep_copy: bool = False) -> BinaryIO:
    """The same, but a file of this machine in any case: of a URL a copy, for as long as it is open,
    or from the user's cache, where it is kept."""
    path = plain(path)
    if not is_url(path):
        return open_file(path)
    from marin_profile.base.copies import open_copy

    return open_copy(path, copies_folder() if keep_copy else None)


def copies_folder() -> Path:
    """Where copies of remote files are kept, below the user's cache."""
    return user_cache("remote")


def sha256_of(path: str) -> str:
    """The digest of a file's content, as hex digits."""
    digest = hashlib.sha256()
    with open_file(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            advance(done=len(block))
    return digest.hexdigest()


def sha256_of_open(stream: BinaryIO) -> str:
    """The digest of all of an open local file, which may be read meanwhile."""
    digest, at = hashlib.sha256(), 0
    while block := os.pread(stream.fileno(), _BLOCK, at):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()


def content_of(path: str) -> str:
    """What tells the content of a file from others: its digest, but URL, size and version of a
    remote one, which is read only where its store tells of no version."""
    if is_url(plain(path)):
        from marin_profile.base.remote import remote_file

        found = remote_file(path)
        if found.version:
            return f"{path} {found.size} {found.version}"
    return sha256_of(path)


def user_cache(*parts: str) -> Path:
    """Where this package keeps what it can make or fetch again, below the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(root, "marin-profile", *parts)


def read_at_most(path: str, limit: int) -> bytes:
    """The content of a file. Raises BrokenInputError if it has more than `limit` bytes."""
    with open_file(path) as stream, _named_errors(path):
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise BrokenInputError(
            f"{path} is larger than {size(limit)}, so it is not what it should be."
        )
    return content


def file_size(path: str) -> int:
    """Raises UsageError for a folder, a pipe or a device."""
    path = plain(path)
    with _named_errors(path):
        if is_url(path):
            from marin_profile.base.remote import remote_file

            return remote_file(path).size or 0
        if os.path.isdir(path):
            raise UsageError(f"{path} is a folder; name it with --profile-dir.")
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise UsageError(
                f"{path} is a pipe or a device, no file: it cannot be read twice, and need not end."
            )
        return facts.st_size


def files_below(root: str, *, within: str | None = None) -> list[tuple[str, int]]:
    """(path below the root, size) of every file there, sorted. Links that lead out of the local
    folder `within` are passed over."""
    root = plain(root)
    with _named_errors(root):
        if is_url(root):
            from marin_profile.base.remote import remote_files

            return sorted(remote_files(root))
        return sorted(_local_files(root, within))


def is_within(path: str, folder: str) -> bool:
    """Whether a local path leads to the folder or below it, wherever links lead."""
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, top]) == top


def folders_in(root: str) -> list[str]:
    """The names of the folders right in a folder, sorted."""
    root = plain(root)
    with _named_errors(root):
        if not is_url(root):
            return sorted(entry.name for entry in _entries(root, is_root=True) if entry.is_dir())
        from marin_profile.base.remote import remote_folders

        return sorted(remote_folders(root))


def read_files(root: str, names: Sequence[str]) -> list[bytes]:
    """The contents of files below a folder; remote ones are fetched at the same time."""
    root = plain(root)
    with _named_errors(root):
        if not is_url(root):
            return [(Path(root) / name).read_bytes() for name in names]
        from marin_profile.base.remote import remote_contents

        return remote_contents(root, names)


def write_file(path: str, content: bytes) -> None:
    """Write a file whole; parent folders are made."""
    path = plain(path)
    with _named_errors(path, "write"):
        if is_url(path):
            from marin_profile.base.remote import write_remote

            write_remote(path, content)
        else:
            _write_local(Path(os.path.realpath(path)), content)


def _write_local(target: Path, content: bytes) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file to write.")
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a device or a pipe: there is nothing to replace
        return
    write_whole(target.parent, {target.name: content})


@contextmanager
def new_output(path: str) -> Iterator[Path]:
    """An empty local file to fill, which becomes the file, or goes to the URL, when the block ends
    without an error; parent folders are made. A device or a pipe is written to as it is."""
    path = plain(path)
    with ExitStack() as stack:
        with _named_errors(path, "write"):
            target = stack.enter_context(_remote_output(path) if is_url(path) else _output(path))
        yield target
        with _named_errors(path, "write"):
            stack.close()


@contextmanager
def writing(path: str) -> Iterator[None]:
    """What the disk refuses while the block fills a file for this path is said of the path."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {_cause(error)}.") from error


@contextmanager
def _output(path: str) -> Iterator[Path]:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file to write.")
    if target.exists() and not target.is_file():
        yield target
        return
    with new_file(target) as partial:
        yield partial


@contextmanager
def _remote_output(url: str) -> Iterator[Path]:
    import tempfile

    from marin_profile.base.remote import put_remote

    with tempfile.TemporaryDirectory(prefix="marin-profile-") as folder:
        target = Path(folder, base_name(url))
        yield target
        put_remote(url, target)


def delete_file(path: str) -> None:
    """Delete a file, if it is there."""
    path = plain(path)
    with _named_errors(path, "write"):
        if not is_url(path):
            Path(path).unlink(missing_ok=True)
            return
        from marin_profile.base.remote import delete_remote

        with suppress(FileNotFoundError):
            delete_remote(path)


def _local_files(root: str, within: str | None) -> Iterator[tuple[str, int]]:
    if os.path.isfile(root):
        raise _not_a_folder(root)
    pending, seen = [""], set()
    while pending:
        below = pending.pop()
        folder = os.path.join(root, below)
        real = os.path.realpath(folder)
        if real in seen:
            continue  # a link back to a folder above
        seen.add(real)
        if within is not None and not is_within(real, within):
            continue
        for entry in _entries(folder, is_root=not below):
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir():
                pending.append(path)
            elif entry.is_file():
                if within is not None and entry.is_symlink() and not is_within(entry.path, within):
                    continue
                try:
                    size = entry.stat().st_size
                except FileNotFoundError:
                    continue  # somebody's temporary file
                yield path, size


def _entries(folder: str, *, is_root: bool) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (PermissionError, FileNotFoundError):
        if is_root:
            raise
        return []  # somebody else's folder below holds none of ours, nor one that has just gone


def _not_a_folder(path: str) -> UsageError:
    from marin_profile.base.remote import not_a_folder

    return not_a_folder(path)


def _named_errors(path: str, action: str = "read") -> AbstractContextManager[None]:
    """Turn the errors of file systems into one sentence that names the path."""
    if not is_url(path):
        return _named_local_errors(path, action)
    from marin_profile.base.remote import named_errors

    return named_errors(path, action)


@contextmanager
def _named_local_errors(path: str, action: str) -> Iterator[None]:
    try:
        yield
    except ProfileError:
        raise
    except OSError as error:
        if action == "write":
            raise UsageError(f"{path} cannot be written: {_cause(error)}.") from error
        if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            raise NotFoundError(f"{path} does not exist, or is not what is asked for.") from error
        raise NotFoundError(f"{path} cannot be read: {_cause(error)}.") from error


def _cause(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).rstrip(".")
