"""Canonical JSON: sorted keys, fixed rounding, one trailing newline."""

from __future__ import annotations

from math import isfinite
from typing import Any

_WRITTEN_AS_IS = frozenset({str, int, bool, type(None)})


def canonical_json(data: Any) -> str:
    """Sorted keys, two-space indent, floats rounded to six decimals, one trailing newline.

    Raises ValueError on NaN and infinities: neither is a number that a summary may hold.
    """
    import msgspec

    encoded = msgspec.json.encode(_rounded(data), order="sorted")
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def _rounded(data: Any) -> Any:
    kind = type(data)
    if kind is dict:
        # Most of a summary are floats in maps: without a call for each.
        return {
            key: value
            if (own := type(value)) in _WRITTEN_AS_IS
            else round(value, 6)
            if own is float and isfinite(value)
            else _rounded(value)
            for key, value in data.items()
        }
    if kind is list or kind is tuple:
        return [value if type(value) in _WRITTEN_AS_IS else _rounded(value) for value in data]
    if kind is float:
        if not isfinite(data):
            raise ValueError(f"{data} is no number that JSON can hold")
        return round(data, 6)
    return data
