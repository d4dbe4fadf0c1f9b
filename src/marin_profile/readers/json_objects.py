"""The objects of an events array: where they end, and the texts of their members.

Contract
* Members are (key -> value) as they stand in the text, keys without quotes; of two values of a key
  the last counts. `args` is None unless the object has an object of that name, whose members it is;
  what is nested deeper is one value.
* `CUT` and `BAD` as in json_text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from marin_profile.readers.json_text import (
    BAD,
    CHARACTERS,
    CUT,
    SPACE,
    STRING,
    TOKEN,
    Buffer,
    skip_space,
    string_end,
    value_end,
)

Members = dict[bytes, bytes]

_ARGS = b"args"
_BLANKS = bytes(range(33))

_empty = re.compile(rb"\{%b\}" % SPACE).match
# A member and what follows its value, or what opens its value if that is an object.
_member = re.compile(
    rb'%b"(%b)"%b:%b(?:(%b|%b)%b([,}])|(\{)(?:%b(\}))?)'
    % (SPACE, CHARACTERS, SPACE, SPACE, STRING, TOKEN, SPACE, SPACE),
    re.DOTALL,
).match
# A search for a literal's first byte is the fastest.
_opening = re.compile(rb'\{%b(?:"|\Z)' % SPACE).search


class Object(NamedTuple):
    """`end`: the position after it, CUT or BAD (then the members are those before the damage)."""

    end: int
    own: Members
    args: Members | None


def read_object(buffer: Buffer, i: int, end: int) -> Object:
    """The object that opens at `i`."""
    own: Members = {}
    args: Members | None = None
    if found := _empty(buffer, i, end):
        return Object(found.end(), own, args)
    at, members = i + 1, own
    while True:
        found = _member(buffer, at, end)
        key, value, behind, opens, closes = found.groups() if found else _NO_MEMBER
        if found and value is not None:
            members[key] = value
            at = found.end()
        elif found and opens and key == _ARGS and members is own:
            at = found.end()
            args = {} if args is None else args
            if not closes:
                members = args
                continue
        else:
            key, value, at = _any_member(buffer, at, end)
            if at < 0:
                return Object(at, own, args)
            members[key] = value
        while behind != b",":
            if behind == b"}":
                if members is own:
                    return Object(at, own, args)
                members = own
            at = skip_space(buffer, at, end)
            if at >= end:
                return Object(CUT, own, args)
            behind = bytes(buffer[at : at + 1])
            at += 1
            if behind not in (b",", b"}"):
                return Object(BAD, own, args)


_NO_MEMBER = (b"", None, None, None, None)


def _any_member(buffer: Buffer, i: int, end: int) -> tuple[bytes, bytes, int]:
    """Key, value and the position after it, which is CUT or BAD where there is none."""
    start = skip_space(buffer, i, end)
    if start < end and buffer[start] != ord('"'):
        return b"", b"", BAD
    stop = string_end(buffer, start, end) if start < end else CUT
    colon = skip_space(buffer, stop, end) if stop > 0 else end
    if colon >= end:
        return b"", b"", CUT
    if buffer[colon] != ord(":"):
        return b"", b"", BAD
    value = skip_space(buffer, colon + 1, end)
    after = value_end(buffer, value, end)
    return bytes(buffer[start + 1 : stop - 1]), bytes(buffer[value : max(after, value)]), after


def find_event(buffer: Buffer, i: int, end: int, *, final: bool) -> tuple[int, bool]:
    """The position of the first whole event at or after `i`, and whether there is one.

    Only an object that follows a comma or a bracket and has a `ph` counts. An incomplete one ends
    the search unless the bytes are `final`.
    """
    at = i
    while found := _opening(buffer, at, end):
        at = found.start()
        if _may_begin(buffer, i, at):
            read = read_object(buffer, at, end)
            if read.end >= 0 and b"ph" in read.own:
                return at, True
            if read.end == CUT and not final:
                return at, False
        at += 1
    return end, False


def _may_begin(buffer: Buffer, start: int, at: int) -> bool:
    """Whether an object at `at` follows a comma or a closed bracket, or nothing since `start`."""
    step = 64
    while at > start:
        before = bytes(buffer[max(at - step, start) : at]).rstrip(_BLANKS)
        if before:
            return before[-1] in b",[}"
        at, step = max(at - step, start), 2 * step
    return True
