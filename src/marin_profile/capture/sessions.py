"""Folders with trace files, and which of them were taken together.

Contract
* A *session* is one folder with trace files, `plugins/profile/<stamp>/` as JAX writes it.
* A *process folder* is named after a process, its rank or its machine (`process_3`, `pprank_0`,
  `rank1`, `worker-2`, `node_0`, ...), and lies anywhere above or below the stamp; several may be
  nested. Process folders of one form that lie side by side hold sessions that lie side by side.
* Sessions that lie side by side were taken together if their [profile_start, profile_stop] overlap,
  or, where one tells no such times, if their stamps lie within 30 s. A process takes one profile at
  a time: what overlaps most goes first, and two profiles of one process that do not overlap are
  never one capture. What training noted beside a session tells its times, else its files do, which
  are opened for that only where several sessions lie side by side.
* Results do not depend on where the folder lies or in which order it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from marin_profile.base.errors import RemoteError
from marin_profile.base.storage import folders_in, is_url, open_file, path_parts
from marin_profile.capture.context import read_window
from marin_profile.capture.filenames import CONTEXT_FILE, PROFILE_FOLDERS, STAMP_FORMAT
from marin_profile.capture.formats import format_named, load
from marin_profile.capture.trace_files import HostFile, choose_files, profile_format

MOST_SECONDS_APART = 30

STAMP = re.compile(r"\d{4}(?:_\d\d){5}$")
_PROCESS = re.compile(
    r"^((?:[a-z]+[_-])?(?:process|proc|[a-z]*rank|worker|host|node)[_-]?)\d+$", re.IGNORECASE
)
_MACHINE = re.compile(r"(?:host|node)[_-]?\d+$", re.IGNORECASE)
ProfileWindow = tuple[int, int]


@dataclass(frozen=True)
class Session:
    """One folder with trace files. `base` is shared by the folders that can belong together.
    `process`: its process folders, "/" between them; `machine`: those that name a machine."""

    folder: str
    name: str
    base: str
    process: str
    machine: str
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
        if folder == "" or _is_session_folder((*above, *folder.split("/")), members)
    ]
    return sorted(found, key=lambda session: session.order)


def _is_session_folder(parts: Sequence[str], members: Iterable[tuple[str, int]]) -> bool:
    if tuple(parts[-3:-1]) == PROFILE_FOLDERS or _stamp_at(parts) is not None:
        return True
    return bool(_PROCESS.match(parts[-1])) and any(profile_format(name) for name, _ in members)


def _stamp_at(parts: Sequence[str]) -> int | None:
    """The place of the session's own name: process folders may lie below it."""
    at = len(parts) - 1
    while at >= 0 and _PROCESS.match(parts[at]):
        at -= 1
    if at < 0:
        return None
    above = [part for part in parts[:at] if not _PROCESS.match(part)]
    is_session = tuple(above[-2:]) == PROFILE_FOLDERS or bool(STAMP.match(parts[at]))
    return at if is_session else None


def _session(
    root: str, above: tuple[str, ...], folder: str, members: list[tuple[str, int]]
) -> Session:
    parts = (*above, *folder.split("/")) if folder else above
    at = _stamp_at(parts)
    outside = [part for part in parts if not _PROCESS.match(part)] or [*parts, ""]
    processes = [part for part in parts if _PROCESS.match(part)]
    path = f"{root.rstrip('/')}/{folder}" if folder else root.rstrip("/") or "/"
    hosts, skipped = choose_files(path, members)
    around = [part for place, part in enumerate(parts) if place != at]
    return Session(
        folder=path,
        name=outside[-1] if at is None else parts[at],
        base="/".join(_PROCESS.sub(r"\1*", part) for part in around),
        process="/".join(processes),
        machine="/".join(part for part in processes if _MACHINE.match(part)),
        hosts=hosts,
        skipped=skipped,
        context=f"{path}/{CONTEXT_FILE}" if any(n == CONTEXT_FILE for n, _ in members) else None,
    )


