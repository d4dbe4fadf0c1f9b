"""JSON that others wrote, read with care.

Contract: what is read holds numbers that can be reckoned with, 0 or of a size between 1e-30 and
1e30, and is nested at most 100 deep. Anything else raises ValueError with one clause that names
the field, or where the text is damaged.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from marin_profile.base.text import visible

LARGEST, SMALLEST = 1e30, 1e-30
DEEPEST = 100
_LONGEST_INTEGER = 40  # digits
_TOO_DEEP = f"it is nested more than {DEEPEST} deep"


def read_json(content: bytes) -> Any:
    try:
        data = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        data = _read_loosely(content, error)
    check_numbers(data)
    return data


def check_numbers(data: Any) -> None:
    """Raises ValueError for numbers, and for depth, as `read_json` does."""
    found = _odd_number(data, 0)
    if found is not None:
        *where, value = found
        named = visible(".".join(map(str, where)), 200) or "the top level"
        raise ValueError(f"{named}: {_shown(value)} is no number that a profile can hold")


def _shown(value: float) -> str:
    try:
        return f"{float(value):.3g}"
    except OverflowError:
        return "an integer beyond all floats"


def _read_loosely(content: bytes, error: Exception) -> Any:
    """With NaN, infinities and integers of any length, so that their field can be named."""
    try:
        data = json.loads(content, parse_int=_integer)
        check_numbers(data)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from error
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from error
    except json.JSONDecodeError as damage:
        where = f"line {damage.lineno}, column {damage.colno}"
        raise ValueError(f"it is torn or damaged, not JSON ({where})") from error
    raise ValueError("it is torn or damaged, not JSON") from error


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _odd_number(data: Any, depth: int) -> tuple[Any, ...] | None:
    """The path to a number that is none or out of bounds, and the number."""
    kind = type(data)
    if kind is float or kind is int:
        is_usual = data == 0 or SMALLEST <= abs(data) <= LARGEST
        return None if is_usual else (data,)
    if kind is dict or kind is list:
        if depth >= DEEPEST:
            raise ValueError(_TOO_DEEP)
        for key, value in data.items() if kind is dict else enumerate(data):
            if type(value) is str or value is None:
                continue
            found = _odd_number(value, depth + 1)
            if found is not None:
                return (key, *found)
    return None
