"""The rows of a fleet, made by a crew: each capture is summarised where it lies, and only its row
comes back.

Contract: rows are in the order of the captures. A capture that cannot be summarised, or under which
its process died each time, is a row that says why. A row is kept by the content of the capture's
files, that of a run by the version of its artifact: what was read before is neither read nor
downloaded again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from marin_profile.base.crew import Crew, Lost
from marin_profile.base.errors import InternalError, NotFoundError, ProfileError
from marin_profile.base.resumable import Made, Progress, Store, Work, each_result
from marin_profile.base.storage import content_of as content_of_file
from marin_profile.base.storage import is_url
from marin_profile.capture.sources import Capture, resolve
from marin_profile.capture.trace_files import HostFile
from marin_profile.fleet.captures import Named
from marin_profile.fleet.row import FleetRow, decode, encode, failed_row, row_of

if TYPE_CHECKING:
    from marin_profile.wandb.listing import ListedRun


@dataclass(frozen=True)
class CaptureTask:
    name: str
    capture: Capture
    warmup_steps: int


@dataclass(frozen=True)
class RunTask:
    name: str
    run: ListedRun
    warmup_steps: int
    trust_references: bool


Task = CaptureTask | RunTask


def rows_of(
    captures: Sequence[Named],
    crew: Crew,
    store: Store,
    *,
    warmup_steps: int,
    trust_references: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> list[FleetRow]:
    """`trust_references`: as in `wandb.download`."""
    possible = [_task(one, warmup_steps, trust_references) for one in captures]
    tasks = [task for task in possible if task is not None]
    work = Work(make_row, content_of, key_of, _decoded)
    results = each_result(work, tasks, crew, store, on_progress)
    return [
        failed_row(one.name, one.problem) if task is None else _row(one, next(results))
        for one, task in zip(captures, possible, strict=True)
    ]


def _task(one: Named, warmup_steps: int, trust_references: bool) -> Task | None:
    if one.run is not None:
        return RunTask(one.name, one.run, warmup_steps, trust_references)
    if one.capture is not None:
        return CaptureTask(one.name, _from_root(one.capture), warmup_steps)
    return None


def make_row(task: Task) -> Made | ProfileError:
    """In any process, on any machine that sees the files."""
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    try:
        if isinstance(task, RunTask):
            return _made_of_run(task)
        before = _content(task.capture) if is_url(task.capture.root) else ""
        summary = summarize_capture(task.capture, SummarizeOptions(warmup_steps=task.warmup_steps))
        return Made(encode(row_of(task.name, summary)), before or _content(task.capture))
    except ProfileError as error:
        return _plain(error)


def _made_of_run(task: RunTask) -> Made:
    from marin_profile.pipeline import SummarizeOptions, summarize_capture
    from marin_profile.wandb.download import with_metadata
    from marin_profile.wandb.listing import fetch_listed

    fetched = fetch_listed(task.run, trust_references=task.trust_references)
    summary = fetched.summary
    if summary is None:
        capture, _ = resolve(profile_dir=fetched.folder)
        summary = summarize_capture(capture, SummarizeOptions(warmup_steps=task.warmup_steps))
    row = row_of(task.name, with_metadata(summary, fetched.metadata))
    return Made(encode(row), _version(task.run))


def _version(run: ListedRun) -> str:
    return f"{run.source} {run.digest}"


def content_of(task: Task) -> str | ProfileError:
    if isinstance(task, RunTask):
        no_artifact = NotFoundError(f"{task.run.path} has no artifact to know again.")
        return _version(task.run) if task.run.source else no_artifact
    try:
        return _content(task.capture)
    except ProfileError as error:
        return _plain(error)


def _plain(error: ProfileError) -> ProfileError:
    """What goes from process to process: some errors are made of more than their message."""
    return ProfileError(str(error)) if isinstance(error, InternalError) else error


def _content(capture: Capture) -> str:
    paths = [file.path for host in capture.hosts for file in (host, *host.fallbacks)]
    return " ".join(map(content_of_file, [*paths, *capture.contexts]))


def key_of(task: Task) -> str:
    if isinstance(task, RunTask):
        known = [task.run.path, task.run.metadata.model_dump(), task.trust_references]
        return json.dumps(["run", known, task.warmup_steps], sort_keys=True)
    capture = task.capture
    files = [
        [asdict(replace(file, path="", fallbacks=())), file.name]
        for host in capture.hosts
        for file in (host, *host.fallbacks)
    ]
    known = [capture.source_path, capture.stamp, capture.skipped, len(capture.contexts)]
    return json.dumps(["capture", known, files, task.warmup_steps], sort_keys=True)


def _decoded(task: Task, row: bytes) -> FleetRow:
    import msgspec

    return msgspec.structs.replace(decode(row), name=task.name)


def _row(named: Named, result: FleetRow | ProfileError | Lost) -> FleetRow:
    if isinstance(result, FleetRow):
        return result
    if isinstance(result, Lost):
        why = f"Its process died {result.tries} times, as it does where memory runs out."
        return failed_row(named.name, why)
    return failed_row(named.name, str(result))


def _from_root(capture: Capture) -> Capture:
    """Local paths from the root on: other processes may stand in other folders."""
    return replace(
        capture,
        root=_absolute(capture.root),
        hosts=tuple(map(_file_from_root, capture.hosts)),
        contexts=tuple(map(_absolute, capture.contexts)),
    )


def _file_from_root(file: HostFile) -> HostFile:
    fallbacks = tuple(map(_file_from_root, file.fallbacks))
    return replace(file, path=_absolute(file.path), fallbacks=fallbacks)


def _absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(path)
