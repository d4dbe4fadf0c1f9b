"""A capture's compiled programs, and what each of their ops owns: what an HLO diff is made of.

Contract: programs are those of the first host that holds any; times are sums over all hosts and
devices, integer picoseconds, of the same steps as the summary's. A capture without HLO protos gives
no programs, one of JSON alone as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    capture: Capture, options: SummarizeOptions | None = None
) -> tuple[ProfileSummary, CapturedPrograms]:
    """Raises what `summarize_capture` raises."""
    reading = _Reading()
    summary = summarize_capture(capture, options, read=reading)
    ops = merge_op_totals(op for found in reading.each_file() for op in found.part.ops)
    rows = (
        ProgramOp(op.module, op.program_id, op.facts.hlo_op or op.facts.name, op.owned, op.exposed)
        for op in ops
    )
    return summary, CapturedPrograms(_programs(capture), tuple(rows))


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
