"""Object stores and web servers, through fsspec: every request is tried again where that may help.

Contract
* `retried` bounds it (`RETRIES`). What a store refuses for good (not there, not allowed, not
  possible) is asked once.
* An error names the URL, without its secrets, and the try: NotFoundError for what is not there,
  UsageError for a URL that cannot be opened at all, RemoteError for all else.
* A list is whole or an error: a folder whose listing fails is never passed over. One that is gone
  when its turn comes is.
* fsspec's own caches of listings, and its retries where they can be (not for gs://), are switched
  off, in file systems of our own: those that the process uses elsewhere stay as they are. What
  packages log of failing requests goes to handlers that somebody set up, not to stderr.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from marin_profile.base.errors import NotFoundError, ProfileError, RemoteError, UsageError
from marin_profile.base.retries import GaveUp, Retries

T = TypeVar("T")

RETRIES = Retries()
HTTP = frozenset({"http", "https"})
S3 = frozenset({"s3", "s3a"})
# These list all below a prefix at once; elsewhere fsspec asks folder by folder, and passes over
# those that fail.
_FLAT = S3 | {"gs", "gcs", "az", "abfs", "abfss", "adl"}
_DEEPEST = 64  # folders within each other: a link of a server may lead back
_SECONDS_TO_CONNECT, _SECONDS_OF_SILENCE = 10, 30

_LATER = frozenset({408, 425, 429})
_ABSENT = frozenset({404, 410})
_REFUSED = frozenset({errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG})
_NO_LOGIN = frozenset(
    {"DefaultCredentialsError", "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"}
)
_IN_VAIN = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    FileExistsError,
    ImportError,
    LookupError,
    MemoryError,
    NotImplementedError,
    ProfileError,
    TypeError,
    ValueError,
)
# What a store tells of a file that changes when its content does.
_VERSION_KEYS = (
    *("ETag", "etag", "generation", "md5Hash", "Content-MD5", "Digest", "checksum"),
    *("mtime", "LastModified", "Last-Modified", "last_modified", "updated", "created"),
)


class ShortAnswer(Exception):
    """A store sent fewer bytes than it was asked for."""


@dataclass(frozen=True)
class RemoteFile:
    """`version` is another one when the content is; "" where the store tells of none. `size`: None
    where it tells of none."""

    url: str
    size: int | None
    version: str


def remote_file(url: str) -> RemoteFile:
    """What the store tells of a file now."""
    with named_errors(url):
        system, path = file_system(url)
        facts = retried(lambda: system.info(path))
        if facts.get("type") == "directory":
            raise FileNotFoundError(url)
        size = facts.get("size")
        told = [f"{key}={facts[key]}" for key in _VERSION_KEYS if facts.get(key)]
        return RemoteFile(url, None if size is None else int(size), "; ".join(told))


def retried(action: Callable[[], T]) -> T:
    return RETRIES.call(action, may_pass)


def is_http(url: str) -> bool:
    return _protocol(url) in HTTP


def shown(url: str) -> str:
    """The URL without what may be secret in it: a login, and what signs it."""
    url = re.sub(r"^([a-z0-9+.-]+://)[^/@]*@", r"\1...@", url, flags=re.IGNORECASE)
    return re.sub(r"\?.*", "?...", url, flags=re.DOTALL) if is_http(url) else url


def file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    protocol = _protocol(url)
    try:
        system, path = url_to_fs(url, **_options(protocol))
    except (ImportError, ValueError) as error:
        raise UsageError(f"{shown(url)} cannot be opened: {error}.") from error
    if protocol in S3:
        system.retries = 1
    log = logging.getLogger(type(system).__module__.partition(".")[0])
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return system, path


def _protocol(url: str) -> str:
    return url.partition("://")[0].lower()


def _options(protocol: str) -> dict[str, Any]:
    """Besides those of fsspec's own configuration, which go first."""
    from fsspec.config import conf

    if "::" in protocol:
        return {}
    options: dict[str, Any] = {"use_listings_cache": False}
    known = conf.get(protocol, {})
    if protocol in HTTP:
        import aiohttp

        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_SECONDS_TO_CONNECT, sock_read=_SECONDS_OF_SILENCE
        )
        options["client_kwargs"] = {"timeout": timeout, **known.get("client_kwargs", {})}
        options["headers"] = {"Accept-Encoding": "identity", **known.get("headers", {})}
    elif protocol in S3:
        once = {"retries": {"total_max_attempts": 1}}
        options["config_kwargs"] = {**once, **known.get("config_kwargs", {})}
    return options


# Lists


def remote_files(root: str) -> Iterator[tuple[str, int]]:
    """(path below the root, size) of every file there. Raises FileNotFoundError and what requests
    raise."""
    system, path = file_system(root)
    if not is_http(root):  # there every folder is a page too
        facts = retried(lambda: system.info(path))
        if facts["type"] == "file":
            raise not_a_folder(shown(root))
    top = path.rstrip("/")
    for name, facts in _listed(system, top or path, _protocol(root)):
        if name.startswith(f"{top}/") and not name.startswith(f"{top}/?"):
            yield name[len(top) + 1 :], int(facts.get("size") or 0)


