"""Which events are device work, device by device, with the facts of each op.

Contract
* Device op lines only: TPU "XLA Ops" lanes (async lines beside them), GPU "Stream #..." lines, on
  CPU the host events that carry an HLO op, grouped by device ordinal (threads are a pool).
* `DeviceOps` columns are sorted by (start, longest first, container first, name): the order of
  events in the file does not matter.
* Lengths are on the device clock where the file has one; `event_start` keeps the event clock, on
  which an op belongs to an execution, a step or a marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from marin_profile.classify import (
    OpClass,
    canonical_name,
    classify_op,
    is_sync_entry,
    kind_group,
    shape_signature,
)
from marin_profile.columns import is_sorted, sum_by, unique_pairs
from marin_profile.intervals import self_pieces
from marin_profile.scopes import OPTIMIZER, OTHER, is_update, parse_scope
from marin_profile.timeline import HloInstruction, Int64s, Line, Op, Plane, Timeline

TPU, SPARSECORE, GPU, CPU = "tpu", "sparsecore", "gpu", "cpu"
OPS_LINE, ASYNC_LINE, MODULES_LINE, STEPS_LINE = (
    "XLA Ops",
    "Async XLA Ops",
    "XLA Modules",
    "Steps",
)
# Device lines whose events describe ops or executions a second time, or no work at all.
DERIVED_LINES = frozenset(
    {MODULES_LINE, STEPS_LINE, "Framework Ops", "Framework Name Scope", "Source code"}
    | {"XLA TraceMe", "Overlay", "_counters_", "TensorFlow Ops", "TensorFlow Name Scope"}
)

_DEVICE_PLANE = re.compile(r"^/device:(TPU|GPU):(\d+)(?:\s+(SparseCore\s*\d*))?\s*$", re.IGNORECASE)
_CPU_PLANE = re.compile(r"^/host:CPU\b|^/device:CPU\b")
_MODULE_ID = re.compile(r"^(.*?)\((-?\d+)\)$")


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What is known of one op of the op table. `program_id` and `module` identify its program."""

    name: str
    canonical: str
    hlo_op: str
    module: str
    program_id: int | None
    op_class: OpClass
    group: int
    hlo_category: str
    shape: str
    scope: tuple[str, ...]
    pass_name: str
    source: str
    flops: int | None
    bytes_accessed: int | None
    operands: tuple[str, ...]
    replica_group_size: int | None
    has_hlo: bool

    @property
    def kind(self) -> str:
        return self.op_class.kind

    @property
    def scope_path(self) -> str:
        return "/".join(self.scope)


@dataclass(frozen=True)
class DeviceOps:
    """One device's op executions as sorted columns (see the module docstring).

    rows: events of the Timeline. lane: the line they stand on. execution: index into `executions`
    or -1. piece_*: self intervals; `piece_owner` indexes the op columns.
    """

    name: str
    host: str
    kind: str
    plane_stats: Mapping[str, int | float | str]
    rows: Int64s
    op: Int64s
    lane: Int64s
    start: Int64s
    end: Int64s
    event_start: Int64s
    event_end: Int64s
    self_time: Int64s
    piece_start: Int64s
    piece_end: Int64s
    piece_owner: Int64s
    overlapping: int
    execution: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    executions: Executions | None = None
    steps_line: Int64s | None = None
    async_rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def identity(self) -> str:
        return f"{self.host}{self.name}" if self.host else self.name

    @property
    def window(self) -> tuple[int, int]:
        """From the first op's start to the last op's end, device clock."""
        return int(self.start.min()), int(self.end.max())


@dataclass(frozen=True)
class Executions:
    """Module executions of one device on the event clock; `key` indexes `modules`.

    run_id is MISSING-like 0 with has_run_id False where the file does not tell.
    """

    modules: tuple[tuple[str, int | None], ...]
    key: Int64s
    start: Int64s
    end: Int64s
    run_id: Int64s
    has_run_id: NDArray[np.bool_]


