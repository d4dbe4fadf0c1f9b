"""Arrays in shapes as XLA writes them ("bf16[8,128]", or a tuple's text)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import prod

DTYPE_BITS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4, "s8": 8, "u8": 8, "f8e5m2": 8,
    "f8e4m3": 8, "f8e3m4": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8,
    "f8e8m0fnu": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
    "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128, "token": 0,
}  # fmt: skip
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,]*)\]")


@dataclass(frozen=True, slots=True)
class Array:
    """bits: of an element, None where its type is not known."""

    bits: int | None
    dims: tuple[int, ...]

    @property
    def elements(self) -> int:
        return prod(self.dims)

    @property
    def bytes(self) -> int | None:
        return None if self.bits is None else (self.elements * self.bits + 7) // 8


@cache
def arrays_in(text: str) -> tuple[Array, ...]:
    """Every array in the text, in order."""
    return tuple(
        Array(DTYPE_BITS.get(dtype), tuple(map(int, filter(None, dims.split(",")))))
        for dtype, dims in _ARRAY.findall(text)
    )


def array_bytes(text: str) -> list[int | None]:
    return [array.bytes for array in arrays_in(text)]
