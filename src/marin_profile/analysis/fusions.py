"""Which of the ops in a fusion takes its time, and which other scopes it holds.

Contract
* XLA names a fusion after its root. The time is that of the first dot or convolution in it; where
  it holds none, of the op with the largest result: of equal ones the root, else the last.
* What only renames, or makes something out of nothing, is no work: it does not count.
* Ops without a scope path tell nothing.
"""

from __future__ import annotations

from marin_profile.analysis.costs import Module
from marin_profile.events.scopes import parse_scope
from marin_profile.events.shapes import array_bytes
from marin_profile.events.timeline import HloInstruction

_FUSED = frozenset({"fusion", "call"})
_NO_WORK = frozenset(
    {"parameter", "constant", "iota", "broadcast", "bitcast", "reshape", "tuple"}
    | {"get-tuple-element"}
)


def largest_in(fusion: HloInstruction | None, module: Module) -> str:
    """The op name of the op with the largest result; "" where the sizes are not known."""
    roots = {computation.root for computation in fusion.called} if fusion else set()
    sized = [
        (sum(size or 0 for size in array_bytes(one.shape)), name in roots, at, one.op_name)
        for at, (name, one) in enumerate(_held(fusion, module))
    ]
    size, _, _, op_name = max(sized, default=(0, False, 0, ""))
    return op_name if size else ""


def other_scopes(
    scope: tuple[str, ...], fusion: HloInstruction | None, module: Module
) -> tuple[tuple[str, ...], ...]:
    """Those that the fusion holds beside its own, all without the ops' own names; by name."""
    parsed = [parse_scope(one.op_name) for _, one in _held(fusion, module)]
    return tuple(sorted({one[0][:-1] for one in parsed if one} - {scope[:-1], ()}))


def _held(fusion: HloInstruction | None, module: Module) -> list[tuple[str, HloInstruction]]:
    """The work in a fusion, in the program's order."""
    if fusion is None or fusion.opcode not in _FUSED:
        return []
    inner = [
        (name, module.get(name))
        for computation in fusion.called
        for name in computation.instructions
    ]
    return [
        (name, one)
        for name, one in inner
        if one is not None and "/" in one.op_name and one.opcode not in _NO_WORK
    ]
