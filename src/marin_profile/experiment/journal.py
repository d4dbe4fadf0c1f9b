"""What was done, a line each: appended, synced, and read again after a kill.

Contract
* A file of JSON lines. The first one is the head: what all others are about. A record is on disk
  when `append` returns; nothing that stands there is ever changed.
* A last line that a killed writer did not finish is none. Any other damage is an error that names
  the line.
* A journal is gone on with under an equal head alone; else the error names what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.base.durable import append_line
from marin_profile.base.errors import BrokenInputError, UsageError
from marin_profile.base.text import visible

Entry = dict[str, Any]
MOST_NAMED = 3


class Journal:
    """`records`: those behind the head, in their order, those that are appended included."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        """Begin it, or go on with it. Raises UsageError where its head is another one, and where it
        cannot be written; BrokenInputError where it is damaged."""
        self._path = path
        found = read_journal(path)
        if not found:
            self._write(head)
        elif changes := sorted(_differences(found[0], json.loads(json.dumps(head)))):
            raise UsageError(
                f"{path} is of another plan: {_some(changes)} changed since it was begun; undo "
                "that, or name another folder."
            )
        self.records: list[Entry] = found[1:]

    def append(self, record: Mapping[str, Any]) -> None:
        self._write(record)
        self.records.append(json.loads(json.dumps(record)))

    def _write(self, record: Mapping[str, Any]) -> None:
        try:
            append_line(self._path, json.dumps(record, sort_keys=True).encode())
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be written: {error.strerror or error}."
            ) from error


def read_journal(path: Path) -> list[Entry]:
    """The head, then the records; empty where there is none. Raises BrokenInputError."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise BrokenInputError(f"{path} cannot be read: {error.strerror or error}.") from error
    lines = content.split(b"\n")
    torn = lines.pop()
    found = []
    for number, line in enumerate(lines, 1):
        record = _record(line)
        if record is None:
            raise BrokenInputError(
                f"{path}, line {number} is damaged; repair it, or name another folder."
            )
        found.append(record)
    whole = _record(torn)
    return found if whole is None else [*found, whole]


def converted(data: Any, kind: type[Any]) -> Any:
    """What a record holds besides its own kind. Raises BrokenInputError where it does not fit."""
    if isinstance(data, Mapping):
        data = {name: value for name, value in data.items() if name != "kind"}
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise BrokenInputError(
            f"The journal holds a record that is none of this version ({error}); name another "
            "folder."
        ) from error


def _record(line: bytes) -> Entry | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _differences(one: Any, two: Any, path: str = "") -> Iterator[str]:
    """Where they differ, by the names of the fields."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in one.keys() | two.keys():
            below = f"{path}.{key}" if path else key
            if key not in one or key not in two:
                yield below
            else:
                yield from _differences(one[key], two[key], below)
    elif one != two:
        yield path


def _some(names: list[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
