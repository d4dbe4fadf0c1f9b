"""A capture's files -> ProfileSummary: reads the hosts, then merges them in their order.

Contract: one Timeline is in memory at a time, unless a crew reads the hosts (`crew_reading`). A
file that cannot be read gives way to its sibling, and the summary says so; files with the same
bytes count once. Same input, same summary, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from marin_profile.analysis.breakdown_v1 import BASIS_NAMES
from marin_profile.analysis.host import HostPart, analyse_host
from marin_profile.analysis.steps.merge import shared_steps
from marin_profile.analysis.steps.series import SharedSteps
from marin_profile.assemble import DEVICE_LEDGER, CaptureFacts, SourceFile, assemble
from marin_profile.base.errors import BrokenInputError, CannotAnswerError, UsageError
from marin_profile.base.jit import expect
from marin_profile.base.progress import doing
from marin_profile.base.times import utc_text
from marin_profile.capture.context import read_contexts
from marin_profile.capture.sources import resolve_path
from marin_profile.capture.trace_files import UNNAMED_HOST
from marin_profile.events.timeline import Timeline
from marin_profile.pipeline.host_parts import HostRead
from marin_profile.pipeline.reading import (
    disagrees,
    missing,
    no_file_in,
    read_host_file,
    twin_of,
)
from marin_profile.pipeline.shared_facts import SharedFacts
from marin_profile.schema import ProfileSummary
from marin_profile.version import package_version

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture, HostFile

# Hosts are replayed together, which takes as long for each as reading so many bytes.
AS_BYTES = 1 << 17
BREAKDOWN_MODES = (DEVICE_LEDGER, *BASIS_NAMES)
_ANY_MACHINE = frozenset({"localhost", "localhost.localdomain", UNNAMED_HOST})


@dataclass(frozen=True, slots=True)
class SummarizeOptions:
    """warmup_steps: how many steps of the window to leave out. stamp: let generated_at_utc be the
    clock's time instead of the capture's."""

    warmup_steps: int = 1
    hot_op_limit: int = 25
    breakdown_mode: str = DEVICE_LEDGER
    stamp: bool = False

    def __post_init__(self) -> None:
        if self.warmup_steps < 0:
            raise UsageError(f"--warmup-steps must be 0 or more, not {self.warmup_steps}.")
        if self.hot_op_limit < 1:
            raise UsageError(f"--hot-op-limit must be 1 or more, not {self.hot_op_limit}.")
        if self.breakdown_mode not in BREAKDOWN_MODES:
            raise UsageError(
                f"--breakdown-mode {self.breakdown_mode!r} is unknown; choose one of "
                f"{', '.join(BREAKDOWN_MODES)}."
            )


@dataclass(frozen=True)
class HostTask:
    """A host to read; `only_steps` are the steps that the other hosts have too; `keep_copies`:
    whether copies of remote files are kept in the user's cache."""

    file: HostFile
    options: SummarizeOptions
    only_steps: SharedSteps | None = None
    keep_copies: bool = False


# What each task gives, in their order: the host, or why it cannot be read.
ReadHosts = Callable[[Sequence[HostTask]], Iterable[HostRead | BrokenInputError]]


def summarize(
    path: str | Path, options: SummarizeOptions | None = None, *, hosts: Sequence[str] = ()
) -> ProfileSummary:
    """Summarise the newest capture at or below a folder, or one file; a path or an fsspec URL.

    Raises NotFoundError, BrokenInputError or CannotAnswerError.
    """
    capture, _ = resolve_path(str(path), hosts=hosts)
    return summarize_capture(capture, options)


def summarize_capture(
    capture: Capture,
    options: SummarizeOptions | None = None,
    *,
    known: Mapping[str, HostRead] = MappingProxyType({}),
    read: ReadHosts | None = None,
    keep_copies: bool = False,
) -> ProfileSummary:
    """Summarise all hosts of a capture; those whose file is in `known` (path -> part, made with the
    same options) are not read again. `read` reads the others; by default one after the other, here.
    `keep_copies`: whether copies of remote files are kept in the user's cache.

    Raises BrokenInputError if no file can be read, CannotAnswerError if no device did any work,
    RemoteError if a store is gone.
    """
    options = options or SummarizeOptions()
    hosts = _Hosts(options, read or read_in_turn, keep_copies)
    hosts.read(capture.hosts, known)
    hosts.align_steps()
    if not hosts.parts:
        raise hosts.first_error or no_file_in(capture)
    _require_device_work(capture, hosts.parts)
    with_work = [part for part in hosts.parts if part.devices]
    idle_hosts = [
        f"Host {part.host} shows no device work ({_why_idle(part)}) and is left out."
        for part in hosts.parts
        if not part.devices
    ]
    summary = assemble(
        with_work,
        CaptureFacts(
            source_path=capture.source_path,
            files=tuple(hosts.files),
            notes=(*hosts.notes, *idle_hosts),
            tool_version=package_version(),
            jax_version=hosts.jax_version,
            contexts=tuple(read_contexts(capture.contexts)),
        ),
        hot_op_limit=options.hot_op_limit,
        breakdown_mode=options.breakdown_mode,
    )
    if options.stamp:
        now = utc_text(datetime.now(UTC))
        summary = summary.model_copy(update={"generated_at_utc": now})
    return summary


