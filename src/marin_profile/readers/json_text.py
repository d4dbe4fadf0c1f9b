"""JSON text as bytes: where values end, and numbers read exactly.

Contract
* A buffer is bytes or a view of them, a position an index into it. Nothing at or after `end`
  counts. A value's text has the quotes of a string.
* `CUT` means that the buffer ends too early (more bytes may help), `BAD` that this is no JSON.
* Control characters count as white space, and bare words (NaN too) as values.
* Numbers are read from their decimal text, never as doubles.
"""

from __future__ import annotations

import json
import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

Buffer = bytes | memoryview

CUT = -1
BAD = -2

MAX_DEPTH = 64
MILLION = 1_000_000
# Whole units stay below it, so that the difference of two fits int64.
MAX_WHOLE = 4_000_000_000_000_000_010

SPACE = rb"[\x00-\x20]*+"
CHARACTERS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
STRING = b'"' + CHARACTERS + b'"'
_IN_TOKEN = rb'[^\x00-\x20,\]}":{\[]'
TOKEN = _IN_TOKEN + rb"++(?=[\x00-\x20,\]}])"

_space = re.compile(SPACE).match
_string = re.compile(STRING, re.DOTALL).match
_token = re.compile(_IN_TOKEN + rb"*+").match
_brackets = re.compile(rb'(%b)|(")|([\[{])|[\]}]' % STRING, re.DOTALL).finditer
_integer = re.compile(rb'(?:"[\x00-\x20]*+)?([+-]?)(\d+) *"?').fullmatch
_decimal = re.compile(
    rb'(?:"[\x00-\x20]*+)?([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+))? *"?'
).fullmatch
_exact = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_EVEN)
# Modulo 2^64 the digits before the last 64 of an integer count for nothing.
_DIGITS = 64
_LONGEST_EXPONENT = 9
_MOST_DIGITS = 20


def skip_space(buffer: Buffer, i: int, end: int) -> int:
    """The position of the next byte that is no white space (nor a control character)."""
    found = _space(buffer, i, end)
    return found.end() if found else i


def string_end(buffer: Buffer, i: int, end: int) -> int:
    """The position after the string that opens at `i`, or CUT."""
    found = _string(buffer, i, end)
    return found.end() if found else CUT


def value_end(buffer: Buffer, i: int, end: int) -> int:
    """The position after the value that starts at `i`, CUT or BAD."""
    if i >= end:
        return CUT
    opens = buffer[i]
    if opens == ord('"'):
        return string_end(buffer, i, end)
    if opens in b"{[":
        return _container_end(buffer, i, end)
    found = _token(buffer, i, end)
    after = found.end() if found else i
    if after >= end:
        return CUT
    return BAD if after == i or buffer[after] in b'":{[' else after


def _container_end(buffer: Buffer, i: int, end: int) -> int:
    """The position after the object or array that opens at `i`; brackets are only counted."""
    depth = 0
    for found in _brackets(buffer, i, end):
        kind = found.lastindex
        if kind == 3:
            depth += 1
            if depth > MAX_DEPTH:
                return BAD
        elif kind is None:
            depth -= 1
            if depth == 0:
                return found.end()
        elif kind == 2:
            return CUT
    return CUT


def parse_int(text: bytes) -> int | None:
    """An integer, perhaps quoted, modulo 2^64 in two's complement; None if it is none."""
    found = _integer(text)
    if not found:
        return None
    sign, digits = found.groups()
    value = int(digits[-_DIGITS:])
    if value >> 63 or sign == b"-":
        value = (-value if sign == b"-" else value) + (1 << 63)
        return value % (1 << 64) - (1 << 63)
    return value


def parse_decimal(text: bytes) -> tuple[int, int] | None:
    """(whole, millionths) of decimal text, perhaps quoted; None if it is no number below MAX_WHOLE.

    The value is whole + millionths / 10^6 with 0 <= millionths < 10^6, rounded to the nearest
    millionth, ties to even.
    """
    found = _decimal(text)
    if not found:
        return None
    mantissa, exponent = found.groups()
    if exponent and len(exponent) > _LONGEST_EXPONENT:
        is_small = exponent.startswith(b"-") or not mantissa.strip(b"+-0.")
        return (0, 0) if is_small else None
    value = Decimal((mantissa + b"e" + exponent if exponent else mantissa).decode())
    if value.adjusted() > _MOST_DIGITS and value:
        return None
    millionths = int(_exact.to_integral_value(_exact.scaleb(value, 6)))
    if abs(millionths) >= MAX_WHOLE * MILLION:
        return None
    return divmod(millionths, MILLION)


def decode(text: bytes) -> str:
    """A string's content, anything else as it stands, "" for null; never fails."""
    decoded = text.decode("utf-8", "replace")
    if not decoded.startswith('"'):
        return "" if decoded == "null" else decoded
    if "\\" not in decoded:
        return decoded[1:-1]
    try:
        decoded = json.loads(decoded, strict=False)
    except ValueError:
        return decoded[1:-1]
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