@dataclass(frozen=True)
class HostDevices:
    """All devices of one host's Timeline."""

    timeline: Timeline
    host: str
    facts: tuple[OpFacts, ...]
    devices: tuple[DeviceOps, ...]
    empty_devices: tuple[str, ...]
    lines_not_analysed: tuple[str, ...]
    sync_entries: int


def find_devices(timeline: Timeline, host: str) -> HostDevices:
    facts = _op_facts(timeline)
    devices: list[DeviceOps] = []
    empty: list[str] = []
    ignored: set[str] = set()
    sync = 0
    kinds = [plane_kind(plane) for plane in timeline.planes]
    # Beside an accelerator the host's events with an HLO op are launches, not work.
    has_accelerator = any(kind not in ("", CPU) for kind in kinds)
    for index, (plane, kind) in enumerate(zip(timeline.planes, kinds, strict=True)):
        lines = [line for line in timeline.lines if line.plane == index]
        if kind == CPU and has_accelerator:
            continue
        if kind == CPU:
            devices += _cpu_devices(timeline, host, facts, lines)
        elif kind:
            rows, skipped = _device_rows(timeline, facts, kind, lines)
            sync += skipped
            if len(rows):
                devices.append(_device(timeline, host, facts, plane, kind, rows, lines))
            else:
                empty.append(plane.name)
            ignored.update(_unknown_lines(plane, kind, lines))
        elif plane.name.startswith("/device:"):
            ignored.update(f"{plane.name}: {line.name}" for line in lines if line.count)
    facts = _with_update_pass(facts, devices)
    return HostDevices(
        timeline=timeline,
        host=host,
        facts=facts,
        devices=tuple(devices),
        empty_devices=tuple(empty),
        lines_not_analysed=tuple(sorted(ignored)),
        sync_entries=sync,
    )


def plane_kind(plane: Plane) -> str:
    """TPU, SPARSECORE, GPU or CPU; "" for planes that are no device (custom ones included)."""
    if _CPU_PLANE.match(plane.name):
        return CPU
    match = _DEVICE_PLANE.match(plane.name)
    if not match:
        return ""
    if match.group(3):
        return SPARSECORE
    return TPU if match.group(1).upper() == "TPU" else GPU


def _is_op_line(kind: str, line: Line) -> bool:
    if kind == GPU:
        return line.name.startswith("Stream")
    return line.name.startswith(OPS_LINE)


def _unknown_lines(plane: Plane, kind: str, lines: Iterable[Line]) -> list[str]:
    return [
        f"{plane.name}: {line.name} ({line.count} events)"
        for line in lines
        if not _is_op_line(kind, line)
        and not line.name.startswith(ASYNC_LINE)
        and line.name not in DERIVED_LINES
    ]


def _device_rows(
    timeline: Timeline, facts: tuple[OpFacts, ...], kind: str, lines: Iterable[Line]
) -> tuple[Int64s, int]:
    """Op events of a device plane, and how many driver sync entries were left out."""
    rows = [timeline.rows_of(line) for line in lines if _is_op_line(kind, line)]
    joined = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    if kind != GPU or not len(joined):
        return joined, 0
    is_sync = np.array([is_sync_entry(fact.name) for fact in facts], np.bool_)
    keep = ~is_sync[timeline.op[joined]]
    return joined[keep], int((~keep).sum())


def _cpu_devices(
    timeline: Timeline, host: str, facts: tuple[OpFacts, ...], lines: Iterable[Line]
) -> list[DeviceOps]:
    has_hlo_op = np.array([bool(op.hlo_op) for op in timeline.ops], np.bool_)
    rows = np.concatenate([timeline.rows_of(line) for line in lines] or [np.zeros(0, np.int64)])
    rows = rows[has_hlo_op[timeline.op[rows]]] if len(rows) else rows
    found, ordinal = timeline.device_ordinal.find(rows)
    ordinal = np.where(found, ordinal, 0)
    return [
        _device(
            timeline, host, facts, Plane(f"/device:CPU:{number}", int(number)), CPU,
            rows[ordinal == number], (),
        )
        for number in np.unique(ordinal).tolist()
    ]  # fmt: skip


