"""How much memory XLA planned for each program, what lies there at the peak, what was in use."""

from __future__ import annotations

from pydantic import Field

from marin_profile.base.units import Bytes, Count
from marin_profile.schema.record import Record


class MemoryScope(Record):
    """What is alive at the peak of one scope (without the ops' own names) and pass. `scope` is null
    for buffers that have none, as parameters; the last row may be "(remainder)"."""

    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    size: Bytes
    count: Count


class MemoryBuffer(Record):
    """A buffer that is alive at the peak. `kind`: "parameter", "output", "constant" or "temporary";
    a parameter that is updated in place is a "parameter". `instruction` defines it; `argument` is
    the program's name of a parameter. `padding`: what its shape does not need."""

    kind: str
    instruction: str | None = None
    argument: str | None = None
    shape: str | None = None
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    size: Bytes
    padding: Bytes | None = None


class ProgramMemory(Record):
    """One program and memory space ("hbm", "vmem", "host", ...) by XLA's plan, on one device; not
    what an allocator gave. The four sizes by kind sum to `peak_size`, and so do `by_scope`; of the
    `buffer_count` buffers the largest are listed. `instruction`: where the peak is, null where it
    is not reached by temporaries. `is_complete`: the plan could be read to its end, else the sizes
    may be too small. `host_count` hosts hold it. `donated_size`:
    parameters that are outputs too, updated in place; `donatable_size`: those that are not, though
    an output has their shape and size; `donatable_arguments`: the largest of these."""

    program_id: str
    module: str | None = None
    space: str
    peak_size: Bytes
    parameter_size: Bytes
    output_size: Bytes
    constant_size: Bytes
    temporary_size: Bytes
    padding_size: Bytes | None = None
    instruction: str | None = None
    scope: str | None = None
    pass_: str | None = Field(default=None, alias="pass")
    by_scope: list[MemoryScope]
    buffers: list[MemoryBuffer]
    buffer_count: Count
    is_complete: bool = True
    host_count: Count
    donated_size: Bytes | None = None
    donatable_size: Bytes | None = None
    donatable_arguments: list[str] = []


class AllocatorMemory(Record):
    """What an allocator tells of one device's memory, or of the host's where `device` is null.
    `in_use_size`, reserved and allocated, at the last event of the capture, `most_in_use_size` the
    largest after any. `allocated_peak_size`: the most ever allocated, without what was reserved,
    since the process began. `headroom_size`: what is free beyond both."""

    host: str
    device: str | None = None
    allocator: str | None = None
    in_use_size: Bytes
    most_in_use_size: Bytes
    allocated_peak_size: Bytes
    capacity_size: Bytes
    headroom_size: Bytes
