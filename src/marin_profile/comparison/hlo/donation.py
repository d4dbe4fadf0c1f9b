"""Arguments whose buffer an output takes over, before and after.

Contract: asked of arguments that have a partner. An argument that is no longer donated is copied
before it is written to, or its output gets memory of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from marin_profile.base.text import plural
from marin_profile.comparison.hlo.matching import Matched
from marin_profile.comparison.hlo.opened import PARAMETER, Opened, Step

LOST, GAINED = "donation_lost", "donation_gained"


@dataclass(frozen=True)
class Donations:
    """lost: arguments after that were donated before; gained: arguments before that are after."""

    lost: tuple[Step, ...] = ()
    gained: tuple[Step, ...] = ()

    def unclaimed(self, kinds: Collection[str]) -> tuple[str, str] | None:
        """(kind, sentence) where no part of these kinds says it."""
        if self.lost and LOST not in kinds:
            return LOST, f"{described(self.lost)} no longer donated: the output has its own memory."
        if self.gained and GAINED not in kinds:
            return GAINED, f"{described(self.gained)} donated now: an output takes over the memory."
        return None


def described(arguments: tuple[Step, ...]) -> str:
    first = arguments[0]
    name = first.node.op_name or first.node.name
    if len(arguments) == 1:
        return f"The argument {name} ({first.shape}) is"
    return f"{plural(len(arguments), 'argument')}, first {name} ({first.shape}), are"


def donations(matched: Matched) -> Donations:
    before, after = _donated(matched.before), _donated(matched.after)
    lost, gained = [], []
    for one, two in matched.pairs():
        if one.node.opcode == two.node.opcode == PARAMETER and one.opcode == PARAMETER:
            if one.node.number in before and two.node.number not in after:
                lost.append(two)
            elif two.node.number in after and one.node.number not in before:
                gained.append(one)
    return Donations(tuple(lost), tuple(gained))


def _donated(opened: Opened) -> frozenset[int]:
    return frozenset(parameter for _, parameter, _ in opened.program.donated)
