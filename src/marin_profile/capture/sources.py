"""What the user named -> the files of one capture, grouped by host.

Contract
* A *capture* is one session, or several that were taken together; per host it has one file.
* Paths may be local or fsspec URLs. Results depend on names, sizes and profile windows alone, never
  on where the folder lies or in which order it is listed.

To add a source that must be fetched first, bring it to a folder and go on with `from_folder`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from marin_profile.base.errors import BrokenInputError, NotFoundError, UsageError
from marin_profile.base.storage import (
    base_name,
    file_size,
    files_below,
    is_url,
    open_file,
    path_parts,
    plain,
    unsigned,
)
from marin_profile.base.text import either
from marin_profile.capture.filenames import PROFILE_FOLDERS
from marin_profile.capture.formats import FORMATS, Format, format_ending
from marin_profile.capture.sessions import (
    STAMP,
    Session,
    process_folders_beside,
    sessions_below,
    taken_together,
)
from marin_profile.capture.trace_files import LOOKED_FOR, PYTORCH, HostFile, host_of, portable_name

# What other profilers and XProf's own tools write beside, or instead of, a profile.
_FOREIGN = re.compile(
    r"\.(?:json|json\.gz|pb|pb\.gz|pbtxt|pftrace|perfetto-trace|nsys-rep|sqlite)$"
)


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


def resolve(
    *, profile_dir: str | None = None, hosts: Sequence[str] = (), **files: str | None
) -> tuple[Capture, list[str]]:
    """The capture that the arguments name, and notes on choices. Exactly one is given of
    `profile_dir` and `files`, whose names are the formats' arguments (`xplane_file=...`).

    Raises UsageError, NotFoundError or BrokenInputError.
    """
    formats = {one.argument: one for one in FORMATS}
    unknown = files.keys() - formats.keys()
    if unknown:
        raise TypeError(f"resolve has no {', '.join(sorted(unknown))}")
    named = [(formats[name], path) for name, path in files.items() if path is not None]
    if len(named) + (profile_dir is not None) != 1:
        options = either(("--profile-dir", *(one.option for one in FORMATS)))
        raise UsageError(f"Name exactly one profile: with {options}.")
    if profile_dir is not None:
        capture, notes = from_folder(profile_dir)
    else:
        [(file_format, path)] = named
        capture, notes = from_file(path, file_format), []
    return _only_hosts(capture, hosts), notes


def resolve_path(path: str, *, hosts: Sequence[str] = ()) -> tuple[Capture, list[str]]:
    """`resolve` for a file whose name tells its format, else for a folder."""
    file_format = format_ending(unsigned(path))
    name = file_format.argument if file_format else "profile_dir"
    return resolve(hosts=hosts, **{name: path})


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
    named = len(path_parts(folder))
    parent, names = process_folders_beside(root) or ("", [])
    if names and named > len(path_parts(parent)):
        groups = _groups(*(f"{parent}/{name}" for name in names))
    else:
        parent = root.rpartition("/")[0]
        if named != len(path_parts(root)) or path_parts(parent)[-2:] != PROFILE_FOLDERS:
            return []
        groups = _groups(parent)
    own, depth = path_parts(root), len(path_parts(parent))
    for group in groups:
        folders = [path_parts(session.folder) for session in group]
        left_out = sorted({parts[depth] for parts in folders} - {own[depth]})
        if left_out and any(parts[: len(own)] == own for parts in folders):
            return [
                f"Taken at the same time and left out: {_some(left_out)}; name {parent} to take "
                "all of one capture."
            ]
    return []


def from_file(path: str, file_format: Format) -> Capture:
    """A capture of one file that the user named."""
    path = plain(path)
    name = base_name(path)
    other = format_ending(name)
    if other is not None and other != file_format:
        raise UsageError(f"{path} is no {file_format.called}; name it with {other.option}.")
    reason = f"named with {file_format.option}"
    host = HostFile(host_of(name), path, file_size(path), file_format.name, reason)
    folder = unsigned(path)[: -len(name)].rstrip("/") or ("/" if path.startswith("/") else ".")
    stamp = next((part for part in reversed(path_parts(path)) if STAMP.match(part)), "")
    return Capture(folder, stamp, (host,), portable_name(path))


def capture_with(session: str, root: str) -> Capture:
    """The capture below `root` that the session's folder is part of."""
    wanted = path_parts(session)
    for group in _groups(root):
        if any(path_parts(member.folder) == wanted for member in group):
            return _capture(group)
    raise _nothing_in(session)


