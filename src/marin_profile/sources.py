"""What the user named -> the files of one capture, grouped by host.

Contract
* A *session* is one folder with trace files, `plugins/profile/<stamp>/` as JAX writes it. A
  *capture* is one session, or several that lie side by side (below one `plugins/profile/`, or in
  `process_<n>/` folders) and were taken together: their [profile_start, profile_stop] overlap, or,
  where a file tells no such times, their stamps lie within 30 s.
* Per host one file is chosen, xplane before JSON; the others stay as `fallbacks`, best first, for
  the case that the chosen one turns out empty or damaged. Nothing is opened here but to read the
  profile window where several sessions lie side by side.
* Paths may be local or fsspec URLs. Results depend on names, sizes and windows alone, never on
  where the folder lies or in which order it is listed.

To add a source that must be fetched first, bring it to a folder and go on with `from_folder`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from marin_profile.errors import BrokenInputError, NotFoundError, UsageError
from marin_profile.filenames import CONTEXT_FILE, PROFILE_FOLDERS, STAMP_FORMAT, WRITTEN_BESIDE
from marin_profile.formats import TRACE_JSON, XPLANE
from marin_profile.profile_context import read_window
from marin_profile.storage import (
    base_name,
    file_size,
    files_below,
    is_url,
    open_file,
    path_parts,
    plain,
)

UNNAMED_HOST = "unnamed"

MOST_SECONDS_APART = 30
# A remote file is read whole for its window; a larger one is judged by its folder's stamp.
LARGEST_REMOTE_WINDOW = 256_000_000

_STAMP = re.compile(r"\d{4}(?:_\d\d){5}$")
_PROCESS = re.compile(r"process_\d+$")
_PERFETTO_COPY = "perfetto_trace.json.gz"
_HOST_SUFFIXES = (
    (".xplane.pb", XPLANE),
    (".trace.json.gz", TRACE_JSON),
    (".trace.json", TRACE_JSON),
)
# What other profilers and XProf's own tools write beside, or instead of, a profile.
_FOREIGN = re.compile(
    r"\.(?:json|json\.gz|pb|pb\.gz|pbtxt|pftrace|perfetto-trace|nsys-rep|sqlite)$"
)
_PYTORCH = re.compile(r"\.pt\.trace\.json(?:\.gz)?$")
_LOOKED_FOR = "*.xplane.pb, *.trace.json.gz, *.trace.json or perfetto_trace.json.gz"


@dataclass(frozen=True)
class HostFile:
    """The file that speaks for one host, why it was chosen, and what else could."""

    host: str
    path: str
    size: int
    format: str
    reason: str
    fallbacks: tuple[HostFile, ...] = ()

    @property
    def name(self) -> str:
        """The path from `plugins/profile/` on, else the file's name."""
        return portable_name(self.path)


@dataclass(frozen=True)
class Capture:
    """The files of one capture. `source_path` is the same wherever the folder lies; `contexts` are
    what training wrote beside it, in the order of the sessions."""

    root: str
    stamp: str
    hosts: tuple[HostFile, ...]
    source_path: str
    skipped: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Session:
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
        if not _STAMP.match(self.name):
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


def resolve(
    *,
    profile_dir: str | None = None,
    trace_file: str | None = None,
    xplane_file: str | None = None,
    hosts: Sequence[str] = (),
) -> tuple[Capture, list[str]]:
    """The capture that the arguments name (exactly one of the first three), and notes on choices.

    Raises UsageError, NotFoundError or BrokenInputError.
    """
    named = [name for name in (profile_dir, trace_file, xplane_file) if name is not None]
    if len(named) != 1:
        raise UsageError(
            "Name exactly one profile: with --profile-dir, --trace-file or --xplane-file."
        )
    if profile_dir is not None:
        capture, notes = from_folder(profile_dir)
    elif trace_file is not None:
        capture, notes = from_file(trace_file, TRACE_JSON), []
    else:
        capture, notes = from_file(named[0], XPLANE), []
    return _only_hosts(capture, hosts), notes


