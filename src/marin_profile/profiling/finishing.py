"""Captures that no training goes on with: found, summarised and published by one command.

Contract
* `left_below` finds every record below a folder, however deep; of one run, the process that merges
  comes last. `finish` works in this process, on one record, and says what became of it.
* What a living process works on, and what is done, is left alone. A capture that was lost with its
  process is recorded as lost.
* The folder may have been moved: then paths inside the run's folder are followed, others are used
  only where they still exist.
* Nothing is logged to the run itself, which has ended: the summary goes to W&B as an artifact, in a
  short run of its own, unless W&B holds all of it. Where that cannot be, or another tracker lacks
  it, the record says `shared`, and the line why.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from marin_profile.base.durable import sweep
from marin_profile.base.errors import NotFoundError, ProfileError
from marin_profile.base.owner import Owner
from marin_profile.base.storage import is_url
from marin_profile.capture.filenames import (
    PROFILE_FOLDERS,
    RECORD_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
)
from marin_profile.profiling.job import Gather, Job
from marin_profile.profiling.leftovers import Leftovers, has_files, is_at_work
from marin_profile.profiling.record import (
    CaptureRecord,
    Logged,
    State,
    failed,
    moved,
    noted,
    read_record,
    write_record,
)
from marin_profile.profiling.run import PROFILER_FOLDER
from marin_profile.profiling.sentences import lacking_text, logged_text
from marin_profile.profiling.staging import STAGING_FOLDER
from marin_profile.profiling.worker import ingest


@dataclass(frozen=True)
class Found:
    """`records`: in the order to go on with them; `unrecorded`: captures taken by other means."""

    records: tuple[CaptureRecord, ...]
    unrecorded: tuple[Path, ...]


@dataclass(frozen=True)
class Finished:
    """`is_done`: nothing is left to do for this capture; `line`: what became of it."""

    record: CaptureRecord
    is_done: bool
    line: str


def left_below(folder: Path) -> Found:
    """Raises NotFoundError if there is no such folder."""
    if not folder.is_dir():
        raise NotFoundError(f"{folder} is not a folder; name a capture, a run or a folder above.")
    records, unrecorded = [], []
    for path in _captures_below(folder.resolve()):
        record = read_record(path)
        if record is None:
            unrecorded.append(path)
        elif not _is_copy(record):
            records.append(record)
    records.sort(key=_merges)
    return Found(tuple(records), tuple(unrecorded))


def _captures_below(folder: Path) -> Iterator[Path]:
    for name, folders, files in os.walk(folder):
        folders.sort()
        path = Path(name)
        if RECORD_FILE in files or (path.parts[-3:-1] == PROFILE_FOLDERS and has_files(path)):
            yield path


def _is_copy(record: CaptureRecord) -> bool:
    """Whether it lies beside the copy that was made for the other processes."""
    shared = record.job.shared if record.job is not None else None
    return shared is not None and os.path.realpath(shared) == record.folder


def _merges(record: CaptureRecord) -> bool:
    return record.job is not None and record.job.gather is not None


def finish(record: CaptureRecord) -> Finished | None:
    """None if it was done, or lost, already. What goes wrong with the capture is not raised."""
    sweep(Path(record.folder or ""))
    if record.is_over and (record.state is State.PUBLISHED or not record.is_taken):
        return None
    if is_at_work(record):
        assert record.owner is not None
        return _told(record, False, f"left alone: process {record.owner.pid} works on it")
    left = Leftovers.from_records([record])
    to_finish = left.to_finish(Owner.this_process(), most_attempts=None)
    try:
        for lost in left.lost:
            record = lost
            write_record(record)
        if not to_finish:
            why = "its files are gone" if record.is_taken else record.why or "it was never taken"
            return _told(record, True, f"profile lost: {why}")
        return _finished(to_finish[0])
    except ProfileError as error:  # the record cannot be written
        return _told(record, False, f"not finished: {error}")


def _finished(record: CaptureRecord) -> Finished:
    folder = Path(record.folder or "")
    job = relocated(record.job, folder) if record.job is not None else plain_job(record)
    record = noted(record, job=job)
    write_record(record)
    try:
        # Staged outputs are for the tracker of a training.
        shutil.rmtree(folder / STAGING_FOLDER, ignore_errors=True)
        problems = ingest(replace(job, publish=None))
    except Exception as error:
        record = failed(record, _reason(error))
        write_record(record)
        return _told(record, False, f"profile not summarised: {record.why}")
    record = moved(record, State.SHARED, problems=tuple(problems))
    write_record(record)
    return _published(record, job)


def _published(record: CaptureRecord, job: Job) -> Finished:
    line = "; but ".join(("summary and report written", *record.problems))
    if job.publish is None:
        record = moved(record, State.PUBLISHED)
        write_record(record)
        return _told(record, True, line)
    if not record.logged or any(_is_wandb(row) for row in _lacking(record)):
        try:
            logged = _publish(job)
        except Exception as error:
            return _told(record, False, f"{line}, but not logged: {_reason(error)}")
        others = tuple(row for row in record.logged if not _is_wandb(row))
        record = noted(record, logged=(logged, *others))
        line += f", logged to {logged_text((logged,))}"
        write_record(record)
    if lacking := lacking_text(record.logged):
        text = (
            f"{line}, but not logged by an earlier start: {lacking}; the run's next start logs it"
        )
        return _told(record, False, text)
    record = moved(record, State.PUBLISHED)
    write_record(record)
    return _told(record, True, line)


def _lacking(record: CaptureRecord) -> list[Logged]:
    return [row for row in record.logged if row.error is not None]


def _is_wandb(row: Logged) -> bool:
    return row.tracker == "wandb"


def _publish(job: Job) -> Logged:
    """Raises what stands in the way, within the time limits of `publish`."""
    from marin_profile.wandb.publish import publish
    from marin_profile.wandb.session import be_quiet

    assert job.publish is not None
    if not job.run.get("run_path"):
        raise NotFoundError("the run's path on W&B is not known; the run's next start logs it.")
    be_quiet()
    outcome = publish(
        str(job.output_dir / SUMMARY_FILE),
        str(job.output_dir / REPORT_FILE),
        redact=job.publish.redact,
    )
    if outcome["status"] == "offline":
        note = f"offline: {outcome['sync_with']} uploads it"
    else:
        note = "without the capture"
    return Logged("wandb", (outcome.get("artifact_ref") or outcome["artifact_name"],), note)


def _told(record: CaptureRecord, is_done: bool, text: str) -> Finished:
    line = " ".join(f"{record.folder}: {record.steps_text}: {text}".split())
    return Finished(record, is_done, line.rstrip("."))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ProfileError) else f"{type(error).__name__}: {error}"


# --- where the folder is now ---------------------------------------------------------------------


def plain_job(record: CaptureRecord) -> Job:
    """For a capture that was not to be summarised: into its folder and, of a run of one process,
    into the run's."""
    folder = Path(record.folder or "")
    run, is_one_of_several = _run_folder(folder), _is_of_several(folder)
    return Job(
        capture_dir=folder,
        output_dir=folder,
        copy_dir=None if is_one_of_several else run,
        run={"run_id": record.run_id},
        leave_part=is_one_of_several,
    )


