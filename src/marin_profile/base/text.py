"""Text for people: names made harmless, numbers in human units.

Contract
* Characters that cannot be seen are written as escapes; cuts say how much is missing.
* A duration gets the unit that leaves 1 to 999 before the point, two decimals; what is not known
  is "n/a", never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

LONGEST_NAME = 72
NOT_KNOWN = "n/a"

_UNITS = ((1e-6, "ps", 0), (1e-3, "ns", 2), (1.0, "us", 2), (1e3, "ms", 2), (1e6, "s", 2))
_DIGITS = re.compile(r"([0-9]+)")
# Python reads no number of thousands of digits.
_MOST_DIGITS = 18
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, limit: int | None = LONGEST_NAME) -> str:
    """One line of printable characters; beyond `limit` the middle gives way to a count."""
    if limit is not None and len(text) > limit:
        tail = limit // 4
        mark = f"…(+{len(text) - limit:,} chars)…"
        return visible(text[: limit - tail], None) + mark + visible(text[-tail:], None)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    short = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return _ESCAPES.get(character) or (short if code < 0x10000 else f"\\U{code:08x}")


def duration(microseconds: float | None) -> str:
    if microseconds is None or math.isnan(microseconds):
        return NOT_KNOWN
    size = abs(microseconds)
    if size == 0:
        return "0 us"
    scale, unit, decimals = next(
        (entry for entry in _UNITS if round(size / entry[0], entry[2]) < 1000), _UNITS[-1]
    )
    return f"{microseconds / scale:,.{decimals}f} {unit}"


def share(value: float | None) -> str:
    return NOT_KNOWN if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def at_least(value: float | None) -> str:
    """A share that is a lower bound: rounded down."""
    if value is None or math.isnan(value):
        return NOT_KNOWN
    return f"at least {share(math.floor(1000 * value) / 1000)}"


def number(value: int | None) -> str:
    return NOT_KNOWN if value is None else f"{value:,}"


def rate(value: float | None, unit: str) -> str:
    return NOT_KNOWN if value is None or math.isnan(value) else f"{value:,.2f} {unit}"


def size(count: int) -> str:
    """Bytes in decimal units, as file managers of object stores show them."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count} B"


def natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key by which TPU:2 stands before TPU:10."""
    return [
        (int(part), "") if part.isdecimal() and len(part) <= _MOST_DIGITS else (-1, part)
        for part in _DIGITS.split(name)
    ]


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def either(names: Iterable[str]) -> str:
    """The names as alternatives: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