def _device(
    timeline: Timeline,
    host: str,
    facts: tuple[OpFacts, ...],
    plane: Plane,
    kind: str,
    rows: Int64s,
    lines: Iterable[Line],
) -> DeviceOps:
    start, duration = timeline.device_times(rows)
    op = timeline.op[rows].astype(np.int64)
    is_container = np.array([fact.op_class.is_container for fact in facts], np.bool_)
    order = _nesting_order(start, duration, op, is_container, facts)
    rows, start, duration, op = rows[order], start[order], duration[order], op[order]
    lane = np.zeros(len(rows), np.int64) if kind == CPU else timeline.line[rows].astype(np.int64)
    can_contain = is_container[op] if kind == CPU else np.ones(len(op), np.bool_)
    pieces = _lane_pieces(start, start + duration, lane, can_contain)
    self_time = sum_by(pieces[2], pieces[1] - pieces[0], len(rows))
    async_rows = [timeline.rows_of(line) for line in lines if line.name.startswith(ASYNC_LINE)]
    executions, execution = _executions(timeline, kind, rows, op, facts, lines)
    steps = [timeline.rows_of(line) for line in lines if line.name == STEPS_LINE and line.count]
    return DeviceOps(
        name=plane.name,
        host=host,
        kind=kind,
        plane_stats=plane.stats,
        rows=rows,
        op=op,
        lane=lane,
        start=start,
        end=start + duration,
        event_start=timeline.start[rows],
        event_end=timeline.start[rows] + timeline.duration[rows],
        self_time=self_time,
        piece_start=pieces[0],
        piece_end=pieces[1],
        piece_owner=pieces[2],
        overlapping=pieces[3],
        execution=execution,
        executions=executions,
        steps_line=steps[0] if steps else None,
        async_rows=np.concatenate(async_rows) if async_rows else np.zeros(0, np.int64),
    )


def _nesting_order(
    start: Int64s,
    duration: Int64s,
    op: Int64s,
    is_container: NDArray[np.bool_],
    facts: tuple[OpFacts, ...],
) -> Int64s:
    """Sort by (start, longest first, container first, name, op); ties alone pay for the full key."""
    if is_sorted(start):
        order = np.arange(len(start))
    else:
        order = np.argsort(start, kind="stable")
    sorted_start = start[order]
    tied = np.zeros(len(order), np.bool_)
    if len(order) > 1:
        same = sorted_start[1:] == sorted_start[:-1]
        tied[1:] |= same
        tied[:-1] |= same
    where = np.flatnonzero(tied)
    if len(where):
        names = sorted(range(len(facts)), key=lambda i: (facts[i].name, i))
        rank = np.empty(len(facts), np.int64)
        rank[names] = np.arange(len(names))
        subset = order[where]
        keys = (rank[op[subset]], ~is_container[op[subset]], -duration[subset], start[subset])
        order[where] = subset[np.lexsort(keys)]
    return order


def _lane_pieces(
    start: Int64s, end: Int64s, lane: Int64s, can_contain: NDArray[np.bool_]
) -> tuple[Int64s, Int64s, Int64s, int]:
    lanes = np.unique(lane)
    if len(lanes) == 1:
        piece_start, piece_end, owner, overlaps = self_pieces(start, end, can_contain)
        if not is_sorted(piece_start):
            order = np.argsort(piece_start, kind="stable")
            piece_start, piece_end, owner = piece_start[order], piece_end[order], owner[order]
        return piece_start, piece_end, owner, int(overlaps)
    parts = []
    overlapping = 0
    for number in lanes:
        members = np.flatnonzero(lane == number)
        piece_start, piece_end, owner, overlaps = self_pieces(
            start[members], end[members], can_contain[members]
        )
        parts.append((piece_start, piece_end, members[owner]))
        overlapping += int(overlaps)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return columns[0][order], columns[1][order], columns[2][order], overlapping


