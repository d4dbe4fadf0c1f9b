"""Steps in words, and which of them weighs most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from marin_profile.base.text import plural
from marin_profile.comparison.hlo.opened import Opened, Step
from marin_profile.events.shapes import arrays_in

COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"}
    | {"collective-broadcast", "ragged-all-to-all"}
)
PRODUCTS = frozenset({"dot", "convolution"})
REDUCTIONS = frozenset({"reduce", "reduce-window", "scatter", "select-and-scatter"})
LIBRARY = "custom-call"
_HEAVY = COLLECTIVES | REDUCTIONS | {LIBRARY, "sort", "gather", "while", "fft", "cholesky"}
_LIGHT = frozenset({"broadcast", "iota", "convert", "constant", "slice", "bitcast-convert", "pad"})

NAMED = 3


def name(step: Step) -> str:
    """With the op of the trace that does it, where that has another name."""
    own = step.node.name
    return own if step.unit == own else f"{own} in {step.unit}"


def listed(steps: Sequence[Step]) -> str:
    """By opcode and shape, what weighs most first, as "dot f32[8,8], 3 x add f32[8]"."""
    counts = Counter((step.opcode, step.shape) for step in steps)
    order = sorted(counts, key=lambda key: (-_rank(key[0]), -size(key[1]), key))
    parts = [_several(counts[key], " ".join(key)) for key in order[:NAMED]]
    more = f" and {len(order) - NAMED} more" if len(order) > NAMED else ""
    return f"{', '.join(parts)}{more}" if parts else "nothing"


def _several(count: int, what: str) -> str:
    return what if count == 1 else f"{count} x {what}"


def counted(steps: Sequence[Step]) -> str:
    """As "2 x all-reduce of f32[512], f32[256]"."""
    kinds = Counter(step.opcode for step in steps)
    what = " and ".join(f"{count} x {opcode}" for opcode, count in sorted(kinds.items()))
    return f"{what} of {shapes(steps)}"


def shapes(steps: Iterable[Step]) -> str:
    """Each once, the largest first."""
    found = sorted({step.shape for step in steps}, key=lambda shape: (-size(shape), shape))
    return f"{', '.join(found[:2])}{' ...' if len(found) > 2 else ''}"


def ops(count: int) -> str:
    return f"{plural(count, 'op')} {'does' if count == 1 else 'do'}"


def weight(step: Step) -> tuple[int, int]:
    """Products before collectives and the like before the rest, then by size."""
    return _rank(step.opcode), elements(step)


def _rank(opcode: str) -> int:
    if opcode in PRODUCTS:
        return 3
    if opcode in _HEAVY:
        return 2
    return 0 if opcode in _LIGHT else 1


def element_type(step: Step) -> str:
    return step.shape.partition("[")[0].lstrip("(")


def elements(step: Step) -> int:
    return size(step.shape)


def size(shape: str) -> int:
    return sum(math.prod(array.dims) for array in arrays_in(shape))


def taken(opened: Opened, step: Step) -> list[Step]:
    return [opened.steps[operand] for operand in step.operands]


def heaviest(pairs: Sequence[tuple[Step, Step]]) -> tuple[Step, Step]:
    """By what was before; of equal ones the first."""
    return max(pairs, key=lambda pair: (weight(pair[0]), -pair[0].at))
