"""Which planes are devices, and which of their lines hold ops.

Contract: TPU, sparse-core and GPU planes are devices by name, the CPU's host plane by its HLO
events; custom planes ("/device:CUSTOM:...") are not. A sparse core is a device of its own kind:
its lines may be called like those of a TensorCore, or "Sparse Core ...".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from marin_profile.events.timeline import Line, Plane

TPU, SPARSECORE, GPU, CPU = "tpu", "sparsecore", "gpu", "cpu"
OPS_LINE, ASYNC_LINE, MODULES_LINE, STEPS_LINE = (
    "XLA Ops",
    "Async XLA Ops",
    "XLA Modules",
    "Steps",
)
SPARSECORE_LINES = {
    OPS_LINE: "Sparse Core Ops",
    MODULES_LINE: "Sparse Core Modules",
    STEPS_LINE: "Sparse Core Steps",
}
# Device lines whose events describe ops or executions a second time, or no work at all.
DERIVED_LINES = frozenset(
    {MODULES_LINE, STEPS_LINE, "Framework Ops", "Framework Name Scope", "Source code"}
    | {"XLA TraceMe", "Overlay", "_counters_", "TensorFlow Ops", "TensorFlow Name Scope"}
    | {SPARSECORE_LINES[MODULES_LINE], SPARSECORE_LINES[STEPS_LINE]}
)

_DEVICE_PLANE = re.compile(
    r"^/device:(TPU|GPU):(\d{1,9})(?:\s+(SparseCore\s*\d*))?\s*$", re.IGNORECASE
)
_CPU_PLANE = re.compile(r"^/host:CPU\b|^/device:CPU\b")


def plane_kind(plane: Plane) -> str:
    """TPU, SPARSECORE, GPU or CPU; "" for planes that are no device."""
    if _CPU_PLANE.match(plane.name):
        return CPU
    match = _DEVICE_PLANE.match(plane.name)
    if not match:
        return ""
    if match.group(3):
        return SPARSECORE
    return TPU if match.group(1).upper() == "TPU" else GPU


def is_op_line(kind: str, line: Line) -> bool:
    if kind == GPU:
        return line.name.startswith("Stream")
    names = (OPS_LINE, SPARSECORE_LINES[OPS_LINE]) if kind == SPARSECORE else (OPS_LINE,)
    return line.name.startswith(names)


def is_modules_line(line: Line) -> bool:
    return line.name in (MODULES_LINE, SPARSECORE_LINES[MODULES_LINE])


def is_steps_line(line: Line) -> bool:
    return line.name in (STEPS_LINE, SPARSECORE_LINES[STEPS_LINE])


def unknown_lines(plane: Plane, kind: str, lines: Iterable[Line]) -> list[str]:
    """Lines of a device plane that no analysis reads."""
    return [
        f"{plane.name}: {line.name} ({line.count} events)"
        for line in lines
        if not is_op_line(kind, line)
        and not line.name.startswith(ASYNC_LINE)
        and line.name not in DERIVED_LINES
    ]
