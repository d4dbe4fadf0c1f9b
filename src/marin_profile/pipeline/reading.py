"""A host's files -> its Timeline: the first whole one counts.

Contract: one file is open at a time; a remote one is copied here, `keep_copies`: to be kept in the
user's cache. Messages name no folder, since what is said of a capture must not depend on where it
lies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from marin_profile.analysis.planes import CPU, plane_kind
from marin_profile.assemble import SourceFile
from marin_profile.base.errors import BrokenInputError
from marin_profile.base.hashing import mix64
from marin_profile.base.jit import prepare
from marin_profile.base.progress import doing
from marin_profile.base.storage import base_name, open_local, sha256_of_open
from marin_profile.capture.formats import XPLANE
from marin_profile.events.timeline import Timeline
from marin_profile.readers import read_timeline

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture, HostFile

ENDS_EARLY = "ends behind the planes of its devices, of which other files of the host show more"


def read_hosts(
    capture: Capture, note: Callable[[str], None], *, keep_copies: bool = False
) -> Iterator[tuple[Timeline, SourceFile]]:
    """Each host of a capture; what cannot be read, or was read already, is a note. Raises
    BrokenInputError if no file can be read."""
    files: list[SourceFile] = []
    first_error: BrokenInputError | None = None
    for host_file in capture.hosts:
        try:
            timeline, file = read_host_file(host_file, keep_copies=keep_copies)
        except BrokenInputError as error:
            first_error = first_error or error
            note(missing(host_file, error))
            continue
        if (twin := twin_of(file, files)) is not None:
            note(twin)
            continue
        files.append(file)
        yield timeline, file
        del timeline  # large: not beside the next one
    if not files:
        raise first_error or no_file_in(capture)


def missing(host_file: HostFile, error: BrokenInputError) -> str:
    return f"Host {host_file.host} is missing: {portable(error, host_file)}"


def twin_of(file: SourceFile, files: Sequence[SourceFile]) -> str | None:
    """Where a file is one of the others: what to say of it."""
    twin = next((known for known in files if known.sha256 == file.sha256), None)
    if twin is None:
        return None
    return f"{file.name} is byte for byte {twin.name}: it is counted once, as {twin.host}."


def no_file_in(capture: Capture) -> BrokenInputError:
    return BrokenInputError(f"{capture.root} holds no readable file.")


def portable(message: object, host_file: HostFile) -> str:
    """The message without folders."""
    text = str(message)
    for file in (host_file, *host_file.fallbacks):
        text = text.replace(file.path, file.name)
    return text


def read_host_file(
    host_file: HostFile, *, keep_copies: bool = False
) -> tuple[Timeline, SourceFile]:
    """The first whole file of a host: the preferred one, else its siblings in order; if none is
    whole, the first that can be read at all. One that ends behind a device's plane is whole unless
    a sibling shows more devices. Raises BrokenInputError."""
    passed_over: list[str] = []
    first_error: BrokenInputError | None = None
    cut: tuple[Timeline, SourceFile] | None = None
    for candidate in (host_file, *host_file.fallbacks):
        try:
            timeline, digest = _read_file(candidate.path, candidate.format, keep_copies)
        except BrokenInputError as error:
            first_error = first_error or error
            passed_over.append(portable(error, candidate))
            continue
        named = tuple(portable(note, candidate) for note in timeline.notes)
        timeline = replace(timeline, notes=named)
        notes = [f"Read {candidate.name} instead: {reason}" for reason in passed_over]
        if timeline.hostname and not notes and disagrees(host_file.host, timeline.hostname):
            notes.append(
                f"The file is named after {host_file.host}, inside it says {timeline.hostname}."
            )
        file = SourceFile(host_file.host, candidate.name, digest, candidate.reason, tuple(notes))
        if not timeline.truncated and not timeline.ends_early:
            if cut and not cut[0].truncated and _devices(timeline) <= _devices(cut[0]):
                return cut
            return timeline, file
        cut = cut or (timeline, file)
        passed_over += named or timeline.doubts or [f"{candidate.name} {ENDS_EARLY}."]
    if cut is not None:
        return cut
    assert first_error is not None
    raise first_error


def disagrees(file_host: str, inner: str) -> bool:
    """File names may hold a shortened or decorated hostname."""
    short = inner.split(".")[0].lower()
    return short not in file_host.lower() and file_host.lower() not in inner.lower()


def _devices(timeline: Timeline) -> int:
    """How many accelerators show anything."""
    busy = {line.plane for line in timeline.lines if line.count}
    return sum(plane_kind(timeline.planes[plane]) not in ("", CPU) for plane in busy)


def _read_file(path: str, source_format: str, keep_copy: bool) -> tuple[Timeline, str]:
    with ThreadPoolExecutor(2) as pool, open_local(path, keep_copy=keep_copy) as stream:
        size = os.fstat(stream.fileno()).st_size
        doing(f"reading {base_name(path)}", size=size)
        digest = pool.submit(sha256_of_open, stream)
        if source_format == XPLANE:
            pool.submit(prepare, size, lambda: mix64.compiled(np.uint64(0)))
        timeline = read_timeline(stream, path=path, source_format=source_format)
        return timeline, digest.result()