class _Hosts:
    """The hosts of a capture, in their order."""

    def __init__(self, options: SummarizeOptions, read: ReadHosts, keep_copies: bool) -> None:
        self._options = options
        self._read = read
        self._keep_copies = keep_copies
        self._shared = SharedFacts()
        self._sources: list[HostFile] = []
        self.parts: list[HostPart] = []
        self.files: list[SourceFile] = []
        self.notes: list[str] = []
        self.jax_version = ""
        self.first_error: BrokenInputError | None = None

    def read(self, host_files: Sequence[HostFile], known: Mapping[str, HostRead]) -> None:
        """What cannot be read, or was read already, becomes a note."""
        if len(host_files) > 1:
            expect(len(host_files) * AS_BYTES)
        new = [file for file in host_files if file.path not in known]
        found = iter(self._read([self._task(file) for file in new]))
        for host_file in host_files:
            own = known.get(host_file.path)
            self._add(host_file, next(found) if own is None else own)

    def _task(self, file: HostFile, only_steps: SharedSteps | None = None) -> HostTask:
        return HostTask(file, self._options, only_steps, self._keep_copies)

    def _add(self, host_file: HostFile, found: HostRead | BrokenInputError) -> None:
        if isinstance(found, BrokenInputError):
            self.first_error = self.first_error or found
            self.notes.append(missing(host_file, found))
            return
        file = replace(found.file, host=host_file.host)
        if (twin := twin_of(file, self.files)) is not None:
            self.notes.append(twin)
            return
        self.files.append(file)
        self._sources.append(host_file)
        self.jax_version = self.jax_version or found.jax_version
        self.parts.append(_placed(self._shared.in_part(found.part), host_file))

    def align_steps(self) -> None:
        """Windows and per-step figures must cover the same steps on every host: where hosts differ,
        read them again for the steps that all have."""
        selections = {
            index: selection
            for index, selection in enumerate(shared_steps(self.parts))
            if selection is not None
        }
        tasks = [
            self._task(self._sources[index], selection) for index, selection in selections.items()
        ]
        for (index, selection), found in zip(selections.items(), self._read(tasks), strict=True):
            if isinstance(found, BrokenInputError):
                raise found
            own, shared = self.parts[index].steps.count, len(selection.positions)
            if shared < own:
                self.notes.append(
                    f"Host {self.files[index].host} has {own} steps; the {shared} that all hosts "
                    "have are used."
                )
            part = self._shared.in_part(found.part)
            self.parts[index] = _placed(part, self._sources[index])


def _placed(part: HostPart, host_file: HostFile) -> HostPart:
    """The part under its file's name, on the machine that the file's name and its inside tell. A
    name that many machines have tells none."""
    machine = host_file.machine or host_file.host
    if machine.rpartition("/")[2].lower() in _ANY_MACHINE:
        machine = host_file.host
    elif part.hostname and disagrees(machine, part.hostname):
        machine = f"{part.hostname} ({machine})"
    return replace(part, host=host_file.host, machine=machine)


def read_host(
    host_file: HostFile,
    options: SummarizeOptions,
    only_steps: SharedSteps | None = None,
    *,
    keep_copies: bool = False,
) -> HostRead:
    """Read and analyse one host by itself. Raises BrokenInputError, and RemoteError if a store is
    gone."""
    timeline, file = read_host_file(host_file, keep_copies=keep_copies)
    part = _analyse(timeline, host_file.host, options, only_steps)
    return HostRead(file, part, _jax_version(timeline))


def read_in_turn(tasks: Sequence[HostTask]) -> Iterator[HostRead | BrokenInputError]:
    for task in tasks:
        try:
            found = read_host(
                task.file, task.options, task.only_steps, keep_copies=task.keep_copies
            )
        except BrokenInputError as error:
            yield error
        else:
            yield found


def _analyse(
    timeline: Timeline,
    host: str,
    options: SummarizeOptions,
    only_steps: SharedSteps | None = None,
) -> HostPart:
    doing(f"analysing {host}")
    mode = options.breakdown_mode
    return analyse_host(
        timeline,
        host,
        warmup_steps=options.warmup_steps,
        breakdown_v1_mode=None if mode == DEVICE_LEDGER else mode,
        only_steps=only_steps,
    )


def _jax_version(timeline: Timeline) -> str:
    return next(
        (
            str(plane.stats["jax_version"])
            for plane in timeline.planes
            if "jax_version" in plane.stats
        ),
        "",
    )


def _why_idle(part: HostPart) -> str:
    return "its file is truncated" if part.truncated else "a host-only profile"


def _require_device_work(capture: Capture, parts: Sequence[HostPart]) -> None:
    if any(part.devices for part in parts):
        return
    damaged = next((part for part in parts if part.truncated or part.notes), None)
    if damaged is not None:
        what = "cut" if damaged.truncated else "damaged"
        raise BrokenInputError(
            f"{capture.source_path} is {what}, and what is left of it shows no device "
            f"work: {' '.join(damaged.notes)} Copy or capture it again."
        )
    if any(part.ends_early for part in parts):
        raise BrokenInputError(
            f"{capture.source_path} shows no device work, and none of the planes that the profiler "
            "writes last (the host, the Task Environment): it may be cut; copy or capture it again."
        )
    events = sum(part.num_events for part in parts)
    raise CannotAnswerError(
        f"{capture.source_path} is a host-only profile: none of its {events:,} events is device "
        "work, so there is nothing to say about steps, ops or communication; capture while the "
        "device executes, for fewer seconds, and check that the device tracer started."
    )
