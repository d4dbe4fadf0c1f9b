"""What a rule is asked about, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from marin_profile.comparison.hlo.components import Part, significant
from marin_profile.comparison.hlo.donation import Donations
from marin_profile.comparison.hlo.opened import Opened, Step


@dataclass(frozen=True)
class Kind:
    """The name of what happened, and a sentence that says it."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Asked:
    """A part, and the programs that it is of."""

    part: Part
    before: Opened
    after: Opened
    donations: Donations = field(default_factory=Donations)

    @property
    def removed(self) -> list[Step]:
        return significant(self.part.removed)

    @property
    def added(self) -> list[Step]:
        return significant(self.part.added)

    def went(self, opcodes: Iterable[str]) -> list[Step]:
        wanted = frozenset(opcodes)
        return [step for step in self.part.removed if step.opcode in wanted]

    def came(self, opcodes: Iterable[str]) -> list[Step]:
        wanted = frozenset(opcodes)
        return [step for step in self.part.added if step.opcode in wanted]


Rule = Callable[[Asked], Kind | None]
