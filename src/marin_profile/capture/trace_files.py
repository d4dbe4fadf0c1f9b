"""Which files are JAX profiles, and which one speaks for a host.

Contract: decided by names alone; nothing is opened. Per host one file is chosen, of the format
that `formats` lists first; the others stay as `fallbacks`, best first, for the case that the chosen
one turns out empty or damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from marin_profile.base.storage import base_name, path_parts
from marin_profile.base.text import either
from marin_profile.capture.filenames import PROFILE_FOLDERS, WRITTEN_BESIDE
from marin_profile.capture.formats import FORMATS, Format, format_named, format_of, host_suffixes

UNNAMED_HOST = "unnamed"
LOOKED_FOR = either(pattern for one in FORMATS for pattern in one.patterns)
PYTORCH = re.compile(r"\.pt\.trace\.json(?:\.gz)?$")


@dataclass(frozen=True)
class HostFile:
    """The file that speaks for one host, why it was chosen, and what else could. `machine` is the
    same for processes of one machine, as far as names tell."""

    host: str
    path: str
    size: int
    format: str
    reason: str
    fallbacks: tuple[HostFile, ...] = ()
    machine: str = ""

    @property
    def name(self) -> str:
        """The path from `plugins/profile/` on, else the file's name."""
        return portable_name(self.path)


def portable_name(path: str) -> str:
    """A path from `plugins/profile/` on, else its last part: the same wherever the folder lies."""
    parts = path_parts(as_text(path))
    for at in range(len(parts) - 2, 0, -1):
        if parts[at - 1 : at + 1] == PROFILE_FOLDERS:
            return "/".join(parts[at - 1 :])
    return parts[-1] if parts else ""


def choose_files(
    folder: str, members: Iterable[tuple[str, int]]
) -> tuple[tuple[HostFile, ...], tuple[str, ...]]:
    """One file for each host, and the names of what is no profile of JAX."""
    by_host: dict[str, list[HostFile]] = {}
    copies: list[HostFile] = []
    skipped: list[str] = []
    for name, size in members:
        file_format = profile_format(name)
        if file_format is None:
            if name not in WRITTEN_BESIDE:
                skipped.append(name)
            continue
        file = HostFile(host_of(name), f"{folder}/{name}", size, file_format.name, "")
        if name in file_format.hostless_names:
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
    def rank(file: HostFile) -> tuple[int, int, str]:
        one = format_named(file.format)
        suffix = _suffix(base_name(file.path))
        at = one.suffixes.index(suffix) if suffix else len(one.suffixes)
        return FORMATS.index(one), at, file.path

    chosen, *others = sorted(files, key=rank)
    others = [replace(other, reason="fallback") for other in others]
    return replace(chosen, reason=_reason(chosen, others), fallbacks=tuple(others))


def _reason(chosen: HostFile, others: Sequence[HostFile]) -> str:
    if not others:
        return "the only file of this host"
    names = " and ".join(_kind_name(other.path) for other in others)
    if any(other.format != chosen.format for other in others):
        why = format_named(chosen.format).excels
    else:
        why = "the profiler's own file, same events"
    return f"{_kind_name(chosen.path)} chosen over {names}: {why}"


def _kind_name(path: str) -> str:
    name = base_name(path)
    return (_suffix(name) or name).lstrip(".")


def _suffix(name: str) -> str | None:
    return next((suffix for suffix in host_suffixes() if name.endswith(suffix)), None)


def profile_format(name: str) -> Format | None:
    """The format of a file of this name; None if it is no profile of JAX."""
    return None if PYTORCH.search(name) else format_of(name)


def host_of(name: str) -> str:
    name = as_text(name)
    if any(name in one.hostless_names for one in FORMATS):
        return UNNAMED_HOST
    suffix = _suffix(name)
    if suffix and name != suffix:
        return name[: -len(suffix)]
    return name.split(".", 1)[0] or UNNAMED_HOST


def as_text(name: str) -> str:
    """A file's name whose odd bytes are escapes, so that it can be written down."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