def from_folder(folder: str) -> tuple[Capture, list[str]]:
    """The newest capture at or below a folder; naming a session's own folder takes that session."""
    captures = captures_in(folder)
    chosen = captures[-1]
    notes = []
    if len(captures) > 1:
        others = ", ".join(_label(capture, captures) for capture in reversed(captures[:-1]))
        notes.append(
            f"{len(captures)} captures found; the newest, {_label(chosen, captures)}, was taken; "
            f"the others: {others}."
        )
    notes += _taken_beside(folder, chosen)
    if chosen.skipped:
        notes.append(f"Not read: {_some(chosen.skipped)}.")
    return chosen, notes


def _taken_beside(folder: str, chosen: Capture) -> list[str]:
    """A note on sessions beside a named one that hold more hosts of the same capture."""
    root = chosen.root if is_url(chosen.root) else os.path.abspath(chosen.root)
    parent, _, name = root.rpartition("/")
    if path_parts(folder) != path_parts(root) or path_parts(parent)[-2:] != PROFILE_FOLDERS:
        return []
    for group in _grouped([s for s in _sessions(parent, files_below(parent)) if s.hosts]):
        beside = [session.name for session in group if session.name != name]
        if len(beside) < len(group) and beside:
            return [
                f"Taken at the same time and left out: {_some(beside)}; name {parent} to take "
                "all of one capture."
            ]
    return []


def from_file(path: str, file_format: str) -> Capture:
    """A capture of one file that the user named."""
    path = plain(path)
    name = base_name(path)
    if name.endswith(".xplane.pb") and file_format == TRACE_JSON:
        raise UsageError(f"{path} is an XPlane protobuf; name it with --xplane-file.")
    if name.endswith((".json", ".json.gz")) and file_format == XPLANE:
        raise UsageError(f"{path} is a trace JSON; name it with --trace-file.")
    option = "--xplane-file" if file_format == XPLANE else "--trace-file"
    host = HostFile(_host_of(name), path, file_size(path), file_format, f"named with {option}")
    folder = path[: -len(name)].rstrip("/") or ("/" if path.startswith("/") else ".")
    stamp = next((part for part in reversed(path_parts(path)) if _STAMP.match(part)), "")
    return Capture(folder, stamp, (host,), portable_name(path))


def capture_with(session: str, root: str) -> Capture:
    """The capture below `root` that the session's folder is part of."""
    wanted = path_parts(session)
    for group in _grouped([s for s in _sessions(plain(root), files_below(root)) if s.hosts]):
        if any(path_parts(member.folder) == wanted for member in group):
            return _capture(group)
    raise _nothing_in(session)


def find_captures(root: str) -> list[Capture]:
    """All captures at or below a folder (local or URL), the oldest first."""
    root = plain(root)
    sessions = _sessions(root, files_below(root))
    return [_capture(members) for members in _grouped([s for s in sessions if s.hosts])]


def captures_in(folder: str) -> list[Capture]:
    """`find_captures`, but that there are none is an error that says why."""
    captures = find_captures(folder)
    if not captures:
        raise _nothing_in(folder)
    return captures


def portable_name(path: str) -> str:
    """A path from `plugins/profile/` on, else its last part: the same wherever the folder lies."""
    parts = path_parts(_text(path))
    for at in range(len(parts) - 2, 0, -1):
        if parts[at - 1 : at + 1] == PROFILE_FOLDERS:
            return "/".join(parts[at - 1 :])
    return parts[-1] if parts else ""


# Sessions


def _sessions(root: str, files: Iterable[tuple[str, int]]) -> list[_Session]:
    """Every folder below the root that holds a profile, or should, in chronological order."""
    above = path_parts(root)
    by_folder: dict[str, list[tuple[str, int]]] = {}
    for path, size in files:
        folder, _, name = path.rpartition("/")
        if not any(part.startswith(".") for part in path.split("/")):
            by_folder.setdefault(folder, []).append((name, size))
    if any(_format_of(name) for name, _ in by_folder.get("", [])):
        by_folder = {"": by_folder[""]}
    found = [
        _session(root, above, folder, sorted(members))
        for folder, members in by_folder.items()
        if folder == "" or _is_session_folder((*above, *folder.split("/")))
    ]
    return sorted(found, key=lambda session: session.order)


def _is_session_folder(parts: Sequence[str]) -> bool:
    return tuple(parts[-3:-1]) == PROFILE_FOLDERS or bool(_STAMP.match(parts[-1]))