def process_folders_beside(path: str) -> tuple[str, list[str]] | None:
    """Where the outermost process folder of a session's path lies, and the names of all there of
    its form; None if it has none, or more than `plugins/profile` and the session below it."""
    parts = path.rstrip("/").split("/")
    at = None
    last = len(parts) - 1 - (tuple(parts[-3:-1]) == PROFILE_FOLDERS)
    for place in range(last, 0, -1):
        if _PROCESS.match(parts[place]):
            at = place
        elif parts[place] not in PROFILE_FOLDERS and not STAMP.match(parts[place]):
            break
    if at is None:
        return None
    above = "/".join(parts[:at]) or "/"
    form = _PROCESS.sub(r"\1*", parts[at])
    return above, [name for name in folders_in(above) if _PROCESS.sub(r"\1*", name) == form]


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
    siblings: Sequence[Session], windows: Mapping[str, ProfileWindow | None]
) -> list[list[Session]]:
    """Groups of sessions, joined pair by pair, the surest first; in the order of the siblings."""
    own = [windows.get(session.folder) for session in siblings]
    group_of = [[place] for place in range(len(siblings))]
    for _, _, one, two in sorted((*_overlapping(own), *_near(siblings, own))):
        left, right = group_of[one], group_of[two]
        if left is right or any(_are_repeats(siblings, own, a, b) for a in left for b in right):
            continue
        left += right
        for place in right:
            group_of[place] = left
    groups = {id(group): group for group in group_of}
    return [[siblings[place] for place in sorted(group)] for group in groups.values()]


Pair = tuple[int, float, int, int]  # surer pairs are smaller


def _overlapping(windows: Sequence[ProfileWindow | None]) -> Iterator[Pair]:
    """Pairs whose windows overlap, by the share of the shorter one that does not."""
    known = sorted((window, place) for place, window in enumerate(windows) if window)
    for index, (first, one) in enumerate(known):
        for second, two in known[index + 1 :]:
            if second[0] > first[1]:
                break
            shorter = min(first[1] - first[0], second[1] - second[0])
            common = min(first[1], second[1]) - second[0]
            yield 0, 1 - common / shorter if shorter else 0.0, min(one, two), max(one, two)


def _near(siblings: Sequence[Session], windows: Sequence[ProfileWindow | None]) -> Iterator[Pair]:
    """Pairs whose stamps are near, where windows cannot tell."""
    timed = [(session.time, place) for place, session in enumerate(siblings)]
    known = sorted((time, place) for time, place in timed if time is not None)
    for index, (first, one) in enumerate(known):
        for second, two in known[index + 1 :]:
            if second - first > MOST_SECONDS_APART:
                break
            if not (windows[one] and windows[two]):
                yield 1, second - first, min(one, two), max(one, two)


def _are_repeats(
    siblings: Sequence[Session], windows: Sequence[ProfileWindow | None], one: int, two: int
) -> bool:
    """Whether both are profiles of one process: what overlaps is not."""
    first, second = siblings[one], siblings[two]
    if first.process != second.process:
        return False
    if not {host.host for host in first.hosts} & {host.host for host in second.hosts}:
        return False
    a, b = windows[one], windows[two]
    return not (a and b and a[0] <= b[1] and b[0] <= a[1])


def _window(session: Session) -> ProfileWindow | None:
    """The profile window of a session: as training wrote it down, else from the first of its files
    that tells it."""
    noted = read_window(session.context) if session.context else None
    if noted:
        return noted
    for host in session.hosts:
        for file in (host, *host.fallbacks):
            reader = format_named(file.format).read_window
            # Web servers list no sizes.
            if reader and (file.size or is_url(file.path)):
                window = _read_window(reader, file.path)
                if window:
                    return window
    return None


def _read_window(reader: str, path: str) -> ProfileWindow | None:
    try:
        with open_file(path) as stream:
            found: ProfileWindow | None = load(reader)(stream)
            return found
    except RemoteError:
        raise  # what belongs together must not depend on the network
    except Exception:  # a damaged file is named when it is read for its events
        return None
