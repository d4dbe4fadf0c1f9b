"""The programs of one side's captures, opened, with the time of each op in each capture.

Contract
* Programs are the first capture's; those of the other captures count with the first one of the same
  name that computes the same, whatever their ids. What runs in a program that the first capture
  lacks, or that no proto shows, is `elsewhere`.
* Times are picoseconds as the comparison counts them, capture by capture: per step and device, or
  per execution; those of all programs and `elsewhere` sum to what ops own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from marin_profile.comparison.account import CaptureAccount, SideAccount
from marin_profile.comparison.executions import PROGRAM
from marin_profile.comparison.hlo.opened import (
    CONSTANT,
    PARAMETER,
    Opened,
    TooLargeError,
    digest,
    open_program,
)
from marin_profile.comparison.model import Basis
from marin_profile.comparison.noise import Times, added
from marin_profile.events.hlo_program import HloProgram
from marin_profile.pipeline.programs import CapturedPrograms, ProgramOp


@dataclass(frozen=True)
class SideProgram:
    """times: of each op of the trace by its unit; number: how many captures there are."""

    opened: Opened
    number: int
    times: dict[str, list[Fraction]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.opened.program.name

    @cached_property
    def contents(self) -> Counter[str]:
        """What it computes, step by step."""
        return Counter(
            digest((step.computes, step.shape))
            for step in self.opened.steps
            if step.opcode not in (PARAMETER, CONSTANT)
        )

    def is_same(self, other: SideProgram) -> bool:
        return self.name == other.name and self.contents == other.contents

    @property
    def total(self) -> Times:
        return self.of(self.times)

    def of(self, units: Sequence[str] | dict[str, list[Fraction]]) -> Times:
        found: Times = (Fraction(0),) * self.number
        for unit in units:
            own = self.times.get(unit)
            found = added(found, None if own is None else tuple(own)) or found
        return found

    def add(self, capture: int, name: str, time: Fraction) -> None:
        unit = self.opened.ends.get(name, name)
        self.times.setdefault(unit, [Fraction(0)] * self.number)[capture] += time


@dataclass(frozen=True)
class Side:
    """too_large: names of programs that are too large to be opened."""

    programs: tuple[SideProgram, ...]
    elsewhere: Times
    too_large: tuple[str, ...] = ()


def read_side(side: SideAccount, captures: Sequence[CapturedPrograms], basis: Basis | None) -> Side:
    """The programs that ran in the steps."""
    count = len(captures)
    programs: list[SideProgram] = []
    too_large: set[str] = set()
    elsewhere = [Fraction(0)] * count
    for at, (account, captured) in enumerate(zip(side.captures, captures, strict=True)):
        by_program: dict[int, list[tuple[ProgramOp, Fraction]]] = {}
        for op in captured.ops:
            time = _time(op, account, basis)
            place = _place(op, captured.programs)
            if time and place is None:
                elsewhere[at] += time
            elif time and place is not None:
                by_program.setdefault(place, []).append((op, time))
        for place in sorted(by_program):
            program = captured.programs[place]
            ran = by_program[place]
            known = None
            try:
                opened = open_program(program, frozenset(op.name for op, _ in ran))
            except TooLargeError:
                too_large.add(program.name)
            else:
                own = SideProgram(opened, count)
                known = next((one for one in programs if one.is_same(own)), None)
                if known is None and at == 0:
                    known = own
                    programs.append(own)
            for op, time in ran:
                if known is None:
                    elsewhere[at] += time
                else:
                    known.add(at, op.name, time)
    return Side(tuple(programs), tuple(elsewhere), tuple(sorted(too_large)))


def _time(op: ProgramOp, account: CaptureAccount, basis: Basis | None) -> Fraction:
    if basis is None:
        return Fraction(op.owned, account.divisor)
    if basis.kind == PROGRAM and op.program != basis.program:
        return Fraction(0)
    return Fraction(op.exposed, account.divisor)


def _place(op: ProgramOp, programs: Sequence[HloProgram]) -> int | None:
    """The program that an op names by its id, or as the only one of its name."""
    named = [at for at, program in enumerate(programs) if program.name == op.program]
    for at in named:
        if programs[at].program_id == op.program_id:
            return at
    return named[0] if len(named) == 1 else None
