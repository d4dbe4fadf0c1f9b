"""Rich text: a str in which names are marked as code, and some words as strong.

Contract: the marks are control characters, which `visible` never lets through, so that no name can
end or begin one. What stands outside of marks is plain text: each renderer escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from marin_profile.base.text import LONGEST_NAME, visible

_CODE, _CODE_END, _STRONG, _STRONG_END = "\x11", "\x12", "\x13", "\x14"
_MARKS = re.compile(f"([{_CODE}{_CODE_END}{_STRONG}{_STRONG_END}])")
INDENT = "\u00a0\u00a0"


@dataclass(frozen=True, slots=True)
class Run:
    """A part of a rich text that looks the same throughout."""

    text: str
    is_code: bool
    is_strong: bool


def code(text: str, limit: int | None = LONGEST_NAME) -> str:
    """A name, marked, with escapes for what cannot be seen."""
    shown = visible(text, limit)
    return f"{_CODE}{shown if shown.strip() else '(empty)'}{_CODE_END}"


def strong(text: str) -> str:
    return f"{_STRONG}{text}{_STRONG_END}"


def plain(text: str, limit: int | None = 2000) -> str:
    """Running text of somebody else's: it marks nothing."""
    return visible(text.replace("\n", " "), limit)


def runs(text: str) -> Iterator[Run]:
    is_code = is_strong = False
    for part in _MARKS.split(text):
        if part in (_CODE, _CODE_END):
            is_code = part == _CODE
        elif part in (_STRONG, _STRONG_END):
            is_strong = part == _STRONG
        elif part:
            yield Run(part, is_code, is_strong)


def unmarked(text: str) -> str:
    """The text alone."""
    return _MARKS.sub("", text)
