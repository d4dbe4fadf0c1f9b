"""How much memory XLA planned for each program, and what lies there when it is fullest.

Contract
* One ProgramMemory for each program and memory space in which its plan holds anything. What is
  alive at the peak sums to it exactly, in bytes.
* The peak is that of the planner's own trace, with a buffer alive from ALLOC or SHARE_WITH to the
  last FREE of all that share it, and of equal maxima the first; with all parameters, outputs and
  constants that hold anything. XProf's memory viewer counts so. Thread-local memory is left out.
* This is what XLA planned, not what an allocator gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marin_profile.analysis.planes import GPU, TPU
from marin_profile.base.columns import Int64s
from marin_profile.events.buffers import FREE, NOTHING, SHARE_WITH, BufferPlan
from marin_profile.events.scopes import BACKWARD, OPTIMIZER, OTHER, is_update, parse_scope
from marin_profile.events.shapes import arrays_in, tuple_parts
from marin_profile.events.timeline import HloInstruction, Timeline

PARAMETER: Final = "parameter"
OUTPUT: Final = "output"
CONSTANT: Final = "constant"
TEMPORARY: Final = "temporary"
KINDS: Final = (PARAMETER, OUTPUT, CONSTANT, TEMPORARY)
MOST_PROGRAMS = 32
MOST_SCOPES = 20
MOST_BUFFERS = 20
MOST_ARGUMENTS = 5

# xla's memory spaces of each kind of device.
_SPACES: Final[Mapping[str, Mapping[int, str]]] = {
    TPU: {0: "hbm", 1: "vmem", 2: "smem", 5: "host"},
    GPU: {0: "hbm", 1: "collective", 5: "host"},
}


@dataclass(frozen=True)
class LiveBuffer:
    """One that is alive at the peak. instruction: the one that defines it ("" if unknown);
    argument: what the program calls this parameter; scope: where the instruction stands, without
    its own name, () if the file does not say; padding: what its shape does not need, None where
    that is not known."""

    kind: str
    instruction: str
    shape: str
    argument: str
    scope: tuple[str, ...]
    pass_name: str
    size: int
    padding: int | None


@dataclass(frozen=True)
class ScopeMemory:
    """What is alive at the peak of one scope and pass; scope: as in LiveBuffer, None for the
    rest."""

    scope: tuple[str, ...] | None
    pass_name: str
    size: int
    count: int


@dataclass(frozen=True)
class ProgramMemory:
    """See the module docstring. instruction: where the peak is, "" where what stays makes all of
    it. kinds: bytes of each of KINDS; scopes: the MOST_SCOPES largest, then the rest; buffers: the
    MOST_BUFFERS largest of `count`; padding: the sum of what is known, None where none is.
    is_whole: the plan could be read to its end. donated: bytes of parameters that are outputs too,
    so updated in place; donatable: of parameters that are not, though an output has their shape and
    size; donatable_arguments: the largest of these."""

    program_id: int
    module: str
    space: str
    peak: int
    instruction: str
    scope: tuple[str, ...]
    pass_name: str
    kinds: tuple[int, int, int, int]
    scopes: tuple[ScopeMemory, ...]
    buffers: tuple[LiveBuffer, ...]
    count: int
    padding: int | None
    is_whole: bool
    donated: int = 0
    donatable: int = 0
    donatable_arguments: tuple[str, ...] = ()


def program_memory(timeline: Timeline, device_kind: str) -> tuple[ProgramMemory, ...]:
    """The MOST_PROGRAMS fullest, those first; names of spaces are those of `device_kind`."""
    rows = []
    for program_id, plan in timeline.hlo_memory.items():
        module = _Module(timeline.hlo.get(program_id, {}))
        spaces = {*plan.buffers.space.tolist(), *plan.allocations.space.tolist()}
        for space in sorted(spaces):
            peak, at, live = peak_of(plan, space)
            if not peak:
                continue
            instruction = plan.names[at] if at != NOTHING else ""
            scope, pass_name = module.scope_of(instruction)
            buffers = sorted(
                (module.live(plan, *one) for one in live),
                key=lambda one: (-one.size, one.kind, one.instruction, one.shape),
            )
            donated, donatable, arguments = _donation(plan, space, module)
            paddings = [one.padding for one in buffers if one.padding is not None]
            rows.append(
                ProgramMemory(
                    program_id=program_id,
                    module=timeline.hlo_modules.get(program_id, ""),
                    space=_space_name(space, device_kind),
                    peak=peak,
                    instruction=instruction,
                    scope=scope,
                    pass_name=pass_name,
                    kinds=_by_kind(buffers),
                    scopes=_by_scope(buffers),
                    buffers=tuple(buffers[:MOST_BUFFERS]),
                    count=len(buffers),
                    padding=sum(paddings) if paddings else None,
                    is_whole=plan.is_whole,
                    donated=donated,
                    donatable=donatable,
                    donatable_arguments=arguments,
                )
            )
    rows.sort(key=lambda row: (-row.peak, row.module, row.program_id, row.space))
    return tuple(rows[:MOST_PROGRAMS])


def _donation(plan: BufferPlan, space: int, module: _Module) -> tuple[int, int, tuple[str, ...]]:
    """Bytes of parameters whose memory an output has; of those whose memory none has although an
    output is of the same shape and size; and how the largest of these are called."""
    allocations = plan.allocations
    lasting = allocations.is_lasting & ~allocations.is_thread_local & (allocations.space == space)
    donated = 0
    parameters: list[LiveBuffer] = []
    outputs: Counter[tuple[str, int]] = Counter()
    for row, largest in _largest_buffers(plan, lasting):
        size = int(allocations.size[row])
        is_parameter, is_output = allocations.is_parameter[row], allocations.is_output[row]
        if is_parameter and is_output:
            donated += size
        elif is_parameter:
            parameters.append(module.live(plan, PARAMETER, size, largest))
        elif is_output:
            outputs[module.live(plan, OUTPUT, size, largest).shape, size] += 1
    parameters.sort(key=lambda one: (-one.size, one.argument, one.instruction))
    donatable: list[LiveBuffer] = []
    for one in parameters:
        if one.shape and outputs[one.shape, one.size] > 0:
            outputs[one.shape, one.size] -= 1
            donatable.append(one)
    names = tuple(one.argument or one.instruction for one in donatable[:MOST_ARGUMENTS])
    return donated, sum(one.size for one in donatable), names


def _by_kind(buffers: list[LiveBuffer]) -> tuple[int, int, int, int]:
    sizes: Counter[str] = Counter()
    for one in buffers:
        sizes[one.kind] += one.size
    return sizes[PARAMETER], sizes[OUTPUT], sizes[CONSTANT], sizes[TEMPORARY]


def _by_scope(buffers: list[LiveBuffer]) -> tuple[ScopeMemory, ...]:
    groups: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for one in buffers:
        groups.setdefault((one.scope, one.pass_name), []).append(one.size)
    rows = [ScopeMemory(*key, sum(sizes), len(sizes)) for key, sizes in groups.items()]
    rows.sort(key=lambda row: (-row.size, row.scope or (), row.pass_name))
    rest = rows[MOST_SCOPES:]
    if rest:
        size, count = sum(row.size for row in rest), sum(row.count for row in rest)
        rows[MOST_SCOPES:] = [ScopeMemory(None, OTHER, size, count)]
    return tuple(rows)


def _space_name(space: int, device_kind: str) -> str:
    if device_kind not in _SPACES and space == 0:
        return "host"
    return _SPACES.get(device_kind, {}).get(space) or f"space {space}"


def peak_of(plan: BufferPlan, space: int) -> tuple[int, int, list[tuple[str, int, int]]]:
    """The bytes at the peak in this space, the instruction there (see `HeapEvents`; NOTHING without
    a trace), and what is alive: (kind, bytes, its buffer)."""
    at, alive = _replayed(plan, space)
    live = [(TEMPORARY, int(plan.buffers.size[row]), row) for row in np.flatnonzero(alive).tolist()]
    allocations = plan.allocations
    lasting = allocations.is_lasting & ~allocations.is_thread_local & (allocations.space == space)
    for row, largest in _largest_buffers(plan, lasting):
        kind = (
            PARAMETER
            if allocations.is_parameter[row]
            else OUTPUT
            if allocations.is_output[row]
            else CONSTANT
        )
        live.append((kind, int(allocations.size[row]), largest))
    instruction = int(plan.events.instruction[at]) if at != NOTHING else NOTHING
    live = [one for one in live if one[1]]
    return sum(size for _, size, _ in live), instruction, live


def _largest_buffers(plan: BufferPlan, wanted: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Of each wanted allocation the largest buffer in it, the first of equal ones; none of those
    whose buffers hold nothing."""
    holder, held = plan.allocations.holder, plan.allocations.held
    known = held != NOTHING
    holder, held = holder[known], held[known]
    chosen = wanted[holder] & (plan.buffers.size[held] > 0)
    holder, held = holder[chosen], held[chosen]
    order = np.lexsort((np.arange(len(held)), -plan.buffers.size[held], holder))
    first, index = np.unique(holder[order], return_index=True)
    return list(zip(first.tolist(), held[order][index].tolist(), strict=True))


