"""What happens beside training, in one thread: records, triggers, summaries, the tracker.

Contract
* Training hands over facts and never waits: no disk, no network, no process is touched by its
  thread, but for `finish`, which it calls when its work is done.
* One round after another, a few times a second, or at once after a change. A round that fails is
  one log line, and the next one goes on.
* A capture is handed to ingestion once enough steps after it are known to judge it by, or when
  training has ended. While another one is being taken it waits, for at most one whole window.
* Whether the disk has room for another capture is found out here; training reads a word of it.
* What is watched is watched until training ends; then, once, what the watching left is closed.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from marin_profile.base.errors import ProfileError
from marin_profile.base.storage import write_file
from marin_profile.capture.filenames import DEVICE_MEMORY_FILE
from marin_profile.profiling.config import ProfilerConfig
from marin_profile.profiling.disk import Disk
from marin_profile.profiling.ingestion import Ingestions, Limits, Outcome
from marin_profile.profiling.job import Job, job_of, newest_outputs
from marin_profile.profiling.leftovers import sweep_folders
from marin_profile.profiling.notes import FEWEST_QUIET_STEPS, CaptureNotes, StepTimes
from marin_profile.profiling.publishing import Publishing, Tracker
from marin_profile.profiling.record import CaptureRecord, State, noted, write_record
from marin_profile.profiling.records import Records
from marin_profile.profiling.run import Run
from marin_profile.profiling.sentences import lacking_text, unfinished_line
from marin_profile.profiling.trace import device_memory_profile

logger = logging.getLogger(__name__)

ROUND_EVERY = 0.25  # seconds
_DOING = (State.TRACING, State.SETTLING, State.INGESTING, State.SHARED)
CAPTURES_KEPT = 20  # captures whose context gets the steps after them when training ends
MOST_SAID = 100  # different warnings


@dataclass
class Beside:
    """What training tells, by plain assignment, and what it may read the same way."""

    last_step: int = -1
    is_tracing: bool = False
    has_ended: bool = False
    is_ingesting: bool = False
    num_ingestions: int = 0  # begun so far
    why_not: str | None = None  # the limit that stands against another capture


class Keeper:
    """`facts()` gives what the run knows of itself, by the names of RunMetadata."""

    def __init__(
        self,
        config: ProfilerConfig,
        run: Run,
        times: StepTimes,
        tracker: Tracker | None,
        facts: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.beside = Beside()
        # Without ingestion nothing follows once a capture is settled.
        self.records = Records(self._changed, () if config.ingest else (State.SETTLING,))
        self.watches: list[Callable[[], None]] = []  # called in every round until training ends
        self.closing: list[Callable[[], None]] = []  # called once, after the last of those
        self._config = config
        self._run = run
        self._times = times
        self._facts = facts
        self._changes: queue.SimpleQueue[tuple[int, CaptureRecord]] = queue.SimpleQueue()
        self._notes: dict[int, CaptureNotes] = {}
        self._ingestions = Ingestions(
            config.ingest_in, Limits(config.ingest_time_limit, config.ingest_memory_gb)
        )
        self._numbers: dict[Path, int] = {}  # of the jobs that are being ingested, by folder
        self._disk = Disk(
            run.own_dir,
            config.keep_captures,
            config.min_free_disk_gb,
            config.max_capture_gb,
            config.ingest,
        )
        self._publishing = Publishing(tracker, run.run_id, config.ingest_timeout)
        self._wake = threading.Event()
        self._round_done = threading.Condition()
        self._stopping = False
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="marin-profile", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take_up(self, record: CaptureRecord) -> None:
        """Go on with what an earlier start left: as it was captured, of that start's code and
        configuration, by this one's settings."""
        self.records.add(noted(record, job=self._job(record) if record.job else None))

    # --- called by training ----------------------------------------------------------------------

    def took(self, number: int, notes: CaptureNotes) -> None:
        """The notes of a capture whose files are written."""
        self._notes[number] = notes
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    def hurry(self) -> None:
        """Training has ended: nothing is waited for, and no work rests."""
        self.beside.has_ended = True
        self._ingestions.hurry()
        self._wake.set()

    def finish(self, seconds: float) -> None:
        """Wait until every capture is done, at most so long; say what is left. With 0 seconds
        nothing more is begun."""
        if seconds > 0:
            self.hurry()
            self.wait(seconds)
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(max(1.0, 4 * ROUND_EVERY))
        self._ingestions.stop()
        for record in self._unfinished():
            level, text = unfinished_line(record)
            logger.log(level, "%s", text)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to do; whether that is so."""
        deadline = time.monotonic() + seconds
        with self._round_done:
            while self._thread.is_alive() and (self._unfinished() or not self._changes.empty()):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._wake.set()
                self._round_done.wait(min(left, ROUND_EVERY))
        return not self._unfinished()

    def _unfinished(self) -> list[CaptureRecord]:
        doing = _DOING if self._config.ingest else _DOING[:1]
        return [self.records[number] for number in self.records.in_state(*doing)]

    # --- the thread ------------------------------------------------------------------------------

    def _changed(self, number: int, record: CaptureRecord) -> None:
        self._changes.put((number, record))
        self._wake.set()

    def _work(self) -> None:
        outputs = newest_outputs(self._config, self._run)
        self._try(lambda: sweep_folders({self._run.folder, outputs}, self._run.own_dir))
        while not self._stopping:
            self._wake.wait(ROUND_EVERY)
            self._wake.clear()
            for step in (self._ingest, self._log, self._write, self._look, *self._watching()):
                self._try(step)
            with self._round_done:
                self._round_done.notify_all()
        self.beside.has_ended = True
        for step in (self._write_last, *self._watching()):
            self._try(step)

    def _watching(self) -> list[Callable[[], None]]:
        """The watches, or what closes them; not again after that."""
        if not self.beside.has_ended:
            return self.watches
        closing, self.closing = self.closing, []
        return closing

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._once(f"profiling: {type(error).__name__}: {error}")

    def _write(self) -> None:
        """The newest record of each capture that changed."""
        newest: dict[int, CaptureRecord] = {}
        while not self._changes.empty():
            number, record = self._changes.get()
            newest[number] = record
        for number, record in newest.items():
            if record.state is State.TRACING and record.job is None:
                self.records.note(number, job=self._job(record))
                continue
            if record.folder is None:
                continue
            try:
                write_record(record)
            except ProfileError as error:
                if record.is_taken:  # else there is nothing to keep a record of
                    self._once(f"no record is kept: {error}")
        done = State.PUBLISHED if self._config.ingest else State.SETTLING
        if any(record.state is done for record in newest.values()):
            self._disk.make_room()
        if any(record.state in (State.SETTLING, State.PUBLISHED) for record in newest.values()):
            self.beside.why_not = self._disk.why_not(anew=True)

    def _look(self) -> None:
        self.beside.why_not = self._disk.why_not()

    def _write_last(self) -> None:
        for notes in list(self._notes.values())[-CAPTURES_KEPT:]:
            self._write_context(notes)
        self._write()

    def _ingest(self) -> None:
        for number in self.records.in_state(State.SETTLING):
            self._settle(number)
        for number in self.records.in_state(State.INGESTING):
            job = self.records[number].job
            if job is None:
                job = self.records.note(number, job=self._job(self.records[number])).job
            if job is not None and job.capture_dir not in self._numbers:
                self._numbers[job.capture_dir] = number
                self._ingestions.add(job)
        for outcome in self._ingestions.advance():
            self._ended(outcome)
        self.beside.num_ingestions = self._ingestions.num_started
        self.beside.is_ingesting = self._ingestions.running
        self._forget_notes()

    def _forget_notes(self) -> None:
        """Those that nobody needs any more, but the newest."""
        settling = self.records.in_state(State.SETTLING) if self._config.ingest else ()
        for number in list(self._notes)[:-CAPTURES_KEPT]:
            if number not in settling:
                del self._notes[number]

    def _settle(self, number: int) -> None:
        notes = self._notes.get(number)
        record = self.records[number]
        if notes is None:
            return
        if not notes.is_written:
            self._write_context(notes)
            self._write_memory(notes)
        if not self._config.ingest:
            return
        if record.job is None:
            record = self.records.note(number, job=self._job(record))
        if self._is_settled(record):
            notes.settle(self._times)
            self._write_context(notes)
            self.records.move(number, State.INGESTING)

    def _is_settled(self, record: CaptureRecord) -> bool:
        beside = self.beside
        if beside.has_ended or self._config.ingest_in == "inline":
            return True
        after = beside.last_step - record.stop_step + 1
        if beside.is_tracing:
            return after >= max(len(record.steps), FEWEST_QUIET_STEPS)
        return after >= FEWEST_QUIET_STEPS

    def _ended(self, outcome: Outcome) -> None:
        number = self._numbers.pop(outcome.job.capture_dir)
        if outcome.reason is not None:
            self.records.fail(number, outcome.reason)
            return
        problems = (*self.records[number].problems, *outcome.problems)
        self.records.move(number, State.SHARED, problems=problems)

    def _log(self) -> None:
        for number in self.records.in_state(State.SHARED):
            record = self.records[number]
            if record.job is None or record.job.publish is None:
                self.records.move(number, State.PUBLISHED)
            else:
                self._publishing.start(number, record.job.output_dir, record.logged)
        for number, logged, why in self._publishing.ended():
            if why is not None:
                self.records.fail(number, why)
            elif (lacking := lacking_text(logged)) is not None:
                self.records.fail(number, lacking, logged=logged)
            else:
                self.records.move(number, State.PUBLISHED, logged=logged)

    def _job(self, record: CaptureRecord) -> Job | None:
        if not self._config.ingest:
            return None
        assert record.folder is not None
        facts = record.job.run if record.job is not None else self._facts()
        job = job_of(self._config, self._run, Path(record.folder), facts)
        return job if self._publishing.tracker is not None else replace(job, publish=None)

    def _write_context(self, notes: CaptureNotes) -> None:
        try:
            notes.write(self._times)
        except ProfileError as error:
            self._once(f"no context written next to the profile: {error}")

    def _write_memory(self, notes: CaptureNotes) -> None:
        """JAX's device memory profile (pprof), as it is soon after the capture's end."""
        if not self._config.device_memory:
            return
        try:
            write_file(str(notes.folder / DEVICE_MEMORY_FILE), device_memory_profile())
        except Exception as error:  # not every backend has one
            self._once(f"no device memory profile written: {type(error).__name__}: {error}")

    def _once(self, text: str) -> None:
        if text not in self._said and len(self._said) < MOST_SAID:
            self._said.add(text)
            logger.warning("%s", text)