def _executions(
    timeline: Timeline,
    kind: str,
    rows: Int64s,
    op: Int64s,
    facts: tuple[OpFacts, ...],
    lines: Iterable[Line],
) -> tuple[Executions | None, Int64s]:
    if kind in (TPU, SPARSECORE):
        return _module_line_executions(timeline, rows, lines)
    if kind == CPU:
        return _run_executions(timeline, rows, op, facts)
    return None, np.full(len(rows), -1, np.int64)


def split_module_name(name: str) -> tuple[str, int | None]:
    """"jit_f(1219)" -> ("jit_f", 1219)."""
    match = _MODULE_ID.match(name)
    return (match.group(1), int(match.group(2)) % (1 << 64)) if match else (name, None)


def _module_line_executions(
    timeline: Timeline, rows: Int64s, lines: Iterable[Line]
) -> tuple[Executions | None, Int64s]:
    """Executions of the "XLA Modules" line; an op belongs to the one it starts in (event clock)."""
    found = [timeline.rows_of(line) for line in lines if line.name == MODULES_LINE and line.count]
    if not found:
        return None, np.full(len(rows), -1, np.int64)
    module_rows = np.concatenate(found)
    module_rows = module_rows[np.argsort(timeline.start[module_rows], kind="stable")]
    start = timeline.start[module_rows]
    end = start + timeline.duration[module_rows]
    used, module_of_row = np.unique(timeline.op[module_rows], return_inverse=True)
    named = [split_module_name(timeline.ops[index].name) for index in used.tolist()]
    modules = tuple(sorted(set(named), key=_module_order))
    at = {module: index for index, module in enumerate(modules)}
    has_run, run_id = timeline.run_id.find(module_rows)
    executions = Executions(
        modules=modules,
        key=np.array([at[module] for module in named], np.int64)[module_of_row],
        start=start,
        end=end,
        run_id=run_id,
        has_run_id=has_run,
    )
    op_start = timeline.start[rows]
    index = np.searchsorted(start, op_start, side="right") - 1
    inside = (index >= 0) & (op_start <= end[np.maximum(index, 0)])
    return executions, np.where(inside, index, -1)