def _trace_of(plan: BufferPlan, space: int) -> int:
    """The trace that planned this space: of its first allocation that has one and does not last,
    else the one with most events of its buffers; NOTHING if there is none."""
    allocations, events, buffers = plan.allocations, plan.events, plan.buffers
    holder_of = np.full(len(buffers.size), NOTHING, np.int64)
    known = allocations.held != NOTHING
    holder_of[allocations.held[known]] = allocations.holder[known]
    trace_of: dict[int, int] = {}
    most, best = 0, NOTHING
    for trace in range(len(events.first) - 1):
        named = events.buffer[events.first[trace] : events.first[trace + 1]]
        if len(named) and named[0] != NOTHING and holder_of[named[0]] != NOTHING:
            trace_of[int(holder_of[named[0]])] = trace
        count = int((buffers.space[named[named != NOTHING]] == space).sum())
        if count > most:
            most, best = count, trace
    stays = allocations.is_lasting | allocations.is_thread_local
    for allocation in sorted(trace_of):
        if allocations.space[allocation] == space and not stays[allocation]:
            return trace_of[allocation]
    return best


def _replayed(plan: BufferPlan, space: int) -> tuple[int, NDArray[np.bool_]]:
    """The event where the peak of the space's trace is (NOTHING without one), and which buffers are
    alive then."""
    trace = _trace_of(plan, space)
    events, size = plan.events, plan.buffers.size
    if trace == NOTHING:
        return NOTHING, np.zeros(len(size), np.bool_)
    first, end = events.first[trace : trace + 2].tolist()
    kind, buffer, shares = (
        column[first:end] for column in (events.kind, events.buffer, events.shares)
    )
    at, _ = _replay(kind, buffer, shares, size)
    _, users = _replay(kind[: at + 1], buffer[: at + 1], shares[: at + 1], size)
    return first + at if at != NOTHING else NOTHING, users > 0


