"""A compiled program as a graph: instructions by name, computations by id, who shares a buffer.

Contract: all that says what an instruction computes is here, and nothing that a compiler may choose
freely (ids, channel ids, names of computations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_profile.events.replica_groups import Groups


@dataclass(frozen=True, slots=True)
class HloNode:
    """An instruction. shape: as "f32[8,128]", without layout; layout: "" where it is row-major,
    else minor to major as "{0,1}", of each array. attributes: a digest of what else it computes
    by (dimensions, windows, directions); literal: one of a constant's value; config: one of what
    the compiler told a library. number: a parameter's number or a tuple's index. called:
    computation ids. trips: of a loop, where it is known. source: "file:line" of the innermost
    frame, "" where it is not known."""

    name: str
    opcode: str
    shape: str = ""
    layout: str = ""
    attributes: str = ""
    literal: str = ""
    config: str = ""
    number: int = 0
    operands: tuple[str, ...] = ()
    called: tuple[int, ...] = ()
    groups: Groups = ()
    target: str = ""
    trips: int | None = None
    op_name: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class HloBlock:
    """A computation: the names of its instructions in the file's order, and of its root."""

    instructions: tuple[str, ...]
    root: str


@dataclass(frozen=True, slots=True)
class HloProgram:
    """donated: (output index, parameter number, index inside it) of outputs that take over an
    argument's buffer."""

    name: str
    program_id: int
    nodes: Mapping[str, HloNode]
    blocks: Mapping[int, HloBlock]
    entry: int
    donated: tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...] = ()