def find_captures(root: str, *, within: str | None = None) -> list[Capture]:
    """All captures at or below a folder (local or URL), the oldest first; what links that lead out
    of the folder `within` lead to is none of it."""
    return [_capture(members) for members in _groups(root, within=within)]


def _groups(*roots: str, within: str | None = None) -> list[list[Session]]:
    """The sessions with profiles at or below folders, those of one capture together."""
    sessions = [
        session
        for root in map(plain, roots)
        for session in sessions_below(root, files_below(root, within=within))
    ]
    return taken_together([session for session in sessions if session.hosts])


def captures_in(folder: str) -> list[Capture]:
    """`find_captures`, but that there are none is an error that says why."""
    captures = find_captures(folder)
    if not captures:
        raise _nothing_in(folder)
    return captures


def _capture(members: Sequence[Session]) -> Capture:
    first = members[0]
    root = _common_folder([session.folder for session in members])
    return Capture(
        root=root,
        stamp=first.name,
        hosts=tuple(_named_apart(members)),
        source_path=portable_name(first.folder if len(members) == 1 else _above_ranks(first)),
        skipped=tuple(sorted({name for session in members for name in session.skipped})),
        contexts=tuple(session.context for session in members if session.context),
    )


def _above_ranks(session: Session) -> str:
    """The session's folder without process folders below its stamp."""
    above, stamp, _ = session.folder.rpartition(f"/{session.name}/")
    return f"{above}/{session.name}" if stamp else session.folder


def _named_apart(members: Sequence[Session]) -> Iterator[HostFile]:
    """All host files; hosts of one name in several sessions are told apart by what differs."""
    counts: dict[str, int] = {}
    for session in members:
        for host in session.hosts:
            counts[host.host] = counts.get(host.host, 0) + 1
    processes = _what_differs([session.process.split("/") for session in members])
    differ_by_process = len(set(processes)) == len(members)
    machines = _what_differs([session.machine.split("/") for session in members])
    for session, process, above in zip(members, processes, machines, strict=True):
        label = process if differ_by_process else f"{process}/{session.name}"
        for host in session.hosts:
            name = f"{host.host} ({label.strip('/')})" if counts[host.host] > 1 else host.host
            machine = f"{above}/{host.host}" if above else host.host
            yield replace(host, host=name, machine=machine)


def _what_differs(paths: Sequence[Sequence[str]]) -> list[str]:
    """Paths without the parts that all of them have at the same place."""
    if len({len(path) for path in paths}) > 1:
        return ["/".join(path) for path in paths]
    differs = [len(set(column)) > 1 for column in zip(*paths, strict=True)]
    return [
        "/".join(part for part, own in zip(path, differs, strict=True) if own) for path in paths
    ]


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
        for session in sessions_below(folder, files_below(folder))
        for name in session.skipped
        if session.folder != folder or _FOREIGN.search(name)
    ]
    if not foreign:
        return NotFoundError(
            f"No profile in {folder}: looked for {LOOKED_FOR} there and in "
            "plugins/profile/<timestamp>/ below."
        )
    foreign = [f"{name}, a PyTorch profile" if PYTORCH.search(name) else name for name in foreign]
    return BrokenInputError(
        f"{folder} holds no JAX profile, only files of other tools or derived ones "
        f"({_some(foreign, separator='; ')}); looked for {LOOKED_FOR}."
    )


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
    "resolve_path",
]
