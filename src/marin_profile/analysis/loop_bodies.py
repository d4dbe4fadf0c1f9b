"""In which loops an instruction of a module stands.

Contract: by name, the `while` instructions around it, the outermost first; also through calls and
branches. Instructions in no loop have no entry.
"""

from __future__ import annotations

from marin_profile.analysis.costs import Module

_HOLDERS = frozenset({"while", "call", "conditional", "async-start"})
# Loops deeper than this are those of a damaged file.
DEEPEST = 32


def loops_of(module: Module) -> dict[str, tuple[str, ...]]:
    holder = {
        name: outer
        for outer, instruction in module.items()
        if instruction.opcode in _HOLDERS
        for computation in instruction.called
        for name in computation.instructions
    }
    found = {name: _loops(name, holder, module) for name in holder}
    return {name: loops for name, loops in found.items() if loops}


def _loops(name: str, holder: dict[str, str], module: Module) -> tuple[str, ...]:
    around: list[str] = []
    for _ in range(DEEPEST):
        outer = holder.get(name)
        if outer is None:
            break
        around.append(outer)
        name = outer
    return tuple(one for one in reversed(around) if module[one].opcode == "while")
