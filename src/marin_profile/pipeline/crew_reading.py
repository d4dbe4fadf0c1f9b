"""The hosts of a capture read by a crew: each where its file lies, and only its part comes back.

Contract
* The parts are those that reading one host after the other gives, in the order of the hosts.
* A host under which its process died each time fails, like one whose file is broken.
* A part depends on the content and names of its host's files, on the options that tell how to read
  them and, where hosts differ in their steps, on those that all have: all of it is in the key under
  which a store keeps it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

from marin_profile.base.crew import Crew, Lost
from marin_profile.base.errors import BrokenInputError
from marin_profile.base.jit import expect, load_compiler
from marin_profile.base.resumable import Made, Nowhere, Progress, Store, Work, each_result
from marin_profile.base.storage import content_of as content_of_file
from marin_profile.base.storage import is_url, plain
from marin_profile.capture.trace_files import HostFile
from marin_profile.pipeline.host_parts import HostRead, decode_host, encode_host
from marin_profile.pipeline.summarizing import HostTask, read_host
from marin_profile.version import package_version


@dataclass(frozen=True)
class CrewReading:
    """Reads hosts for `summarize_capture`."""

    crew: Crew
    store: Store = field(default_factory=Nowhere)
    on_progress: Callable[[Progress], None] = lambda progress: None

    def __call__(self, tasks: Sequence[HostTask]) -> Iterator[HostRead | BrokenInputError]:
        everywhere = [replace(task, file=_from_root(task.file)) for task in tasks]
        expect(sum(task.file.size for task in tasks))  # what is merged here is as large as that
        work = Work(make_part, content_of, key_of, _decoded)
        found = each_result(
            work, everywhere, self.crew, self.store, self.on_progress, load_compiler
        )
        for task, one in zip(tasks, found, strict=True):
            yield one if isinstance(one, HostRead) else _failure(task.file, one)


def make_part(task: HostTask) -> Made | BrokenInputError:
    """In any process, on any machine that sees the file."""
    try:
        before = _content(task.file, {}) if is_url(task.file.path) else ""
        found = read_host(task.file, task.options, task.only_steps, keep_copies=task.keep_copies)
        part = encode_host(
            found, tool_version=package_version(), warmup_steps=task.options.warmup_steps
        )
        return Made(part, before or _content(task.file, {found.file.name: found.file.sha256}))
    except BrokenInputError as error:
        return error


def content_of(task: HostTask) -> str | BrokenInputError:
    """The contents of all files that the task's part may be made of."""
    try:
        return _content(task.file, {})
    except BrokenInputError as error:
        return error


def _content(file: HostFile, known: dict[str, str]) -> str:
    """`known`: digests of files, by name."""
    files = (file, *file.fallbacks)
    return " ".join(known.get(one.name) or content_of_file(one.path) for one in files)


def key_of(task: HostTask) -> str:
    files = [
        [asdict(replace(one, path="", fallbacks=())), one.name]
        for one in (task.file, *task.file.fallbacks)
    ]
    options = [task.options.warmup_steps, task.options.breakdown_mode]
    steps = None if task.only_steps is None else asdict(task.only_steps)
    return json.dumps(["host", files, options, steps], sort_keys=True)


def _decoded(task: HostTask, part: bytes) -> HostRead:
    return decode_host(part, tool_version=package_version(), warmup_steps=task.options.warmup_steps)


def _failure(file: HostFile, why: Exception | Lost) -> BrokenInputError:
    """With the paths that the host's files were named by."""
    if isinstance(why, Lost):
        return BrokenInputError(
            f"{file.path} could not be read: its process died {why.tries} times, as it does where "
            "memory runs out; read it with fewer --jobs, or on a larger machine."
        )
    text = str(why)
    whole = _from_root(file)
    for given, named in zip((whole, *whole.fallbacks), (file, *file.fallbacks), strict=True):
        text = text.replace(given.path, named.path)
    return BrokenInputError(text)


def _from_root(file: HostFile) -> HostFile:
    """Local paths from the root on: other processes may stand in other folders."""
    path = plain(file.path)
    path = path if is_url(path) else os.path.abspath(path)
    return replace(file, path=path, fallbacks=tuple(map(_from_root, file.fallbacks)))
