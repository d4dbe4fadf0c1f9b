"""Which captures lie below the roots, and which one a client means.

Contract
* A capture is called by its handle, 8 hex digits of the hash of its root's name, its path below
  that root and its stamp: the same in every process and on every machine; or by the path of a file
  or folder below a root, of which the newest capture is taken.
* Nothing outside the roots is listed, read or told of, whatever a name or a link says: a path that
  leads out is answered like one that leads nowhere. Files are opened by the path that was checked.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from marin_profile.base.errors import NotFoundError, UsageError
from marin_profile.base.storage import is_url, is_within
from marin_profile.capture.formats import format_ending
from marin_profile.capture.sources import Capture, HostFile, find_captures, from_file

LONGEST_NAME = 1024
MOST_NAMED = 3
_HANDLE = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class Root:
    """A folder that is served. `name`: its last part, numbered where another root has the same."""

    name: str
    path: str


@dataclass(frozen=True)
class Found:
    """A capture below a root; `path` is relative to it."""

    root: Root
    path: str
    capture: Capture

    @property
    def handle(self) -> str:
        text = "\0".join((self.root.name, self.path, self.capture.stamp))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]

    @property
    def files(self) -> tuple[HostFile, ...]:
        return tuple(file for host in self.capture.hosts for file in (host, *host.fallbacks))


class Roots:
    """The folders that are served."""

    def __init__(self, folders: Sequence[str]) -> None:
        """Raises UsageError for what is no local folder."""
        self.roots = tuple(_roots(folders))
        self._folders: dict[str, tuple[Root, str]] = {}

    def captures(self) -> list[Found]:
        """All captures below the roots, the newest of each root first."""
        found = [one for root in self.roots for one in reversed(_below(root, root.path))]
        self._folders = {one.handle: (one.root, one.capture.root) for one in found}
        return found

    def find(self, name: str) -> Found:
        """The capture of a handle or a path. Raises UsageError or NotFoundError."""
        _refuse_odd(name)
        if _HANDLE.fullmatch(name):
            found = self._of_handle(name)
            if found:
                return _only(name, found)
        found = [one for root in self.roots for one in _named(root, name)]
        if not found:
            raise NotFoundError(
                "No capture below the roots is called that; the tool `captures` lists them."
            )
        return _only(name, found)

    def _of_handle(self, handle: str) -> list[Found]:
        """First where it was when the captures were listed: not all need be looked at again."""
        listed = self._folders.get(handle)
        if listed and is_within(listed[1], listed[0].path) and os.path.isdir(listed[1]):
            found = [one for one in _below(*listed) if one.handle == handle]
            if found:
                return found
        return [one for one in self.captures() if one.handle == handle]

    def hidden(self, sentence: str) -> str:
        """A sentence without the places of the roots on this machine."""
        for root in sorted(self.roots, key=lambda one: -len(one.path)):
            if root.path != os.sep:
                sentence = sentence.replace(f"{root.path}/", "").replace(root.path, "the root")
        return sentence


def is_unchanged(found: Found) -> bool:
    """Whether the capture's paths still lead to the files that were checked."""
    return all(os.path.realpath(file.path) == file.path for file in found.files)


def _roots(folders: Sequence[str]) -> Iterator[Root]:
    taken: set[str] = set()
    for folder in folders:
        if is_url(folder) or not os.path.isdir(folder):
            raise UsageError(f"{folder} is no local folder; --root takes one.")
        path = os.path.realpath(folder)
        base = os.path.basename(path) or "root"
        numbered = (base, *(f"{base}#{number}" for number in range(2, len(folders) + 1)))
        name = next(one for one in numbered if one not in taken)
        taken.add(name)
        yield Root(name, path)


def _refuse_odd(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise UsageError(f"A handle or a path has at most {LONGEST_NAME:,} characters.")
    if not name.strip() or not name.isprintable():
        raise UsageError("Name a capture by its handle, or by its path below a root.")
    if is_url(name):
        raise UsageError("A URL names no capture here: nothing is fetched.")
    if ".." in name.split("/"):
        raise UsageError("A path below a root has no '..' in it.")


def _named(root: Root, name: str) -> list[Found]:
    """The newest capture at or below a path, if it leads below the root."""
    given = os.path.join(root.path, name)
    if not is_within(given, root.path):
        return []
    real = os.path.realpath(given)
    if os.path.isdir(real):
        return _below(root, real)[-1:]
    file_format = format_ending(real)
    if file_format is None or not os.path.isfile(real):
        return []
    return _checked(root, from_file(real, file_format), os.path.relpath(real, root.path))


def _below(root: Root, folder: str) -> list[Found]:
    """The captures at or below a folder, the oldest first."""
    return [
        found
        for capture in find_captures(folder, within=root.path)
        for found in _checked(root, capture, os.path.relpath(capture.root, root.path))
    ]


def _checked(root: Root, capture: Capture, path: str) -> list[Found]:
    """The capture with the paths that its files lead to, if all of them lie below the root."""
    contexts = tuple(map(os.path.realpath, capture.contexts))
    hosts = tuple(map(_resolved, capture.hosts))
    found = Found(root, path, replace(capture, hosts=hosts, contexts=contexts))
    paths = (*(file.path for file in found.files), *contexts)
    return [found] if all(is_within(one, root.path) for one in paths) else []


def _resolved(file: HostFile) -> HostFile:
    fallbacks = tuple(map(_resolved, file.fallbacks))
    return replace(file, path=os.path.realpath(file.path), fallbacks=fallbacks)


def _only(name: str, found: Sequence[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    handles = ", ".join(one.handle for one in found[:MOST_NAMED])
    raise UsageError(f"{len(found)} captures are called that; name one by its handle: {handles}.")
