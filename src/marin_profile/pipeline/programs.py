"""A capture's compiled programs, and what each of their ops owns: what an HLO diff is made of.

Contract: programs are those of the first host that holds any; times are sums over all hosts and
devices, integer picoseconds, of the same steps as the summary's. Programs that no op ran in
are left out; a capture without HLO protos has none, and neither has one of JSON alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from marin_profile.analysis.ops import merge_op_totals
from marin_profile.base.errors import BrokenInputError
from marin_profile.base.storage import open_local
from marin_profile.capture.formats import XPLANE
from marin_profile.capture.sources import Capture
from marin_profile.capture.trace_files import HostFile
from marin_profile.events.hlo_program import HloProgram
from marin_profile.pipeline.host_parts import HostRead
from marin_profile.pipeline.summarizing import (
    HostTask,
    SummarizeOptions,
    read_in_turn,
    summarize_capture,
)
from marin_profile.readers.hlo_programs import read_programs
from marin_profile.schema import ProfileSummary


@dataclass(frozen=True, slots=True)
class ProgramOp:
    """An op by its program and instruction. owned: inside the step account; exposed: in the whole
    capture; see `OpTotals`."""

    program: str
    program_id: int | None
    name: str
    owned: int
    exposed: int


@dataclass(frozen=True)
class CapturedPrograms:
    programs: tuple[HloProgram, ...]
    ops: tuple[ProgramOp, ...]


def summarize_with_programs(
    capture: Capture, options: SummarizeOptions | None = None, *, keep_copies: bool = False
) -> tuple[ProfileSummary, CapturedPrograms]:
    """Raises what `summarize_capture` raises."""
    reading = _Reading()
    summary = summarize_capture(capture, options, read=reading, keep_copies=keep_copies)
    ops = merge_op_totals(op for found in reading.each_file() for op in found.part.ops)
    rows = tuple(
        ProgramOp(op.module, op.program_id, op.facts.hlo_op or op.facts.name, op.owned, op.exposed)
        for op in ops
    )
    ran = {row.program for row in rows}
    programs = (program for program in _programs(capture) if program.name in ran)
    return summary, CapturedPrograms(tuple(programs), rows)


def encode_programs(captured: CapturedPrograms) -> bytes:
    return msgspec.msgpack.encode(captured)


def decode_programs(data: bytes) -> CapturedPrograms:
    """Raises ValueError where the bytes are no such thing."""
    try:
        return msgspec.msgpack.decode(data, type=CapturedPrograms)
    except msgspec.DecodeError as error:
        raise ValueError(f"no programs of this version: {error}") from error


class _Reading:
    """Reads hosts for `summarize_capture`, and keeps what was read last of each: where hosts differ
    in their steps, what covers those that all have."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostRead] = {}

    def __call__(self, tasks: Sequence[HostTask]) -> Iterator[HostRead | BrokenInputError]:
        for task, found in zip(tasks, read_in_turn(tasks), strict=True):
            if isinstance(found, HostRead):
                self._hosts[task.file.path] = found
            yield found

    def each_file(self) -> Iterable[HostRead]:
        """Files of the same bytes count once."""
        first: dict[str, HostRead] = {}
        for found in self._hosts.values():
            first.setdefault(found.file.sha256, found)
        return first.values()


def _programs(capture: Capture) -> tuple[HloProgram, ...]:
    for file in _xplanes(capture.hosts):
        try:
            with open_local(file.path) as stream:
                found = read_programs(stream, path=file.path)
        except BrokenInputError:
            continue
        if found:
            return tuple(found)
    return ()


def _xplanes(hosts: Sequence[HostFile]) -> Iterator[HostFile]:
    for host in hosts:
        yield from (file for file in (host, *host.fallbacks) if file.format == XPLANE)