def _run_executions(
    timeline: Timeline, rows: Int64s, op: Int64s, facts: tuple[OpFacts, ...]
) -> tuple[Executions | None, Int64s]:
    """Executions as groups of (module, run id), in order of their first op."""
    has_run, run_id = timeline.run_id.find(rows)
    if not has_run.any():
        return None, np.full(len(rows), -1, np.int64)
    programs = sorted({(fact.module, fact.program_id) for fact in facts}, key=_module_order)
    at = {program: index for index, program in enumerate(programs)}
    program_of = np.array([at[fact.module, fact.program_id] for fact in facts], np.int64)
    keys, runs, inverse = unique_pairs(program_of[op][has_run], run_id[has_run])
    start = np.full(len(keys), np.iinfo(np.int64).max)
    end = np.full(len(keys), np.iinfo(np.int64).min)
    event_start = timeline.start[rows][has_run]
    np.minimum.at(start, inverse, event_start)
    np.maximum.at(end, inverse, event_start + timeline.duration[rows][has_run])
    order = np.argsort(start, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    execution = np.full(len(rows), -1, np.int64)
    execution[has_run] = rank[inverse]
    return (
        Executions(
            modules=tuple(programs),
            key=keys[order],
            start=start[order],
            end=end[order],
            run_id=runs[order],
            has_run_id=np.ones(len(order), np.bool_),
        ),
        execution,
    )


def _module_order(module: tuple[str, int | None]) -> tuple[str, int]:
    return module[0], -1 if module[1] is None else module[1]


def _op_facts(timeline: Timeline) -> tuple[OpFacts, ...]:
    line_names = _line_names_by_op(timeline)
    return tuple(
        _facts(op, timeline.hlo, line_names.get(index)) for index, op in enumerate(timeline.ops)
    )


def _line_names_by_op(timeline: Timeline) -> dict[int, str]:
    """For ops on GPU stream lines: one such line's name (stream names tell memcpy streams)."""
    names: dict[int, str] = {}
    for line in timeline.lines:
        if plane_kind(timeline.planes[line.plane]) == GPU and line.count:
            for op in np.unique(timeline.op[line.first : line.first + line.count]).tolist():
                names[op] = min(names.get(op, line.name), line.name)
    return names


def _facts(
    op: Op, hlo: Mapping[int, Mapping[str, HloInstruction]], stream: str | None
) -> OpFacts:
    instruction = _instruction(op, hlo)
    op_class = classify_op(
        op.name,
        category=op.category,
        opcode=instruction.opcode if instruction else "",
        wrapped_opcode=instruction.wrapped_opcode if instruction else "",
        long_name=op.long_name,
        shape=op.shape,
        memcpy_details=op.memcpy_details,
        line_name=stream or "",
        is_kernel=stream is not None,
    )
    scope, pass_name = _scope(op, instruction)
    return OpFacts(
        name=op.name,
        canonical=canonical_name(op.name),
        hlo_op=op.hlo_op,
        module=op.module,
        program_id=op.program_id,
        op_class=op_class,
        group=kind_group(op_class.kind),
        hlo_category=op.category,
        shape=shape_signature(op.shape or (instruction.shape if instruction else ""), op.long_name),
        scope=scope,
        pass_name=pass_name,
        source=op.source,
        flops=op.model_flops if op.model_flops is not None else op.flops,
        bytes_accessed=op.bytes_accessed,
        operands=_operands(op, instruction),
        replica_group_size=_group_size(op, instruction),
        has_hlo=bool(op.hlo_op or op.long_name or op.category),
    )


def _instruction(
    op: Op, hlo: Mapping[int, Mapping[str, HloInstruction]]
) -> HloInstruction | None:
    """Looked up by program id and name: module names repeat."""
    module = hlo.get(op.program_id) if op.program_id is not None else None
    return module.get(op.hlo_op or op.name) if module else None


def _scope(op: Op, instruction: HloInstruction | None) -> tuple[tuple[str, ...], str]:
    hints = [*op.scope_hints, instruction.op_name if instruction else ""]
    for hint in hints:
        parsed = parse_scope(hint)
        if parsed:
            return parsed
    return (), OTHER


_OPERAND = re.compile(r"%([\w.\-]+)")


def _operands(op: Op, instruction: HloInstruction | None) -> tuple[str, ...]:
    if instruction and instruction.operands:
        return instruction.operands
    _, _, text = op.long_name.partition(" = ")
    return tuple(_OPERAND.findall(text))[:8]


_EXPLICIT_GROUPS = re.compile(r"replica_groups=\{\{([\d,]*)\}")
_IOTA_GROUPS = re.compile(r"replica_groups=\[(\d+),(\d+)\]")


def _group_size(op: Op, instruction: HloInstruction | None) -> int | None:
    explicit = _EXPLICIT_GROUPS.search(op.long_name)
    if explicit:
        return len([part for part in explicit.group(1).split(",") if part]) or None
    iota = _IOTA_GROUPS.search(op.long_name)
    if iota:
        return int(iota.group(2))
    return instruction.replica_group_size if instruction else None


def _with_update_pass(
    facts: tuple[OpFacts, ...], devices: Iterable[DeviceOps]
) -> tuple[OpFacts, ...]:
    """In programs that have a backward pass, update arithmetic outside the loss is the optimizer's."""
    used = {index for device in devices for index in np.unique(device.op).tolist()}
    trained = {
        (facts[i].module, facts[i].program_id) for i in used if facts[i].pass_name == "backward"
    }
    return tuple(
        replace(fact, pass_name=OPTIMIZER)
        if fact.scope
        and (fact.module, fact.program_id) in trained
        and is_update(fact.scope, fact.pass_name)
        else fact
        for fact in facts
    )


__all__ = [
    "CPU",
    "GPU",
    "SPARSECORE",
    "TPU",
    "DeviceOps",
    "Executions",
    "HostDevices",
    "OpFacts",
    "find_devices",
    "plane_kind",
    "split_module_name",
]
