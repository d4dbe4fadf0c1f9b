"""Where in the program an instruction stands that XLA put there, and gave no name.

Contract: where the loop around it stands; else what takes its value, however often that is handed
on; else what its value is made from. The instruction itself where nothing near has a scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from marin_profile.comparison.hlo.opened import Opened, Step
from marin_profile.events.hlo_program import HloNode
from marin_profile.events.scopes import parse_scope

FURTHEST = 8


def placed(opened: Opened, step: Step) -> HloNode:
    nodes = opened.program.nodes
    around = [nodes[name] for name in reversed(step.loops) if name in nodes]
    for node in (*around, *_near(opened, step, lambda one: opened.users[one.at])):
        if parse_scope(node.op_name):
            return node
    sources = _near(opened, step, lambda one: one.operands)
    return next((node for node in sources if parse_scope(node.op_name)), step.node)


def _near(
    opened: Opened, step: Step, neighbours: Callable[[Step], Iterable[int]]
) -> Iterable[HloNode]:
    """The nearest first, in the order of the program."""
    level, seen = [step.at], {step.at}
    for _ in range(FURTHEST):
        level = sorted({at for one in level for at in neighbours(opened.steps[one])} - seen)
        seen.update(level)
        yield from (opened.steps[at].node for at in level)
