"""Captures with HLO protos: five steps of a product and a negation, with a copy between or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builders_xspace import Space, computation, instruction, message, number, shape_proto

MATRIX = shape_proto(11, 64, 64)
ARGUMENTS = (
    instruction("x", "parameter", id=1, shape=MATRIX, parameter=0),
    instruction("w", "parameter", id=2, shape=MATRIX, parameter=1),
)
MLP = "jit(step)/jvp(mlp)/dot_general"


@dataclass(frozen=True)
class Op:
    """Microseconds from the step's begin."""

    name: str
    start: int
    length: int


def program(*rest: bytes, root: int = 9, module: str = "jit_step") -> bytes:
    made = message(1, module) + message(3, computation(3, root, *ARGUMENTS, *rest)) + number(6, 3)
    return message(1, made)


DOT = instruction("dot.1", "dot", id=3, shape=MATRIX, operands=[1, 2], op_name=MLP)
NEGATE = instruction("neg.1", "negate", id=9, shape=MATRIX, operands=[3])
PLAIN = program(DOT, NEGATE)
COPY = instruction("copy.1", "copy", id=4, shape=MATRIX, operands=[1])
FROM_COPY = instruction("dot.1", "dot", id=3, shape=MATRIX, operands=[4, 2], op_name=MLP)
WITH_COPY = program(COPY, FROM_COPY, NEGATE)


def leave(
    root: Path, ops: list[Op], proto: bytes | None, *, period: int = 100, module: str = "jit_step"
) -> Path:
    """Five steps on one device."""
    space = Space("h")
    tpu = space.tpu(0, device_type_string="TPU v6 Lite")
    for step in range(5):
        at = period * step
        tpu.step(step, at, period - 1).module(f"{module}(7)", at, period - 10, run_id=step)
        for op in ops:
            tpu.op(op.name, at + op.start, op.length, program_id=7)
    if proto is not None:
        space.hlo(7, proto, module=module)
    space.write(root / "plugins/profile/2026_01_02_03_04_05/h.xplane.pb")
    return root


BEFORE = [Op("dot.1", 0, 40), Op("neg.1", 40, 20)]
AFTER = [Op("copy.1", 0, 10), Op("dot.1", 10, 40), Op("neg.1", 50, 25)]
