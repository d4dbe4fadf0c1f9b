"""What the captures of one process take on its disk: whether another one may, and which go.

Contract
* `why_not` and `make_room` touch the disk: they belong in a thread.
* What is removed is the profiler's own files of a capture that is done with and not among the
  newest; its record, context, summary and report stay. One is done with when it is published, or
  was never to be summarised.
* What cannot be found out, or removed, is no reason against a capture.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from marin_profile.capture.filenames import WRITTEN_BESIDE
from marin_profile.profiling.record import CaptureRecord, State, read_record, sessions_below

LOOK_EVERY = 5.0  # seconds
_GB = 1e9


@dataclass
class Disk:
    """`root`: where the process puts its captures, those of earlier starts among them; the limits
    are those of ProfilerConfig; `ingests`: whether captures are summarised."""

    root: Path
    keep_captures: int | None
    min_free_disk_gb: float
    max_capture_gb: float | None
    ingests: bool = True
    _why_not: str | None = None
    _looked_at: float = float("-inf")
    _done: str = ""  # the name of the newest session whose files are gone

    def why_not(self, *, anew: bool = False) -> str | None:
        """Which limit stands against another capture; looked at every few seconds, or `anew`."""
        now = time.monotonic()
        if anew or now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            self._why_not = self._too_little_free() or self._too_much_taken()
        return self._why_not

    def make_room(self) -> None:
        """Remove what `keep_captures` does not keep."""
        if self.keep_captures is None:
            return
        sessions = [one for one in sessions_below(self.root) if one.name > self._done]
        older = sessions[: max(0, len(sessions) - self.keep_captures)]
        is_whole = True  # whether nothing before was left for later
        for session in older:
            record = read_record(session)
            is_done = record is not None and self._is_done(record)
            if is_done:
                _remove_files(session)
            is_whole = is_whole and (record is None or record.is_over or is_done)
            if is_whole:
                self._done = session.name

    def _is_done(self, record: CaptureRecord) -> bool:
        was_not_to_be_summarised = (
            not self.ingests and record.state is State.SETTLING and record.job is None
        )
        return record.state is State.PUBLISHED or was_not_to_be_summarised

    def _too_little_free(self) -> str | None:
        folder = next((one for one in (self.root, *self.root.parents) if one.is_dir()), None)
        if folder is None or not self.min_free_disk_gb:
            return None
        try:
            free = shutil.disk_usage(folder).free / _GB
        except OSError:
            return None
        if free >= self.min_free_disk_gb:
            return None
        return f"{free:.3g} GB are free, less than min_free_disk_gb ({self.min_free_disk_gb:g})"

    def _too_much_taken(self) -> str | None:
        if self.max_capture_gb is None:
            return None
        taken = sum(_size(session) for session in sessions_below(self.root)) / _GB
        if taken < self.max_capture_gb:
            return None
        return (
            f"the captures of this run take {taken:.3g} GB, max_capture_gb is "
            f"{self.max_capture_gb:g}"
        )


def _files(session: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(session) as entries:
            yield from (one for one in entries if one.is_file(follow_symlinks=False))
    except OSError:
        return


def _size(session: Path) -> int:
    total = 0
    for entry in _files(session):
        try:
            total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def _remove_files(session: Path) -> None:
    for entry in list(_files(session)):
        if entry.name not in WRITTEN_BESIDE:
            try:
                os.remove(entry.path)
            except OSError:
                continue
