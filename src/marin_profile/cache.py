"""Summaries, hosts' parts and fleets' rows that were made before, by what they were made of.

Contract
* The key is all that a summary depends on: the bytes, names and grouping of the capture's files,
  the contexts beside it, every option, and this version of the code. A copy elsewhere has the same
  key, since a summary is the same wherever its capture lies. Remote files are not read for it: URL,
  size and version stand for their bytes, where the store tells of a version.
* The cache is a folder of the user's own that nobody else may write; where it is not, and where the
  disk refuses, it is not used. What is damaged in it is made again. Beyond MOST_BYTES what was not
  asked for longest goes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from marin_profile.base.durable import write_whole
from marin_profile.base.errors import NotFoundError, ProfileError
from marin_profile.base.kept import forget_oldest, is_private, made_private
from marin_profile.base.progress import doing
from marin_profile.base.storage import content_of, user_cache
from marin_profile.capture.sources import Capture
from marin_profile.capture.trace_files import HostFile
from marin_profile.schema import ProfileSummary, load_summary
from marin_profile.version import package_version

if TYPE_CHECKING:
    from marin_profile.pipeline.programs import CapturedPrograms
    from marin_profile.pipeline.summarizing import ReadHosts

MOST_BYTES = 1 << 28
MOST_BYTES_OF_PARTS = 1 << 31


def cache_folder() -> Path:
    """Where summaries are kept, below the user's cache."""
    return user_cache("summaries")


def _in_turn(_: Capture) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def cached_summary(
    capture: Capture,
    *,
    warmup_steps: int,
    folder: Path | None,
    about_to_read: Callable[[], None],
    hosts_reader: Callable[[Capture], AbstractContextManager[ReadHosts | None]] = _in_turn,
) -> ProfileSummary:
    """The summary that was kept in the folder, or a new one, which is kept there; None: neither.
    `about_to_read` is called before a summary is made, `hosts_reader` then gives who reads the
    hosts. Raises what `summarize_capture` raises."""
    kept = None if folder is None else folder / f"{_key(capture, warmup_steps)}.json"
    if kept is not None and is_private(kept.parent):
        with contextlib.suppress(ProfileError, OSError):
            found = load_summary(kept)
            os.utime(kept)
            return found
    about_to_read()
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    options = SummarizeOptions(warmup_steps=warmup_steps)
    with hosts_reader(capture) as read:
        summary = summarize_capture(capture, options, read=read, keep_copies=folder is not None)
    if kept is not None:
        with contextlib.suppress(OSError):
            _keep(summary, kept)
    return summary


def cached_with_programs(
    capture: Capture, *, warmup_steps: int, folder: Path | None, about_to_read: Callable[[], None]
) -> tuple[ProfileSummary, CapturedPrograms]:
    """The summary, as `cached_summary` gives it, and the programs that its ops are of."""
    from marin_profile.pipeline.programs import (
        decode_programs,
        encode_programs,
        summarize_with_programs,
    )

    key = _key(capture, warmup_steps)
    kept = None if folder is None else folder / f"{key}.json"
    beside = None if folder is None else folder / f"{key}.programs"
    if kept is not None and beside is not None and is_private(kept.parent):
        with contextlib.suppress(ProfileError, OSError, ValueError):
            found = load_summary(kept), decode_programs(beside.read_bytes())
            for path in (kept, beside):
                os.utime(path)
            return found
    about_to_read()
    from marin_profile.pipeline import SummarizeOptions

    options = SummarizeOptions(warmup_steps=warmup_steps)
    summary, programs = summarize_with_programs(capture, options, keep_copies=folder is not None)
    if kept is not None and beside is not None:
        with contextlib.suppress(OSError):
            _keep(summary, kept, {beside.name: encode_programs(programs)})
    return summary, programs


def _keep(summary: ProfileSummary, path: Path, beside: Mapping[str, bytes] | None = None) -> None:
    if made_private(path.parent):
        write_whole(path.parent, {path.name: summary.to_json().encode(), **(beside or {})})
        forget_oldest(path.parent, "[!.]*", MOST_BYTES)


# --- the key -----------------------------------------------------------------------------------


def _key(capture: Capture, warmup_steps: int) -> str:
    files = [file for host in capture.hosts for file in (host, *host.fallbacks)]
    doing("looking for its summary", size=sum(file.size for file in files))
    parts = {
        "code": [package_version(), *_code()],
        "warmup_steps": warmup_steps,
        "source": capture.source_path,
        "stamp": capture.stamp,
        "hosts": [list(_host(host)) for host in capture.hosts],
        "contexts": [_digest(path) for path in capture.contexts],
        "skipped": sorted(capture.skipped),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _host(host: HostFile) -> Iterator[object]:
    for file in (host, *host.fallbacks):
        about = replace(file, path="", fallbacks=())
        yield [asdict(about), file.name, _digest(file.path)]


def _digest(path: str) -> str:
    try:
        return content_of(path)
    except NotFoundError:
        return ""


def _code() -> Iterator[int]:
    """Of a checkout, whose version says little: how many files there are, and the newest one's
    time."""
    root = Path(__file__).parent
    times = [path.stat().st_mtime_ns for path in root.rglob("*.py")]
    yield from (len(times), max(times))


# --- what goes into other summaries and tables ---------------------------------------------------


class Kept:
    """Results in a folder, each a file `<key>-<content>`: a `base.resumable.Store`. This version of
    the code is in every key."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._code = json.dumps([package_version(), *_code()])
        self._new_bytes = 0
        names = os.listdir(folder) if is_private(folder) else []
        self._keys = {name.partition("-")[0] for name in names}

    def may_hold(self, key: str) -> bool:
        return self._short(key) in self._keys

    def holds(self, key: str, content: str) -> bool:
        return self._path(key, content).is_file()

    def get(self, key: str, content: str) -> bytes | None:
        path = self._path(key, content)
        try:
            result = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return result

    def keep(self, key: str, content: str, result: bytes) -> None:
        with contextlib.suppress(OSError):
            if made_private(self._folder):
                write_whole(self._folder, {self._path(key, content).name: result})
                self._new_bytes += len(result)
                if self._new_bytes > self._most_bytes // 16:
                    self.tidy()

    def tidy(self) -> None:
        """Let the results go that were not asked for longest, where they are too many."""
        self._new_bytes = 0
        with contextlib.suppress(OSError):
            forget_oldest(self._folder, "[!.]*", self._most_bytes)

    def _path(self, key: str, content: str) -> Path:
        return self._folder / f"{self._short(key)}-{_short(content)}"

    def _short(self, key: str) -> str:
        return _short(self._code + key)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def kept_parts() -> Kept:
    return Kept(user_cache("parts"), MOST_BYTES_OF_PARTS)


def kept_rows() -> Kept:
    return Kept(user_cache("rows"), MOST_BYTES)
