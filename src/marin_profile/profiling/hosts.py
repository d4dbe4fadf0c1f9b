"""The captures of several processes, merged through a folder that all of them see.

Contract
* A process writes its host's part next to its capture, after it, whole or not at all: where there
  is a part, the capture is complete.
* `gather` never waits beyond its limit, nor for a process whose folder does not exist: then the
  folder is not shared. Nor for one of which the records tell that nothing more comes; once training
  waits, only seconds for one that has no record of the capture.
* A process that left a capture but no part is read from the capture; one that left neither is
  missing, and the summary lists it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import base_name, is_url, open_file, path_parts, write_file
from marin_profile.capture.filenames import (
    CONTEXT_FILE,
    PART_FILE,
    PROFILE_FOLDERS,
    process_folder,
)
from marin_profile.capture.formats import host_suffixes
from marin_profile.capture.sources import Capture, capture_with
from marin_profile.pipeline import SummarizeOptions, read_host
from marin_profile.pipeline.host_parts import HostRead, decode_host, encode_host
from marin_profile.profiling.job import Gather
from marin_profile.profiling.record import CaptureRecord
from marin_profile.profiling.run import Run
from marin_profile.profiling.signs import Outlook, outlook
from marin_profile.version import package_version

logger = logging.getLogger(__name__)

CAPTURE_SUFFIXES = (*host_suffixes(), CONTEXT_FILE)
POLL_EVERY, POLL_EVERY_REMOTE = 0.5, 2.0  # seconds
SECONDS_FOR_A_SIGN = 5.0  # that another process has the capture, once training waits
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


def gather(
    wanted: Gather, own: CaptureRecord | None, is_in_a_hurry: Callable[[], bool]
) -> Iterator[tuple[Capture, dict[str, HostRead], bool]]:
    """What is there now, then what is there at the end: the capture, its parts by path, and whether
    this is the end. `own`: the record of this process's capture; `is_in_a_hurry`: training waits.
    """
    known: dict[str, HostRead] = {}
    waiting = _Waiting(wanted, own)
    is_first = True
    while True:
        # Before the files are listed: what is not waited for has left them by then.
        missing = waiting.missing(known, is_in_a_hurry())
        capture = capture_with(wanted.session, wanted.root)
        for host_file in capture.hosts:
            if host_file.path not in known and (part := _part(host_file.path)) is not None:
                known[host_file.path] = part
        is_over = not missing - _processes(known)
        if is_first or is_over:
            yield capture, known, is_over
        if is_over:
            return
        is_first = False
        time.sleep(POLL_EVERY_REMOTE if is_url(wanted.root) else POLL_EVERY)


class _Waiting:
    """Which processes are still waited for."""

    def __init__(self, wanted: Gather, own: CaptureRecord | None) -> None:
        self._root = wanted.root
        self._stamp = base_name(wanted.session)
        self._own = own
        self._deadline = time.monotonic() + wanted.seconds
        self._hurried_at: float | None = None
        self._expected = {one for one in wanted.processes if _is_here(wanted.root, one)}

    def missing(self, known: Iterable[str], is_in_a_hurry: bool) -> set[int]:
        now = time.monotonic()
        if now >= self._deadline:
            return set()
        if is_in_a_hurry and self._hurried_at is None:
            self._hurried_at = now
        is_patient = self._hurried_at is None or now - self._hurried_at < SECONDS_FOR_A_SIGN
        hopeful = {Outlook.COMING, Outlook.UNKNOWN} if is_patient else {Outlook.COMING}
        left = self._expected - _processes(known)
        return {process for process in left if self._outlook(process) in hopeful}

    def _outlook(self, process: int) -> Outlook:
        if self._own is None or process == self._own.process_index:
            return Outlook.UNKNOWN
        return outlook(self._root, process, self._own, self._stamp)


def _processes(known: Iterable[str]) -> set[int]:
    """Of the captures' files, by the process folder that they lie in."""
    folders = (path_parts(path)[-2 - len(PROFILE_FOLDERS) - 1] for path in known)
    return {int(name.rpartition("_")[2]) for name in folders}


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
