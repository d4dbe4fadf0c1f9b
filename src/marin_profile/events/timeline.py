"""Timeline: one host's profile as columns, whatever file it came from.

Contract
* Readers build it, analysis reads it, nobody changes it: every array is read-only.
* All times are int64 **picoseconds**. `start` counts from the file's first event (event clock).
  Device-clock times (`device_start`) count from the file's first device-clock time; the two
  clocks drift apart, so a device-clock time is compared with device-clock times only.
* An event is a row in parallel columns; what is the same for every execution of an op stands
  once, in the op table. Columns that few events have are `Sparse`.
* Events of one line are contiguous (`Line.first`, `Line.count`); inside a line they keep the
  file's order. Analysis must not depend on that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s as Int64s
from marin_profile.base.columns import find_sorted, moved_to_clock
from marin_profile.events.buffers import BufferPlan
from marin_profile.events.replica_groups import Groups

Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Plane:
    """One process of the trace: a device ("/device:TPU:0"), the host, or file-level metadata."""

    name: str
    id: int
    stats: Mapping[str, int | float | str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Line:
    """One track of a plane. Its events are rows `first` to `first + count`."""

    plane: int
    id: int
    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Op:
    """What all executions of one op share. Empty text and None mean that the file does not say.

    `name` is the short name ("fusion.7", a kernel symbol, a host event's name).
    `scope_hints` are the raw candidates for a scope path, best first (`tf_op`, then `name`).
    `program_id` is unsigned 64 bit. `bytes_accessed`, `flops` and `model_flops` are per execution.
    """

    name: str
    long_name: str = ""
    hlo_op: str = ""
    module: str = ""
    program_id: int | None = None
    category: str = ""
    scope_hints: tuple[str, ...] = ()
    source: str = ""
    shape: str = ""
    flops: int | None = None
    model_flops: int | None = None
    bytes_accessed: int | None = None
    memcpy_details: str = ""


@dataclass(frozen=True, slots=True)
class HloComputation:
    """The names of a computation's instructions and of its root, and the thread that runs it."""

    instructions: tuple[str, ...]
    root: str
    thread: str = ""


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """How a window moves along one dimension, in elements."""

    size: int
    stride: int = 1
    padding_low: int = 0
    window_dilation: int = 1
    base_dilation: int = 1


@dataclass(frozen=True, slots=True)
class ConvolutionDims:
    """Which dimensions of input, kernel and output a convolution's window runs over, and which of
    the kernel holds the input features (of one group)."""

    input_spatial: tuple[int, ...]
    output_spatial: tuple[int, ...]
    kernel_input_feature: int


@dataclass(frozen=True, slots=True)
class HloInstruction:
    """An instruction of an HLO proto: its opcode, scope path, result shape, operand names, and
    which devices it lets meet (groups, or a permute's pairs of source and target); of an
    asynchronous one what it wraps and on which thread that runs ("" where the proto does not say).

    called: the computations that it applies. contracting: the dimensions of the first operand that
    a dot, or a custom call that is one, sums over (None: not a dot)."""

    opcode: str
    op_name: str
    shape: str = ""
    operands: tuple[str, ...] = ()
    replica_groups: Groups = ()
    source_target_pairs: Groups = ()
    wrapped_opcode: str = ""
    execution_thread: str = ""
    called: tuple[HloComputation, ...] = ()
    parameter_number: int = 0
    custom_call_target: str = ""
    contracting: tuple[int, ...] | None = None
    window: tuple[WindowDimension, ...] = ()
    convolution: ConvolutionDims | None = None


@dataclass(frozen=True, slots=True)
class Sparse:
    """A column that few events have: `values[i]` belongs to event `rows[i]`; rows ascend."""

    rows: Int64s
    values: Int64s

    def __post_init__(self) -> None:
        for column in (self.rows, self.values):
            column.flags.writeable = False

    @staticmethod
    def empty() -> Sparse:
        nothing = np.zeros(0, np.int64)
        return Sparse(nothing, nothing)

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, rows: Int64s) -> tuple[NDArray[np.bool_], Int64s]:
        """For each of `rows`: whether the event has a value, and the value (0 if it has none)."""
        found: NDArray[np.bool_]
        values: Int64s
        found, values = find_sorted(self.rows, self.values, rows)
        return found, values


