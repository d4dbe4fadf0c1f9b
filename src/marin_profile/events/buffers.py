"""BufferPlan: what XLA planned of a program's memory, as its HLO proto holds it.

Contract
* A logical buffer, an allocation, an event of a trace is a row in parallel columns, in the file's
  order; where one names another, that is its row, or NOTHING.
* Sizes are bytes. A memory space is XLA's color. `names` holds every instruction name once.
* Readers build it, analysis reads it, nobody changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marin_profile.base.columns import Int64s

NOTHING: Final = -1
# How deep into nested tuples a plan follows its buffers.
DEEPEST_INDEX: Final = 4
ALLOC, FREE, SHARE_WITH = 0, 1, 2  # hlo.proto, enum HeapSimulatorTrace.Event.Kind


@dataclass(frozen=True, slots=True)
class Buffers:
    """Logical buffers. instruction: the one that defines it, in `names`; index: (n, DEEPEST_INDEX)
    its place in that one's tuple, NOTHING behind its end; too_deep: where that does not fit."""

    size: Int64s
    space: Int64s
    instruction: Int64s
    index: Int64s
    too_deep: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Allocations:
    """Memory that buffers lie in. Allocation `holder[i]` holds buffer `held[i]`; holders ascend.
    is_lasting: it is there while the program runs: a parameter, an output or a constant."""

    size: Int64s
    space: Int64s
    is_thread_local: NDArray[np.bool_]
    is_parameter: NDArray[np.bool_]
    is_output: NDArray[np.bool_]
    is_constant: NDArray[np.bool_]
    holder: Int64s
    held: Int64s

    @property
    def is_lasting(self) -> NDArray[np.bool_]:
        return self.is_parameter | self.is_output | self.is_constant


@dataclass(frozen=True, slots=True)
class HeapEvents:
    """The planner's events. Trace t has rows `first[t]` to `first[t + 1]`. shares: the buffer whose
    memory a SHARE_WITH takes; instruction: where in the program, in `names`, but of no FREE."""

    first: Int64s
    kind: Int64s
    buffer: Int64s
    shares: Int64s
    instruction: Int64s


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """See the module docstring. is_whole: the file's plan could be read to its end."""

    buffers: Buffers
    allocations: Allocations
    events: HeapEvents
    names: tuple[str, ...]
    is_whole: bool = True
