"""In which loops an instruction of a module stands, and which stand in branches.

Contract: by name, the `while` instructions around it, the outermost first; also through calls and
branches. Instructions in no loop have no entry. Branches are those of `conditional` instructions,
also through calls and loops.
"""

from __future__ import annotations

from marin_profile.analysis.costs import Module

_HOLDERS = frozenset({"while", "call", "conditional", "async-start"})
# Loops deeper than this are those of a damaged file.
DEEPEST = 32


def loops_of(module: Module) -> dict[str, tuple[str, ...]]:
    holder = _holders(module)
    found = {name: _around(name, holder, module, "while") for name in holder}
    return {name: loops for name, loops in found.items() if loops}


def in_branches(module: Module) -> frozenset[str]:
    holder = _holders(module)
    return frozenset(name for name in holder if _around(name, holder, module, "conditional"))


def _holders(module: Module) -> dict[str, str]:
    return {
        name: outer
        for outer, instruction in module.items()
        if instruction.opcode in _HOLDERS
        for computation in instruction.called
        for name in computation.instructions
    }


def _around(name: str, holder: dict[str, str], module: Module, opcode: str) -> tuple[str, ...]:
    around: list[str] = []
    for _ in range(DEEPEST):
        outer = holder.get(name)
        if outer is None:
            break
        around.append(outer)
        name = outer
    return tuple(one for one in reversed(around) if module[one].opcode == opcode)