@dataclass(frozen=True, slots=True)
class Flow:
    """One end of the flows between host events: event `rows[i]` produced (or consumed) the flow of
    this type and id. The producer has the id that its consumers have, on any line; rows ascend."""

    rows: Int64s
    types: Int64s
    ids: Int64s

    @staticmethod
    def empty() -> Flow:
        nothing = np.zeros(0, np.int64)
        return Flow(nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """What an allocator of device or host memory held after the latest of its events on a line;
    bytes. `name` and `ordinal` are "" and None where the file does not say; `start` is in
    picoseconds of the Timeline. most_in_use: after any of its events there; peak: the most that was
    ever in use, since the process began."""

    start: int
    name: str
    ordinal: int | None
    in_use: int
    most_in_use: int
    capacity: int
    peak: int


@dataclass(frozen=True)
class Timeline:
    """One host's events. See the module docstring for units, clocks and order.

    `hlo` maps the id that a program is registered under to its instructions by name, `hlo_modules`
    to the name of its module ("" if the file does not say), `hlo_devices` to the number of devices
    that it is compiled for, `hlo_memory` to XLA's plan of its memory, where the file holds one.
    `allocations` tell what allocators held, in no order.
    `profile_start_ns` and `profile_stop_ns` are epoch nanoseconds where
    the file tells them; `origin` is when the first event began, as (epoch nanoseconds,
    picoseconds), `first_ts` the same by the clock of a trace JSON, in picoseconds. `dropped` counts
    events left out, by reason; `notes` are warnings for people, one sentence each, `doubts` those
    of them that come first: the numbers may be wrong.
    `truncated`: some of the profile is not in the file, or cannot be read.
    `ends_early`: the file has none of the planes that a profiler writes behind those of devices.
    """

    source_format: str
    planes: tuple[Plane, ...]
    lines: tuple[Line, ...]
    ops: tuple[Op, ...]
    line: Int32s
    op: Int32s
    start: Int64s
    duration: Int64s
    device_start: Sparse = field(default_factory=Sparse.empty)
    device_duration: Sparse = field(default_factory=Sparse.empty)
    run_id: Sparse = field(default_factory=Sparse.empty)
    correlation_id: Sparse = field(default_factory=Sparse.empty)
    step_num: Sparse = field(default_factory=Sparse.empty)
    device_ordinal: Sparse = field(default_factory=Sparse.empty)
    produced: Flow = field(default_factory=Flow.empty)
    consumed: Flow = field(default_factory=Flow.empty)
    hlo: Mapping[int, Mapping[str, HloInstruction]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    hlo_modules: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    hlo_devices: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    hlo_memory: Mapping[int, BufferPlan] = field(default_factory=lambda: MappingProxyType({}))
    allocations: tuple[AllocatorState, ...] = ()
    hostname: str = ""
    profile_start_ns: int | None = None
    profile_stop_ns: int | None = None
    origin: tuple[int, int] | None = None
    first_ts: int | None = None
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    truncated: bool = False
    ends_early: bool = False

    def __post_init__(self) -> None:
        count = len(self.line)
        if not len(self.op) == len(self.start) == len(self.duration) == count:
            raise ValueError("event columns differ in length")
        for column in (self.line, self.op, self.start, self.duration):
            column.flags.writeable = False

    @property
    def num_events(self) -> int:
        return len(self.line)

    def rows_of(self, line: Line) -> Int64s:
        return np.arange(line.first, line.first + line.count, dtype=np.int64)

    def device_times(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Start and duration of `rows` on the device clock; on the event clock if none of them
        has a device-clock time. Rows without one, among rows that have one, are placed by the
        shift of their nearest earlier neighbour (event-clock order)."""
        has, start = self.device_start.find(rows)
        if not has.any():
            return self.start[rows], self.duration[rows]
        has_duration, duration = self.device_duration.find(rows)
        duration = np.where(has_duration, duration, self.duration[rows])
        if not has.all():
            known = self.start[rows[has]]
            placed = moved_to_clock(known, start[has] - known, self.start[rows])
            start = np.where(has, start, placed)
        return start, duration
