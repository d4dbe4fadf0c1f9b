"""The rows of a fleet, made by a crew: each capture is summarised where it lies, and only its row
comes back.

Contract: rows are in the order of the captures. A capture that cannot be summarised, or under which
its process died each time, is a row that says why. A row is kept by the content of the capture's
files: what was read before is not read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from marin_profile.base.crew import Crew, Lost
from marin_profile.base.errors import InternalError, ProfileError
from marin_profile.base.resumable import Made, Progress, Store, Work, each_result
from marin_profile.base.storage import content_of as content_of_file
from marin_profile.base.storage import is_url
from marin_profile.capture.sources import Capture
from marin_profile.capture.trace_files import HostFile
from marin_profile.fleet.captures import Named
from marin_profile.fleet.row import FleetRow, decode, encode, failed_row, row_of


@dataclass(frozen=True)
class CaptureTask:
    name: str
    capture: Capture
    warmup_steps: int


def rows_of(
    captures: Sequence[Named],
    crew: Crew,
    store: Store,
    *,
    warmup_steps: int,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> list[FleetRow]:
    tasks = [
        CaptureTask(one.name, _from_root(one.capture), warmup_steps)
        for one in captures
        if one.capture is not None
    ]
    work = Work(make_row, content_of, key_of, _decoded)
    results = each_result(work, tasks, crew, store, on_progress)
    return [
        failed_row(one.name, one.problem) if one.capture is None else _row(one, next(results))
        for one in captures
    ]


def make_row(task: CaptureTask) -> Made | ProfileError:
    """In any process, on any machine that sees the files."""
    from marin_profile.pipeline import SummarizeOptions, summarize_capture

    try:
        before = _content(task.capture) if is_url(task.capture.root) else ""
        summary = summarize_capture(task.capture, SummarizeOptions(warmup_steps=task.warmup_steps))
        return Made(encode(row_of(task.name, summary)), before or _content(task.capture))
    except ProfileError as error:
        return _plain(error)


def content_of(task: CaptureTask) -> str | ProfileError:
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


def key_of(task: CaptureTask) -> str:
    capture = task.capture
    files = [
        [asdict(replace(file, path="", fallbacks=())), file.name]
        for host in capture.hosts
        for file in (host, *host.fallbacks)
    ]
    known = [capture.source_path, capture.stamp, capture.skipped, len(capture.contexts)]
    return json.dumps(["capture", known, files, task.warmup_steps], sort_keys=True)


def _decoded(task: CaptureTask, row: bytes) -> FleetRow:
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