def _session(
    root: str, above: tuple[str, ...], folder: str, members: list[tuple[str, int]]
) -> _Session:
    parts = (*above, *folder.split("/")) if folder else above
    processes = [part for part in parts if _PROCESS.match(part)]
    path = f"{root.rstrip('/')}/{folder}" if folder else root.rstrip("/") or "/"
    hosts, skipped = _choose_files(path, members)
    return _Session(
        folder=path,
        name=parts[-1] if parts else "",
        base="/".join("process_*" if _PROCESS.match(part) else part for part in parts[:-1]),
        process=processes[-1] if processes else "",
        hosts=hosts,
        skipped=skipped,
        context=f"{path}/{CONTEXT_FILE}" if any(n == CONTEXT_FILE for n, _ in members) else None,
    )


def _choose_files(
    folder: str, members: Iterable[tuple[str, int]]
) -> tuple[tuple[HostFile, ...], tuple[str, ...]]:
    """One file for each host, xplane first, and the names of what is no profile of JAX."""
    by_host: dict[str, list[HostFile]] = {}
    copies: list[HostFile] = []
    skipped: list[str] = []
    for name, size in members:
        file_format = _format_of(name)
        if file_format is None:
            if name not in WRITTEN_BESIDE:
                skipped.append(name)
            continue
        file = HostFile(_host_of(name), f"{folder}/{name}", size, file_format, "")
        if name == _PERFETTO_COPY:
            copies.append(file)
        else:
            by_host.setdefault(file.host, []).append(file)
    for copy in copies:
        if len(by_host) > 1:
            skipped.append(base_name(copy.path))  # of which host, it does not tell
        else:
            host = next(iter(by_host), UNNAMED_HOST)
            by_host.setdefault(host, []).append(replace(copy, host=host))
    hosts = tuple(_best_first(by_host[host]) for host in sorted(by_host))
    return hosts, tuple(sorted(skipped))


def _best_first(files: list[HostFile]) -> HostFile:
    def rank(file: HostFile) -> tuple[bool, bool, bool, str]:
        is_copy = base_name(file.path) == _PERFETTO_COPY
        return file.format != XPLANE, is_copy, not file.path.endswith(".gz"), file.path

    chosen, *others = sorted(files, key=rank)
    others = [replace(other, reason="fallback") for other in others]
    return replace(chosen, reason=_reason(chosen, others), fallbacks=tuple(others))


def _reason(chosen: HostFile, others: Sequence[HostFile]) -> str:
    if not others:
        return "the only file of this host"
    names = " and ".join(_kind_name(other.path) for other in others)
    if chosen.format == XPLANE:
        return (
            f"xplane.pb chosen over {names}: it also carries HLO protos, async events and op costs"
        )
    return f"{_kind_name(chosen.path)} chosen over {names}: the profiler's own file, same events"


def _kind_name(path: str) -> str:
    name = base_name(path)
    return next((suffix.lstrip(".") for suffix, _ in _HOST_SUFFIXES if name.endswith(suffix)), name)


def _format_of(name: str) -> str | None:
    if name == _PERFETTO_COPY:
        return TRACE_JSON
    if _PYTORCH.search(name):
        return None
    return next((kind for suffix, kind in _HOST_SUFFIXES if name.endswith(suffix)), None)


def _host_of(name: str) -> str:
    name = _text(name)
    if name == _PERFETTO_COPY:
        return UNNAMED_HOST
    for suffix, _ in _HOST_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name[: -len(suffix)]
    return name.split(".", 1)[0] or UNNAMED_HOST


# Captures


def _grouped(sessions: Sequence[_Session]) -> list[list[_Session]]:
    """Sessions that were taken together, in order; the groups in order of their first."""
    by_base: dict[str, list[_Session]] = {}
    for session in sessions:
        by_base.setdefault(session.base, []).append(session)
    groups: list[list[_Session]] = []
    for siblings in by_base.values():
        windows = (
            {session.folder: _window(session) for session in siblings} if len(siblings) > 1 else {}
        )
        groups += _taken_together(siblings, windows)
    return sorted(groups, key=lambda group: group[0].order)


def _taken_together(
    siblings: Sequence[_Session], windows: dict[str, tuple[int, int] | None]
) -> list[list[_Session]]:
    """Each session joins the nearest earlier group that it fits, else opens one."""
    groups: list[list[_Session]] = []
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
    session: _Session, group: Sequence[_Session], windows: dict[str, tuple[int, int] | None]
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


