"""The captures of several processes, merged through a folder that all of them see.

Contract
* A process writes its host's part next to its capture, after it, whole or not at all: where there
  is a part, the capture is complete.
* `gather` never waits beyond its limit, nor for a process whose folder does not exist: then the
  folder is not shared. A process that left a capture but no part is read from the capture; one that
  left neither is missing, and the summary lists it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import is_url, open_file, write_file
from marin_profile.capture.filenames import CONTEXT_FILE, PART_FILE, process_folder
from marin_profile.capture.formats import host_suffixes
from marin_profile.capture.sources import Capture, capture_with
from marin_profile.pipeline import SummarizeOptions, read_host
from marin_profile.pipeline.host_parts import HostRead, decode_host, encode_host
from marin_profile.profiling.job import Gather
from marin_profile.profiling.run import Run
from marin_profile.version import package_version

logger = logging.getLogger(__name__)

CAPTURE_SUFFIXES = (*host_suffixes(), CONTEXT_FILE)
POLL_EVERY, POLL_EVERY_REMOTE = 0.5, 2.0  # seconds
_OPTIONS = SummarizeOptions()


def claim(run: Run) -> None:
    """Show the run's other processes that this one sees the same folders."""
    if run.count == 1:
        return
    shared = run.own_shared
    for folder in (run.own_dir, *([Path(shared)] if shared and not is_url(shared) else ())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            logger.warning("profiles cannot be written to %s: %s", folder, error.strerror)


def leave_part(capture: Capture) -> HostRead:
    """Read a process's own capture, and write its part next to it. Raises BrokenInputError."""
    (host_file,) = capture.hosts
    found = read_host(host_file, _OPTIONS)
    data = encode_host(found, tool_version=package_version(), warmup_steps=_OPTIONS.warmup_steps)
    write_file(_part_of(host_file.path), data)
    return found


def copy_to_shared(folder: Path, url: str) -> None:
    """Copy a capture to where the other processes see it. Raises RemoteError."""
    names = [path for path in sorted(folder.iterdir()) if path.name.endswith(CAPTURE_SUFFIXES)]
    part = folder / PART_FILE
    for path in (*names, *([part] if part.exists() else ())):
        write_file(f"{url}/{path.name}", path.read_bytes())


def gather(wanted: Gather) -> Iterator[tuple[Capture, dict[str, HostRead], bool]]:
    """What is there now, then what is there at the end: the capture, its parts by path, and whether
    this is the end."""
    deadline = time.monotonic() + wanted.seconds
    known: dict[str, HostRead] = {}
    expected = [process for process in wanted.processes if _is_here(wanted.root, process)]
    is_first = True
    while True:
        capture = capture_with(wanted.session, wanted.root)
        for host_file in capture.hosts:
            if host_file.path not in known and (part := _part(host_file.path)) is not None:
                known[host_file.path] = part
        is_over = len(known) >= len(expected) or time.monotonic() >= deadline
        if is_first or is_over:
            yield capture, known, is_over
        if is_over:
            return
        is_first = False
        time.sleep(POLL_EVERY_REMOTE if is_url(wanted.root) else POLL_EVERY)


def _is_here(root: str, process: int) -> bool:
    return is_url(root) or (Path(root) / process_folder(process)).is_dir()


def _part(path: str) -> HostRead | None:
    try:
        with open_file(_part_of(path)) as stream:
            data = stream.read()
        return decode_host(data, tool_version=package_version(), warmup_steps=_OPTIONS.warmup_steps)
    except (ProfileError, OSError, ValueError):
        return None


def _part_of(path: str) -> str:
    return f"{path.rpartition('/')[0]}/{PART_FILE}"
