"""Folders with trace files, and which of them were taken together.

Contract
* A *session* is one folder with trace files, `plugins/profile/<stamp>/` as JAX writes it.
* Sessions that lie side by side (below one `plugins/profile/`, or in `process_<n>/` folders) were
  taken together if their [profile_start, profile_stop] overlap, or, where one tells no such times,
  if their stamps lie within 30 s. What training noted beside a session tells its times, else its
  files do, which are opened for that only where several sessions lie side by side.
* Results do not depend on where the folder lies or in which order it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from marin_profile.base.storage import is_url, open_file, path_parts
from marin_profile.capture.context import read_window
from marin_profile.capture.filenames import CONTEXT_FILE, PROFILE_FOLDERS, STAMP_FORMAT
from marin_profile.capture.formats import format_named, load
from marin_profile.capture.trace_files import HostFile, choose_files, profile_format

MOST_SECONDS_APART = 30
# A remote file is read whole for its window; a larger one is judged by its folder's stamp.
LARGEST_REMOTE_WINDOW = 256_000_000

STAMP = re.compile(r"\d{4}(?:_\d\d){5}$")
_PROCESS = re.compile(r"process_\d+$")


@dataclass(frozen=True)
class Session:
    """One folder with trace files. `base` is shared by the folders that can belong together."""

    folder: str
    name: str
    base: str
    process: str
    hosts: tuple[HostFile, ...]
    skipped: tuple[str, ...]
    context: str | None

    @property
    def time(self) -> float | None:
        """Seconds, comparable between stamps only."""
        if not STAMP.match(self.name):
            return None
        try:
            return (
                datetime.strptime(self.name, STAMP_FORMAT) - datetime(1970, 1, 1)
            ).total_seconds()
        except ValueError:
            return None

    @property
    def order(self) -> tuple[bool, str, str]:
        """Chronological: stamps sort as text; a name that is no stamp counts as old."""
        return self.time is not None, self.name, self.folder


def sessions_below(root: str, files: Iterable[tuple[str, int]]) -> list[Session]:
    """Every folder below the root that holds a profile, or should, in chronological order."""
    above = path_parts(root)
    by_folder: dict[str, list[tuple[str, int]]] = {}
    for path, size in files:
        folder, _, name = path.rpartition("/")
        if not any(part.startswith(".") for part in path.split("/")):
            by_folder.setdefault(folder, []).append((name, size))
    if any(profile_format(name) for name, _ in by_folder.get("", [])):
        by_folder = {"": by_folder[""]}
    found = [
        _session(root, above, folder, sorted(members))
        for folder, members in by_folder.items()
        if folder == "" or _is_session_folder((*above, *folder.split("/")))
    ]
    return sorted(found, key=lambda session: session.order)


def _is_session_folder(parts: Sequence[str]) -> bool:
    return tuple(parts[-3:-1]) == PROFILE_FOLDERS or bool(STAMP.match(parts[-1]))


def _session(
    root: str, above: tuple[str, ...], folder: str, members: list[tuple[str, int]]
) -> Session:
    parts = (*above, *folder.split("/")) if folder else above
    processes = [part for part in parts if _PROCESS.match(part)]
    path = f"{root.rstrip('/')}/{folder}" if folder else root.rstrip("/") or "/"
    hosts, skipped = choose_files(path, members)
    return Session(
        folder=path,
        name=parts[-1] if parts else "",
        base="/".join("process_*" if _PROCESS.match(part) else part for part in parts[:-1]),
        process=processes[-1] if processes else "",
        hosts=hosts,
        skipped=skipped,
        context=f"{path}/{CONTEXT_FILE}" if any(n == CONTEXT_FILE for n, _ in members) else None,
    )


def taken_together(sessions: Sequence[Session]) -> list[list[Session]]:
    """Sessions that were taken together, in order; the groups in order of their first."""
    by_base: dict[str, list[Session]] = {}
    for session in sessions:
        by_base.setdefault(session.base, []).append(session)
    groups: list[list[Session]] = []
    for siblings in by_base.values():
        windows = (
            {session.folder: _window(session) for session in siblings} if len(siblings) > 1 else {}
        )
        groups += _joined(siblings, windows)
    return sorted(groups, key=lambda group: group[0].order)


def _joined(
    siblings: Sequence[Session], windows: dict[str, tuple[int, int] | None]
) -> list[list[Session]]:
    """Each session joins the nearest earlier group that it fits, else opens one."""
    groups: list[list[Session]] = []
    for session in siblings:
        distances = [
            (min(found), at)
            for at, group in enumerate(groups)
            if (found := _distances(session, group, windows))
        ]
        if distances:
            groups[min(distances)[1]].append(session)
        else:
            groups.append([session])
    return groups


def _distances(
    session: Session, group: Sequence[Session], windows: dict[str, tuple[int, int] | None]
) -> list[float]:
    """How far a session is from the members of a group that it was taken together with."""
    own = windows.get(session.folder)
    found = []
    for member in group:
        other = windows.get(member.folder)
        if own and other:
            if own[0] <= other[1] and other[0] <= own[1]:
                found.append(0.0)
        elif session.time is not None and member.time is not None:
            apart = abs(session.time - member.time)
            if apart <= MOST_SECONDS_APART and not _is_repeat(session, group):
                found.append(apart)
    return found


def _is_repeat(session: Session, group: Sequence[Session]) -> bool:
    """Whether the group holds one of its hosts already: a process takes one profile at a time."""
    own = {host.host for host in session.hosts}
    return any(
        own & {host.host for host in member.hosts}
        for member in group
        if member.process == session.process
    )


def _window(session: Session) -> tuple[int, int] | None:
    """The profile window of a session: as training wrote it down, else from the first of its files
    that tells it."""
    noted = read_window(session.context) if session.context else None
    if noted:
        return noted
    for host in session.hosts:
        for file in (host, *host.fallbacks):
            reader = format_named(file.format).read_window
            is_large = is_url(file.path) and file.size > LARGEST_REMOTE_WINDOW
            if reader and file.size and not is_large:
                window = _read_window(reader, file.path)
                if window:
                    return window
    return None


def _read_window(reader: str, path: str) -> tuple[int, int] | None:
    try:
        with open_file(path) as stream:
            found: tuple[int, int] | None = load(reader)(stream)
            return found
    except Exception:  # a damaged file is named when it is read for its events
        return None
