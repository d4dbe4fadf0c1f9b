"""One capture from its plan to the tracker: its states, and the only way from one to the next.

    planned -> tracing -> settling -> ingesting -> shared -> published
       any but the last -> failed (at which state, and why)
       settling, ingesting, shared, or failed there -> ingesting, by another start or by `finish`

Contract
* `moved`, `failed` and `retried` make the record of the next state, and refuse what is not above;
  nothing else changes a state.
* A record lies beside its capture (`capture_record.json`) from `tracing` on, written whole or not
  at all. With its job in it, any process can finish what the one that took the capture left.
* A record that is damaged or of another version says nothing and is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.base.owner import Owner
from marin_profile.base.storage import write_file
from marin_profile.capture.filenames import PROFILE_FOLDERS, RECORD_FILE
from marin_profile.profiling.job import Job
from marin_profile.profiling.schedule import steps_text

RECORD_VERSION = "capture_record.v1"
PLANNED_TRIGGER, ON_DEMAND, SLOW_STEP = "planned", "on_demand", "slow_step"


class State(StrEnum):
    """What is going on with a capture."""

    PLANNED = "planned"
    """Its first step is still ahead."""
    TRACING = "tracing"
    """JAX's profiler runs."""
    SETTLING = "settling"
    """Its files are written; the steps after it, which it is judged by, are awaited."""
    INGESTING = "ingesting"
    """It is summarised, or waits for its turn."""
    SHARED = "shared"
    """Summary and report are written, where other processes see them too; the tracker is next."""
    PUBLISHED = "published"
    """Done: the tracker confirmed what `logged` names, or there is none."""
    FAILED = "failed"
    """Given up, for the reason that `why` gives."""


_ORDER = (
    State.PLANNED,
    State.TRACING,
    State.SETTLING,
    State.INGESTING,
    State.SHARED,
    State.PUBLISHED,
)
_AFTER = dict(pairwise(_ORDER))
OVER = frozenset({State.PUBLISHED, State.FAILED})


class ImpossibleTransition(ValueError):
    """A capture cannot go from its state to that one."""


class Logged(msgspec.Struct, frozen=True):
    """What one tracker confirmed: its name, the artifacts by name, the number of figures, and how
    (`note`); `error`: why it does not hold the rest."""

    tracker: str
    artifacts: tuple[str, ...] = ()
    note: str = ""
    figures: int = 0
    error: str | None = None

    @property
    def holds_any(self) -> bool:
        return bool(self.artifacts or self.figures)

    @property
    def holds_all(self) -> bool:
        return self.holds_any and self.error is None


class CaptureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One capture of one process: steps `start_step` to `stop_step - 1`.

    `planned_for`: first steps of the planned windows that it stands for; `folder`: where its files
    are, from `tracing` on; `compiled`: how long JAX compiled in it, and when; `problems`: what did
    not go well but did not end it; `attempts`: how often its present state was begun; `logged`: a
    row of each tracker that holds some of it, or lacks the rest, while one does.
    """

    run_id: str
    process_index: int = 0
    trigger: str = PLANNED_TRIGGER
    start_step: int
    stop_step: int
    planned_for: tuple[int, ...] = ()
    folder: str | None = None
    state: State = State.PLANNED
    failed_at: State | None = None
    why: str | None = None
    attempts: int = 1
    compiled: str | None = None
    problems: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()
    owner: Owner | None = None
    job: Job | None = None
    schema_version: str = RECORD_VERSION

    @property
    def steps(self) -> range:
        return range(self.start_step, self.stop_step)

    @property
    def steps_text(self) -> str:
        return steps_text(self.steps)

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_taken(self) -> bool:
        """Whether the capture's files are there."""
        at = self.failed_at if self.state is State.FAILED else self.state
        return at is not None and _ORDER.index(at) >= _ORDER.index(State.SETTLING)


def moved(record: CaptureRecord, to: State, **facts: Any) -> CaptureRecord:
    """The record in its next state, with what became known. Raises ImpossibleTransition."""
    if _AFTER.get(record.state) is not to:
        raise ImpossibleTransition(f"from {record.state} to {to}")
    return msgspec.structs.replace(record, state=to, attempts=1, **facts)


def failed(record: CaptureRecord, why: str, **facts: Any) -> CaptureRecord:
    """The record of a capture that is given up, with what became known. Raises ImpossibleTransition
    if it is over."""
    if record.is_over:
        raise ImpossibleTransition(f"from {record.state} to {State.FAILED}")
    return msgspec.structs.replace(
        record, state=State.FAILED, failed_at=record.state, why=why, **facts
    )


def retried(record: CaptureRecord, owner: Owner) -> CaptureRecord:
    """The record in the hands of `owner`, to be summarised, wherever it was left: the steps after
    it are gone with the process that knew them, and what was staged for the tracker may be. What
    trackers hold already stays known. Raises ImpossibleTransition where there are no files to go on
    with, or nothing is left to do."""
    if not record.is_taken or record.state is State.PUBLISHED:
        raise ImpossibleTransition(f"{record.state} cannot be taken up")
    return msgspec.structs.replace(
        record,
        state=State.INGESTING,
        failed_at=None,
        why=None,
        owner=owner,
        problems=(),
        attempts=record.attempts + 1,
    )


def noted(record: CaptureRecord, **facts: Any) -> CaptureRecord:
    """The record with what became known of it, in the same state."""
    if {"state", "failed_at", "why"} & set(facts):
        raise ImpossibleTransition("a state changes by a transition alone")
    return msgspec.structs.replace(record, **facts)


# --- on disk -------------------------------------------------------------------------------------


def write_record(record: CaptureRecord) -> None:
    """Write it beside its capture. Raises UsageError where that folder cannot be written."""
    assert record.folder is not None
    data = msgspec.json.format(msgspec.json.encode(record, enc_hook=str, order="sorted"), indent=1)
    write_file(f"{record.folder}/{RECORD_FILE}", data + b"\n")


def read_record(folder: Path) -> CaptureRecord | None:
    try:
        found = record_in((folder / RECORD_FILE).read_bytes())
    except OSError:
        return None
    if found is None:
        return None
    return msgspec.structs.replace(found, folder=str(folder))  # it may have been moved


def record_in(data: bytes) -> CaptureRecord | None:
    try:
        found = msgspec.json.decode(data, type=CaptureRecord, dec_hook=_decoded)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found if found.schema_version == RECORD_VERSION else None


def _decoded(kind: Any, value: Any) -> Any:
    """Paths, as text."""
    return kind(value)


def sessions_below(root: Path) -> list[Path]:
    """The folders of the captures of one process, oldest first."""
    try:
        return sorted(root.joinpath(*PROFILE_FOLDERS).iterdir())
    except OSError:
        return []


def records_below(root: Path) -> Iterator[CaptureRecord]:
    """The records of the captures of one process, oldest first."""
    for folder in sessions_below(root):
        record = read_record(folder)
        if record is not None:
            yield record
