"""JSON text as bytes: numba functions that find where values end and read numbers exactly.

Contract
* A buffer is a uint8 array, a position an index into it; a span is the (start, stop) of a value,
  the quotes of a string included.
* `CUT` means that the buffer ends too early (more bytes may help), `BAD` that this is no JSON.
* Nothing at or after `end` counts, but the array must own 8 more bytes, whatever they hold.
* Numbers are read from their decimal text, never as doubles.
"""

from __future__ import annotations

import numpy as np

from marin_profile.base.jit import jit_no_alloc

CUT = -1
BAD = -2

MAX_DEPTH = 64
MILLION = 1_000_000
# Whole units stay below 4e18, so that the difference of two fits int64.
MAX_WHOLE = 400_000_000_000_000_000

# By byte: 0 inside a bare token, 1 may follow it, 2 must not.
AFTER_TOKEN = np.zeros(256, np.uint8)
AFTER_TOKEN[:33] = 1
AFTER_TOKEN[list(b",]}")] = 1
AFTER_TOKEN[list(b'":{[')] = 2

ONES = np.uint64(0x0101010101010101)
TOPS = np.uint64(0x8080808080808080)
QUOTES = np.uint64(0x2222222222222222)
BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)


@jit_no_alloc(always=True)
def load_word(buf, i):
    """Eight bytes, little-endian; unsigned indices make this one machine instruction."""
    at = np.uint64(i)
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(buf[at + np.uint64(k)]) << np.uint64(8 * k)
    return word


@jit_no_alloc(always=True)
def zero_bytes(word):
    """The top bit of the lowest zero byte of `word` (and perhaps of bytes above it); 0 if none."""
    return (word - ONES) & ~word & TOPS


@jit_no_alloc(always=True)
def lowest_byte(tops):
    """Which byte holds the lowest bit of `tops`, a non-zero result of `zero_bytes`."""
    below = (tops & (~tops + np.uint64(1))) - np.uint64(1)
    return np.int64(((below & ONES) * ONES) >> np.uint64(56)) - 1


@jit_no_alloc(always=True)
def skip_space(buf, i, end):
    """The position of the next byte that is no white space (nor a control character)."""
    while i < end and buf[i] <= 32:
        i += 1
    return i


@jit_no_alloc(always=True)
def string_end(buf, i, end):
    """The position after the string that opens at `i`, or CUT."""
    i += 1
    while i < end:
        word = load_word(buf, i)
        hits = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES)
        if hits == 0:
            i += 8
            continue
        i += lowest_byte(hits)
        if i >= end:
            return CUT
        if buf[i] == 34:
            return i + 1
        i += 2
    return CUT


@jit_no_alloc(always=True)
def container_end(buf, i, end):
    """The position after the object or array that opens at `i`; brackets are only counted."""
    depth = 0
    while i < end:
        c = buf[i]
        if c == 34:
            i = string_end(buf, i, end)
            if i < 0:
                return i
            continue
        i += 1
        if c == 123 or c == 91:
            depth += 1
            if depth > MAX_DEPTH:
                return BAD
        elif c == 125 or c == 93:
            depth -= 1
            if depth == 0:
                return i
    return CUT


@jit_no_alloc(always=True)
def token_end(buf, i, end):
    """The position after a bare number or word (NaN too)."""
    start = i
    while i < end and AFTER_TOKEN[buf[i]] == 0:
        i += 1
    if i >= end:
        return CUT
    return i if i > start and AFTER_TOKEN[buf[i]] == 1 else BAD


@jit_no_alloc(always=True)
def value_end(buf, i, end):
    """The position after the value that starts at `i`, CUT or BAD."""
    if i >= end:
        return CUT
    c = buf[i]
    if c == 34:
        return string_end(buf, i, end)
    if c == 123 or c == 91:
        return container_end(buf, i, end)
    return token_end(buf, i, end)


@jit_no_alloc(always=True)
def unquoted(buf, start, stop):
    """The span without its quotes and the spaces inside them."""
    if stop - start >= 2 and buf[start] == 34:
        start += 1
        stop -= 1
    start = skip_space(buf, start, stop)
    while stop > start and buf[stop - 1] == 32:
        stop -= 1
    return start, stop


@jit_no_alloc(always=True)
def digit_at(buf, i):
    """The digit at `i`; outside 0 to 9 if there is none."""
    return np.int64(buf[i]) - 48