def relocated(job: Job, folder: Path) -> Job:
    """The job with the paths that hold now that the capture is in `folder`. Everybody's capture is
    there, so that nobody is waited for; the commit of this process's folder is not the run's."""
    return replace(
        job,
        capture_dir=folder,
        output_dir=folder,
        copy_dir=_moved(job.copy_dir, job.capture_dir, folder),
        copy_url=_moved_text(job.copy_url, job.capture_dir, folder),
        run={name: value for name, value in job.run.items() if value is not None},
        shared=_moved_text(job.shared, job.capture_dir, folder),
        gather=_moved_gather(job.gather, job.capture_dir, folder),
    )


def _moved(path: Path | None, before: Path, now: Path) -> Path | None:
    if path is None or before == now:
        return path
    run_before, run_now = _run_folder(before), _run_folder(now)
    if run_before is not None and path.is_relative_to(run_before):
        return run_now / path.relative_to(run_before) if run_now is not None else None
    return path if path.is_dir() else None


def _moved_text(path: str | None, before: Path, now: Path) -> str | None:
    if path is None or is_url(path):
        return path
    found = _moved(Path(path), before, now)
    return str(found) if found is not None else None


def _moved_gather(gather: Gather | None, before: Path, now: Path) -> Gather | None:
    if gather is None:
        return None
    root, session = (_moved_text(path, before, now) for path in (gather.root, gather.session))
    if root is None or session is None:
        return None
    return replace(gather, root=root, session=session, seconds=0.0)


def _run_folder(capture: Path) -> Path | None:
    """`<run>/profiler/[process_<n>/]plugins/profile/<timestamp>` -> `<run>`."""
    if capture.parts[-3:-1] != PROFILE_FOLDERS:
        return None
    own = capture.parents[2]
    profiler = own.parent if _is_of_several(capture) else own
    return profiler.parent if profiler.name == PROFILER_FOLDER else None


def _is_of_several(capture: Path) -> bool:
    return len(capture.parts) > 3 and capture.parts[-4].startswith("process_")
