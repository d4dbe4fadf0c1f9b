"""How much of an answer is told at once, and how a client goes on.

Contract
* A page is compact JSON with `results`, `returned` of `total` rows, `truncated` and, where rows are
  left, a `cursor`. The rows of all pages are those of the answer, in order, without what is null;
  numbers have six decimals, as wherever they are written.
* A cursor is where the next page begins and the hash of the answer: nothing is kept between calls,
  and of an answer that has changed it is refused.
* The page as it stands in a JSON message has at most MOST_CHARACTERS less the message's own. Texts
  and lists are cut only where not even one row fits; what is cut says so, and the page is
  `shortened`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from marin_profile.base.errors import CannotAnswerError, UsageError

MOST_CHARACTERS = 6000
# Of a result without its text: {"content":[{"type":"text","text":...}],"isError":false, ...}.
MESSAGE = 300
SHORTER = (1000, 250, 60, 20)
LIST_ITEMS = 40
DECIMALS = 6
_COUNTS = ("results", "returned", "truncated")


def page_of(answered: Mapping[str, Any], cursor: str | None) -> str:
    """The page where the cursor points, the first without one, as JSON. Raises UsageError for a
    cursor of another answer."""
    written = known(dict(answered))
    digest = hashlib.sha256(_json(written).encode()).hexdigest()[:12]
    rows = written.get("results", [])
    start = 0 if cursor is None else _start(cursor, digest, len(rows))
    head = {name: value for name, value in written.items() if name not in _COUNTS}
    page = _fitting(head, rows, start, digest)
    for most in () if page else SHORTER:
        shown = [*rows[:start], *(cut(row, most) for row in rows[start : start + 1])]
        shown += rows[start + 1 :]
        shorter = {**{name: cut(value, most) for name, value in head.items()}, "shortened": True}
        page = page or _fitting(shorter, shown, start, digest, most_rows=1)
    if page is None:
        raise CannotAnswerError("One row of this answer is too large to be told; ask for less.")
    return page


def known(value: Any) -> Any:
    """Without what is null, with the decimals that summaries are written with."""
    if isinstance(value, dict):
        return {name: known(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [known(item) for item in value]
    return round(value, DECIMALS) if isinstance(value, float) else value


def cut(value: Any, most: int) -> Any:
    """Texts of at most `most` characters, and as many items of a list as LIST_ITEMS, or `most`."""
    if isinstance(value, str):
        left = len(value) - most
        return f"{value[:most]}…(+{left:,} characters)" if left > 0 else value
    items = min(most, LIST_ITEMS)
    if isinstance(value, dict):
        names = list(value)
        kept = {cut(name, most): cut(value[name], most) for name in names[:items]}
        return kept if len(names) <= items else {**kept, "…": f"+{len(names) - items:,} entries"}
    if isinstance(value, list):
        rest = [f"…(+{len(value) - items:,} items)"] if len(value) > items else []
        return [*(cut(item, most) for item in value[:items]), *rest]
    return value


def _fitting(
    head: Mapping[str, Any],
    rows: Sequence[Any],
    start: int,
    digest: str,
    most_rows: int | None = None,
) -> str | None:
    """The page with as many rows as fit; None if there are some and none fits."""
    room = MOST_CHARACTERS - MESSAGE
    size = _size(_page(head, rows, start, start, digest))
    end = start
    while end < len(rows) and (most_rows is None or end - start < most_rows):
        size += _size(_json(rows[end])) + 1
        if size > room:
            break
        end += 1
    # Units come with the rows, so that the sum of the rows is not the whole.
    while end > start and _size(_page(head, rows, start, end, digest)) > room:
        end -= 1
    page = _page(head, rows, start, end, digest)
    is_whole = end > start or start == len(rows)
    return page if is_whole and _size(page) <= room else None


def _page(head: Mapping[str, Any], rows: Sequence[Any], start: int, end: int, digest: str) -> str:
    shown = rows[start:end]
    left = end < len(rows)
    page = {
        **head,
        "results": shown,
        "returned": len(shown),
        "total": len(rows),
        "truncated": left,
    }
    if isinstance(head.get("units"), dict):
        names = _names(shown)
        page["units"] = {name: unit for name, unit in head["units"].items() if name in names}
    if left:
        page["cursor"] = _cursor(end, digest)
    return _json(page)


def _json(value: Any) -> str:
    """Characters that a terminal would act on, or that turn text around, are escapes."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _size(text: str) -> int:
    """As a string within JSON."""
    return len(json.dumps(text))


def _names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in _names(item)}
    return {name for item in value for name in _names(item)} if isinstance(value, list) else set()


def _cursor(start: int, digest: str) -> str:
    return base64.urlsafe_b64encode(f"{start}:{digest}".encode()).decode().rstrip("=")


def _start(cursor: str, digest: str, rows: int) -> int:
    try:
        text = base64.urlsafe_b64decode(f"{cursor[:64]}===").decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    start, _, of = text.partition(":")
    if not (start.isascii() and start.isdecimal() and len(start) < 19 and of):
        raise UsageError("That is no cursor; leave it out for the first page.")
    if of != digest or not 0 < int(start) < rows:
        raise UsageError("The cursor is of another answer; ask again without it.")
    return int(start)
