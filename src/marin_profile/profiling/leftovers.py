"""What earlier processes of a run left behind: captures to finish, and the windows they took.

Contract
* Reads the records beside the captures; a capture without one is nobody's business here.
* What a process that is still alive works on is left alone; so is what failed too often.
* A capture whose process ended while it was being taken is lost, unless its files are there. One
  whose files went later, as those do that `keep_captures` does not keep, is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from marin_profile.base.durable import sweep
from marin_profile.base.owner import Owner
from marin_profile.capture.formats import host_suffixes
from marin_profile.profiling.record import (
    CaptureRecord,
    State,
    failed,
    moved,
    noted,
    records_below,
    retried,
    sessions_below,
)
from marin_profile.profiling.run import Run

MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Leftovers:
    records: tuple[CaptureRecord, ...] = ()

    @staticmethod
    def of(run: Run) -> Leftovers:
        return Leftovers.below(run.own_dir)

    @staticmethod
    def below(folder: Path) -> Leftovers:
        return Leftovers.from_records(records_below(folder))

    @staticmethod
    def from_records(records: Iterable[CaptureRecord]) -> Leftovers:
        return Leftovers(tuple(_as_left(record) for record in records))

    @property
    def taken(self) -> frozenset[int]:
        """First steps of the planned windows whose capture is there."""
        return frozenset(
            start for record in self.records if record.is_taken for start in record.planned_for
        )

    def to_finish(
        self, owner: Owner, *, most_attempts: int | None = MOST_ATTEMPTS
    ) -> list[CaptureRecord]:
        """The captures that can be gone on with, in the hands of `owner`."""
        return [
            retried(record, owner)
            for record in self.records
            if record.is_taken
            and record.state is not State.PUBLISHED
            and not is_at_work(record)
            and (most_attempts is None or record.attempts < most_attempts)
            and (record.folder is None or has_files(Path(record.folder)))
        ]

    @property
    def lost(self) -> list[CaptureRecord]:
        """The captures that ended with their process, and are not recorded as lost yet."""
        ended = (one for one in self.records if one.state is State.TRACING)
        return [failed(one, "the process ended meanwhile") for one in ended if not is_at_work(one)]


def sweep_folders(folders: Iterable[Path], root: Path) -> None:
    """Remove what writers that were killed left in these folders, and beside the captures below
    `root`. It touches the disk."""
    for folder in (*folders, *sessions_below(root)):
        sweep(folder)


def _as_left(record: CaptureRecord) -> CaptureRecord:
    was_left = record.state is State.TRACING and not is_at_work(record)
    if was_left and record.folder is not None and has_files(Path(record.folder)):
        # It may have ended while JAX wrote them: they are read, and the window is taken again.
        return noted(moved(record, State.SETTLING), planned_for=())
    return record


def is_at_work(record: CaptureRecord) -> bool:
    """Whether another process of this machine works on it."""
    owner = record.owner
    if owner is None or record.is_over or owner == Owner.this_process():
        return False
    return owner.is_alive()


def has_files(folder: Path) -> bool:
    """Whether a capture lies there."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return False
    return any(name.endswith(host_suffixes()) for name in names)