def _is_repeat(session: _Session, group: Sequence[_Session]) -> bool:
    """Whether the group holds one of its hosts already: a process takes one profile at a time."""
    own = {host.host for host in session.hosts}
    return any(
        own & {host.host for host in member.hosts}
        for member in group
        if member.process == session.process
    )


def _window(session: _Session) -> tuple[int, int] | None:
    """The profile window of a session: as training wrote it down, else from the first of its files
    that tells it."""
    noted = read_window(session.context) if session.context else None
    if noted:
        return noted
    for host in session.hosts:
        for file in (host, *host.fallbacks):
            is_large = is_url(file.path) and file.size > LARGEST_REMOTE_WINDOW
            if file.format == XPLANE and file.size and not is_large:
                window = _read_window(file.path)
                if window:
                    return window
    return None


def _read_window(path: str) -> tuple[int, int] | None:
    from marin_profile.readers.profile_window import read_profile_window

    try:
        with open_file(path) as stream:
            return read_profile_window(stream)
    except Exception:  # a damaged file is named when it is read for its events
        return None


def _capture(members: Sequence[_Session]) -> Capture:
    first = members[0]
    folders = [session.folder for session in members]
    return Capture(
        root=_common_folder(folders),
        stamp=first.name,
        hosts=tuple(_named_apart(members)),
        source_path=portable_name(first.folder),
        skipped=tuple(sorted({name for session in members for name in session.skipped})),
        contexts=tuple(session.context for session in members if session.context),
    )


def _named_apart(members: Sequence[_Session]) -> Iterator[HostFile]:
    """All host files; hosts of one name in several sessions are told apart by what differs."""
    counts: dict[str, int] = {}
    for session in members:
        for host in session.hosts:
            counts[host.host] = counts.get(host.host, 0) + 1
    differ_by_process = len({session.process for session in members}) == len(members)
    for session in members:
        label = session.process if differ_by_process else f"{session.process}/{session.name}"
        for host in session.hosts:
            yield (
                replace(host, host=f"{host.host} ({label.strip('/')})")
                if counts[host.host] > 1
                else host
            )


def _only_hosts(capture: Capture, wanted: Sequence[str]) -> Capture:
    if not wanted:
        return capture
    known = [host.host for host in capture.hosts]
    for name in wanted:
        if not any(_is_named(host, name) for host in known):
            raise NotFoundError(
                f"The capture has no host {name!r}; its hosts are: {', '.join(known)}."
            )
    chosen = tuple(
        host for host in capture.hosts if any(_is_named(host.host, name) for name in wanted)
    )
    return replace(capture, hosts=chosen)


def _is_named(host: str, wanted: str) -> bool:
    return host == wanted or host.startswith(f"{wanted} (")


def _nothing_in(folder: str) -> BrokenInputError | NotFoundError:
    """Why a folder has no capture: nothing there, or only files that are no JAX profile."""
    folder = plain(folder)
    foreign = [
        name
        for session in _sessions(folder, files_below(folder))
        for name in session.skipped
        if session.folder != folder or _FOREIGN.search(name)
    ]
    if not foreign:
        return NotFoundError(
            f"No profile in {folder}: looked for {_LOOKED_FOR} there and in "
            "plugins/profile/<timestamp>/ below."
        )
    foreign = [f"{name}, a PyTorch profile" if _PYTORCH.search(name) else name for name in foreign]
    return BrokenInputError(
        f"{folder} holds no JAX profile, only files of other tools or derived ones "
        f"({_some(foreign, separator='; ')}); looked for {_LOOKED_FOR}."
    )


# Paths


def _text(name: str) -> str:
    """A file's name whose odd bytes are escapes, so that it can be written down."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _label(capture: Capture, all_captures: Sequence[Capture]) -> str:
    same = [other for other in all_captures if other.stamp == capture.stamp]
    return capture.stamp if len(same) == 1 else capture.root


def _some(names: Sequence[str], *, most: int = 5, separator: str = ", ") -> str:
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _common_folder(folders: Sequence[str]) -> str:
    if len(folders) == 1:
        return folders[0]
    columns = zip(*(folder.split("/") for folder in folders), strict=False)
    shared = []
    for parts in columns:
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


__all__ = [
    "Capture",
    "HostFile",
    "capture_with",
    "captures_in",
    "find_captures",
    "from_file",
    "from_folder",
    "open_file",
    "portable_name",
    "resolve",
]