@jit_no_alloc(always=True)
def parse_int(buf, start, stop):
    """(value, is it an integer), modulo 2^64 in two's complement; the span may be quoted."""
    i, stop = unquoted(buf, start, stop)
    negative = i < stop and buf[i] == 45
    if negative or (i < stop and buf[i] == 43):
        i += 1
    if i >= stop:
        return 0, False
    value = 0
    while i < stop:
        digit = digit_at(buf, i)
        if digit < 0 or digit > 9:
            return 0, False
        value = value * 10 + digit
        i += 1
    return -value if negative else value, True


@jit_no_alloc(always=True)
def parse_exponent(buf, i, stop):
    """(exponent, is it one); beyond 9999 it stays there."""
    negative = i < stop and buf[i] == 45
    if negative or (i < stop and buf[i] == 43):
        i += 1
    if i >= stop:
        return 0, False
    value = 0
    while i < stop:
        digit = digit_at(buf, i)
        if digit < 0 or digit > 9:
            return 0, False
        value = min(value * 10 + digit, 9999)
        i += 1
    return -value if negative else value, True


@jit_no_alloc(always=True)
def digits_end(buf, i, stop):
    while i < stop and 48 <= buf[i] <= 57:
        i += 1
    return i


@jit_no_alloc(always=True)
def parse_scientific(buf, start, stop):
    """`parse_plain` for text with an exponent; the position is -1 if it is no number."""
    dot = digits_end(buf, start, stop)
    mantissa = dot
    if dot < stop and buf[dot] == 46:
        mantissa = digits_end(buf, dot + 1, stop)
    exponent, ok = parse_exponent(buf, mantissa + 1, stop)
    if not ok or (buf[mantissa] | 32) != 101 or mantissa - start < 1 + (mantissa > dot):
        return 0, 0, 0, -1
    point = dot - start + exponent
    whole = 0
    millionths = 0
    rest = 0
    at = 0
    for i in range(start, mantissa):
        digit = digit_at(buf, i)
        if digit < 0:
            continue
        if at < point:
            if whole > MAX_WHOLE:
                return 0, 0, 0, -1
            whole = whole * 10 + digit
        elif at < point + 6:
            millionths = millionths * 10 + digit
        elif at == point + 6:
            rest = 2 * digit
        elif digit > 0:
            rest |= 1
        at += 1
    while at < point and whole > 0:
        if whole > MAX_WHOLE:
            return 0, 0, 0, -1
        whole *= 10
        at += 1
    for _ in range(max(at, point), point + 6):
        millionths *= 10
    return whole, millionths, rest, stop


@jit_no_alloc(always=True)
def parse_plain(buf, i, stop):
    """(whole, millionths, rest, position where the number ends) of unsigned text.

    `rest` tells what follows the millionths: below, equal to or above 10 as it is below, equal to
    or above half of one.
    """
    start = i
    whole = 0
    while i < stop and 48 <= buf[i] <= 57:
        if whole > MAX_WHOLE:
            return 0, 0, 0, i
        whole = whole * 10 + digit_at(buf, i)
        i += 1
    if i >= stop or buf[i] != 46:
        return whole, 0, 0, i if i > start else -1
    i += 1
    millionths = 0
    places = 0
    while i < stop and places < 6 and 48 <= buf[i] <= 57:
        millionths = millionths * 10 + digit_at(buf, i)
        places += 1
        i += 1
    if places == 0 and i - start == 1:
        return 0, 0, 0, -1
    while places < 6:
        millionths *= 10
        places += 1
    rest = 0
    if i < stop and 48 <= buf[i] <= 57:
        rest = 2 * digit_at(buf, i)
        i += 1
    while i < stop and 48 <= buf[i] <= 57:
        rest |= buf[i] > 48
        i += 1
    return whole, millionths, rest, i


@jit_no_alloc(always=True)
def parse_decimal(buf, start, stop):
    """(whole, millionths, is it a number below 4e18): decimal text, possibly quoted.

    The value is whole + millionths / 10^6 with 0 <= millionths < 10^6, rounded to the nearest
    millionth, ties to even.
    """
    i, stop = unquoted(buf, start, stop)
    negative = i < stop and buf[i] == 45
    if negative or (i < stop and buf[i] == 43):
        i += 1
    whole, millionths, rest, after = parse_plain(buf, i, stop)
    if 0 <= after < stop:
        whole, millionths, rest, after = parse_scientific(buf, i, stop)
    if after != stop:
        return 0, 0, False
    if rest > 10 or (rest == 10 and millionths & 1):
        millionths += 1
    if millionths == MILLION:
        whole += 1
        millionths = 0
    if negative:
        if millionths > 0:
            return -whole - 1, MILLION - millionths, True
        return -whole, 0, True
    return whole, millionths, True
