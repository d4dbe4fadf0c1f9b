"""Bytes of arrays, from shapes as XLA writes them ("bf16[8,128]")."""

from __future__ import annotations

import re

DTYPE_BITS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4, "s8": 8, "u8": 8, "f8e5m2": 8,
    "f8e4m3": 8, "f8e3m4": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8,
    "f8e8m0fnu": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
    "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128, "token": 0,
}  # fmt: skip
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([\d,]*)\]")


def array_bytes(text: str) -> list[int | None]:
    """Of every array in the text, in order; None where its type is not known."""
    return [_bytes(dtype, dims) for dtype, dims in _ARRAY.findall(text)]


def _bytes(dtype: str, dims: str) -> int | None:
    bits = DTYPE_BITS.get(dtype)
    if bits is None:
        return None
    for dim in filter(None, dims.split(",")):
        bits *= int(dim)
    return (bits + 7) // 8