def _listed(system: Any, path: str, protocol: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if protocol in _FLAT:
        yield from retried(lambda: system.find(path, detail=True)).items()
        return
    pending, seen = [(path, 0)], {path}
    while pending:
        folder, depth = pending.pop()
        try:
            found = _entries(system, folder)
        except FileNotFoundError:
            if depth == 0:
                raise
            continue  # it has just gone
        for entry in found:
            name = entry["name"].rstrip("/")
            if entry["type"] != "directory":
                yield name, entry
            elif name not in seen and depth < _DEEPEST:
                seen.add(name)
                pending.append((name, depth + 1))


def _entries(system: Any, folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = retried(lambda: system.ls(folder, detail=True))
    return found


def remote_folders(root: str) -> list[str]:
    """The names of the folders right in a folder."""
    system, path = file_system(root)
    return [
        one["name"].rstrip("/").rsplit("/", 1)[-1]
        for one in _entries(system, path)
        if one["type"] == "directory"
    ]


def not_a_folder(path: str) -> UsageError:
    return UsageError(
        f"{path} is a file, not a folder; name it with its format's option, as --xplane-file."
    )


# Whole files


def remote_contents(root: str, names: Sequence[str]) -> list[bytes]:
    """Fetched at the same time; what fails is fetched again, the rest is not."""
    system, path = file_system(root)
    paths = [f"{path.rstrip('/')}/{name}" for name in names]
    found: dict[str, bytes] = {}

    def fetch() -> None:
        missing = [one for one in paths if one not in found]
        answers = system.cat(missing, on_error="return") if missing else {}
        found.update((one, data) for one, data in answers.items() if isinstance(data, bytes))
        errors = [answers[one] for one in missing if one not in found]
        if errors:
            raise next((one for one in errors if not may_pass(one)), errors[0])

    retried(fetch)
    return [found[one] for one in paths]


def write_remote(url: str, content: bytes) -> None:
    system, path = file_system(url)
    _make_folder(system, path)
    retried(lambda: system.pipe_file(path, content))


def put_remote(url: str, file: Path) -> None:
    """Write what a local file holds."""
    system, path = file_system(url)
    _make_folder(system, path)
    retried(lambda: system.put_file(str(file), path))


def _make_folder(system: Any, path: str) -> None:
    if parent := path.rstrip("/").rpartition("/")[0]:
        retried(lambda: system.makedirs(parent, exist_ok=True))


def delete_remote(url: str) -> None:
    """Raises FileNotFoundError, unless it was there when it was tried first."""
    system, path = file_system(url)
    retried(lambda: system.rm_file(path))


# Errors


def may_pass(error: Exception) -> bool:
    """Whether it may help to ask again. Every store brings errors of its own: those that are not
    known may."""
    error = _root(error)
    status = _status(error)
    if status is not None:
        return status in _LATER or status >= 500
    if type(error).__name__ in _NO_LOGIN or isinstance(error, _IN_VAIN):
        return False
    return not (isinstance(error, OSError) and error.errno in _REFUSED)


@contextmanager
def named_errors(url: str, action: str = "read") -> Iterator[None]:
    """Turn what requests raise into one sentence that names the URL."""
    try:
        yield
    except ProfileError:
        raise
    except Exception as error:
        raise _named(error, shown(url), action) from error


def _named(error: Exception, url: str, action: str) -> ProfileError:
    tries = f" (try {error.tried} of {error.of})" if isinstance(error, GaveUp) else ""
    if isinstance(error, GaveUp):
        error = error.error
    error = _root(error)
    is_absent = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    if is_absent or _status(error) in _ABSENT:
        return NotFoundError(f"{url} does not exist, or is not what is asked for.")
    if tries:
        return RemoteError(f"{url} cannot be reached: {_cause(error)}{tries}; try again later.")
    if isinstance(error, OSError) and action == "write":
        return UsageError(f"{url} cannot be written: {_cause(error)}.")
    return RemoteError(
        f"{url} cannot be {action if action == 'read' else 'written'}: {_cause(error)}."
    )


def _root(error: Exception) -> Exception:
    """HTTP's file system says of every answer but a good one that there is no such file."""
    cause = error.__cause__
    if type(error) is FileNotFoundError and isinstance(cause, Exception):
        is_of_http = type(cause).__module__.partition(".")[0] == "aiohttp"
        if is_of_http or isinstance(cause, OSError) or _status(cause) is not None:
            return cause
    return error


def _status(error: Exception) -> int | None:
    """The HTTP status that an error tells of."""
    found = getattr(error, "status", None) or getattr(error, "code", None)
    text = str(found)
    return int(text) if text.isdecimal() and 400 <= int(text) < 600 else None


def _cause(error: Exception) -> str:
    status, message = _status(error), getattr(error, "message", "")
    if status is not None:
        return f"{status} {message}".strip().rstrip(".")
    told = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return (shown_within(told) or type(error).__name__).strip().rstrip(".")


def shown_within(text: str) -> str:
    """The text, with the URLs in it as `shown`."""
    return re.sub(r"[a-z0-9+.-]+://[^\s'\"]+", lambda found: shown(found[0]), text)
