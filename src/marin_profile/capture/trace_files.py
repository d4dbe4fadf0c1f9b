"""Which files are JAX profiles, and which one speaks for a host.

Contract: decided by names alone; nothing is opened. Per host one file is chosen, xplane before
JSON; the others stay as `fallbacks`, best first, for the case that the chosen one turns out empty
or damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from marin_profile.base.storage import base_name, path_parts
from marin_profile.capture.filenames import PROFILE_FOLDERS, WRITTEN_BESIDE
from marin_profile.capture.formats import TRACE_JSON, XPLANE

UNNAMED_HOST = "unnamed"
PERFETTO_COPY = "perfetto_trace.json.gz"
LOOKED_FOR = f"*.xplane.pb, *.trace.json.gz, *.trace.json or {PERFETTO_COPY}"
PYTORCH = re.compile(r"\.pt\.trace\.json(?:\.gz)?$")

_HOST_SUFFIXES = (
    (".xplane.pb", XPLANE),
    (".trace.json.gz", TRACE_JSON),
    (".trace.json", TRACE_JSON),
)


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
    """One file for each host, xplane first, and the names of what is no profile of JAX."""
    by_host: dict[str, list[HostFile]] = {}
    copies: list[HostFile] = []
    skipped: list[str] = []
    for name, size in members:
        file_format = format_of(name)
        if file_format is None:
            if name not in WRITTEN_BESIDE:
                skipped.append(name)
            continue
        file = HostFile(host_of(name), f"{folder}/{name}", size, file_format, "")
        if name == PERFETTO_COPY:
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
        is_copy = base_name(file.path) == PERFETTO_COPY
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


def format_of(name: str) -> str | None:
    if name == PERFETTO_COPY:
        return TRACE_JSON
    if PYTORCH.search(name):
        return None
    return next((kind for suffix, kind in _HOST_SUFFIXES if name.endswith(suffix)), None)


def host_of(name: str) -> str:
    name = as_text(name)
    if name == PERFETTO_COPY:
        return UNNAMED_HOST
    for suffix, _ in _HOST_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name[: -len(suffix)]
    return name.split(".", 1)[0] or UNNAMED_HOST


def as_text(name: str) -> str:
    """A file's name whose odd bytes are escapes, so that it can be written down."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