def _replay(kind: Int64s, buffer: Int64s, shares: Int64s, size: Int64s) -> tuple[int, Int64s]:
    """(event of the first maximum, users of the memory of each buffer at the end). A buffer that
    shares another one's memory uses that one; a share after the last FREE makes it alive again."""
    sizes = size.tolist()
    owner = [*range(len(sizes))]
    users = [0] * len(sizes)
    now = peak = 0
    at = NOTHING

    def root_of(one: int) -> int:
        while owner[one] != one:
            owner[one] = one = owner[owner[one]]
        return one

    events = zip(kind.tolist(), buffer.tolist(), shares.tolist(), strict=True)
    for event, (what, own, shared) in enumerate(events):
        if own < 0:
            continue
        if what == SHARE_WITH:
            if shared < 0:
                continue
            owner[own] = root_of(shared)
        root = root_of(own)
        if what == FREE:
            if users[root] > 0:
                users[root] -= 1
                if users[root] == 0:
                    now -= sizes[root]
        else:
            users[root] += 1
            if users[root] == 1:
                now += sizes[root]
                if now > peak:
                    peak, at = now, event
    return at, np.array(users, np.int64)


class _Module:
    """What the program's instructions say of buffers."""

    def __init__(self, instructions: Mapping[str, HloInstruction]) -> None:
        self.instructions = instructions
        passes = (parse_scope(one.op_name) for one in instructions.values() if one.op_name)
        self.is_trained = any(parsed and parsed[1] == BACKWARD for parsed in passes)

    def scope_of(self, name: str) -> tuple[tuple[str, ...], str]:
        """Without the op's own name. An instruction that says nothing is where the root of what it
        applies is: a fusion, or an asynchronous one."""
        instruction = self.instructions.get(name)
        roots = (
            [self.instructions.get(one.root) for one in instruction.called] if instruction else []
        )
        paths = (parse_scope(one.op_name) for one in (instruction, *roots[:1]) if one)
        parsed = next(filter(None, paths), None)
        if parsed is None:
            return (), OTHER
        segments, pass_name = parsed
        if self.is_trained and is_update(segments, pass_name):
            pass_name = OPTIMIZER
        return segments[:-1] or segments, pass_name

    def live(self, plan: BufferPlan, kind: str, size: int, buffer: int) -> LiveBuffer:
        place = int(plan.buffers.instruction[buffer])
        name = plan.names[place] if place != NOTHING else ""
        instruction = self.instructions.get(name)
        shape = "" if instruction is None else _part(instruction.shape, plan.buffers.index[buffer])
        if plan.buffers.too_deep[buffer]:
            shape = ""
        scope, pass_name = self.scope_of(name)
        return LiveBuffer(
            kind=kind,
            instruction=name,
            shape=shape,
            argument=instruction.op_name
            if instruction and instruction.opcode == "parameter" and not scope
            else "",
            scope=scope,
            pass_name=pass_name,
            size=size,
            padding=_padding(shape, int(plan.buffers.size[buffer])),
        )


def _part(shape: str, index: Int64s) -> str:
    """The shape at a place in a tuple, "" if there is none."""
    for at in index.tolist():
        if at == NOTHING:
            break
        parts = tuple_parts(shape)
        if not 0 <= at < len(parts):
            return ""
        shape = parts[at].strip()
    return shape


def _padding(shape: str, size: int) -> int | None:
    if shape.startswith("("):
        return None
    arrays = arrays_in(shape)
    needed = arrays[0].bytes if len(arrays) == 1 else None
    return None if needed is None or needed > size else size - needed
