"""Whether another process's share of a capture is still to come, as its records tell.

Contract
* `outlook` reads the records of one process, those from shortly before the capture on alone.
* A capture that failed, or whose process was one of this machine and is gone, is not waited for;
  nor one that was left out: the process has begun a later one. No record: nobody knows.
* Behind a URL a capture has a record as long as its process summarises it, and after that.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import Enum, auto
from pathlib import Path

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import delete_file, folders_in, open_file, write_file
from marin_profile.capture.filenames import (
    PROFILE_FOLDERS,
    RECORD_FILE,
    STAMP_FORMAT,
    process_folder,
)
from marin_profile.capture.sessions import MOST_SECONDS_APART
from marin_profile.profiling.record import CaptureRecord, State, record_in


class Outlook(Enum):
    COMING = auto()
    UNKNOWN = auto()
    NEVER = auto()


@contextmanager
def shown(folder: Path, url: str | None) -> Iterator[None]:
    """While the block works on the capture, and after it, its record lies behind the URL too; not
    if the block fails."""
    record = folder / RECORD_FILE
    if url is None or not record.exists():
        yield
        return
    there = f"{url}/{RECORD_FILE}"
    with suppress(ProfileError):  # the copy of the capture will say why
        write_file(there, record.read_bytes())
    try:
        yield
    except BaseException:
        with suppress(ProfileError):
            delete_file(there)
        raise


def outlook(root: str, process: int, own: CaptureRecord, stamp: str) -> Outlook:
    """`own`: the record of the capture that is looked for, in the session `stamp` of this process;
    the folder of `process` is below `root`."""
    begun = _seconds(stamp)
    if begun is None:
        return Outlook.UNKNOWN
    is_beyond = False
    for seconds, record in _records_since(root, process, begun - MOST_SECONDS_APART):
        if record.start_step == own.start_step and seconds <= begun + MOST_SECONDS_APART:
            return _outlook_of(record)
        is_beyond |= record.start_step > own.start_step and seconds > begun
    return Outlook.NEVER if is_beyond else Outlook.UNKNOWN


def _outlook_of(record: CaptureRecord) -> Outlook:
    owner = record.owner
    is_gone = (
        not record.is_over
        and owner is not None
        and owner.host == socket.gethostname()
        and not owner.is_alive()
    )
    return Outlook.NEVER if record.state is State.FAILED or is_gone else Outlook.COMING


def _records_since(root: str, process: int, since: float) -> Iterator[tuple[float, CaptureRecord]]:
    """Newest first, with their seconds."""
    below = "/".join((root.rstrip("/"), process_folder(process), *PROFILE_FOLDERS))
    try:
        names = folders_in(below)
    except ProfileError:
        return
    for name in reversed(names):
        seconds = _seconds(name)
        if seconds is None or seconds < since:
            continue
        try:
            with open_file(f"{below}/{name}/{RECORD_FILE}") as stream:
                record = record_in(stream.read())
        except (ProfileError, OSError):
            continue
        if record is not None:
            yield seconds, record


def _seconds(stamp: str) -> float | None:
    """Comparable between stamps only."""
    try:
        return (datetime.strptime(stamp, STAMP_FORMAT) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return None
