"""Shapes as XLA writes them, in HLO text too: "bf16[8,128]{1,0:S(5)}", or tuples of such."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from marin_profile.base.caches import cached

DTYPE_BITS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4, "s8": 8, "u8": 8, "f8e5m2": 8,
    "f8e4m3": 8, "f8e3m4": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8,
    "f8e8m0fnu": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
    "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128, "token": 0,
}  # fmt: skip
_SPACE = re.compile(r"S\((\d{1,9})\)")
# Dimensions may be bounds, as in "f32[<=8]": an array whose size is not known.
_SHAPE = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\]")
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


@cached
def arrays_in(text: str) -> tuple[Array, ...]:
    """Every array in the text, in order."""
    return tuple(
        Array(DTYPE_BITS.get(dtype), tuple(map(int, filter(None, dims.split(",")))))
        for dtype, dims in _ARRAY.findall(text)
    )


def array_bytes(text: str) -> list[int | None]:
    return [array.bytes for array in arrays_in(text)]


def end_of_shape(text: str) -> int:
    """Where the result shape ends: at the first space outside all brackets."""
    depth = 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == " " and depth == 0:
            return at
    return len(text)


def tuple_parts(text: str) -> list[str]:
    """The top-level parts of "(a, (b, c), d)"."""
    text = text.strip()
    if not text.startswith("("):
        return []
    parts, depth, start = [], 0, 1
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                parts.append(text[start:at])
                break
        elif character == "," and depth == 1:
            parts.append(text[start:at])
            start = at + 1
    return parts


def memory_space(shape: str) -> int:
    found = _SPACE.search(shape)
    return int(found.group(1)) if found else 0


@cached
def shape_signature(shape: str, long_name: str = "") -> str:
    """The result's "dtype[dimensions]", several joined by "|", without layouts; "" if unknown."""
    if not shape:
        _, separator, text = long_name.partition(" = ")
        shape = text[: end_of_shape(text)] if separator else ""
    return "|".join(f"{dtype}[{dims}]" for dtype, dims in _SHAPE.findall(shape))
