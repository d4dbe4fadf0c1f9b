"""Where records are kept: one JSONL file, or a folder (also an fsspec URL) of one object each.

Contract
* `append` returns when the record is on disk. From then on it is never lost, whatever happens to
  other writers; any number of them may write at once.
* `read` reports what a killed writer left behind, and reads the rest; the next `append` removes
  it.
* Records are read in the order of capture time, then content hash, from either store; a record
  that is there twice counts once.
* The lock (flock) is on the file itself: it cannot be separated from the data, and leaves nothing
  behind. This module never replaces the file. Where file locks do not work, use a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from marin_profile.base.durable import append_line
from marin_profile.base.errors import BrokenInputError, NotFoundError, UsageError
from marin_profile.base.json_text import read_json
from marin_profile.base.storage import files_below, is_url, open_file, plain, read_files, write_file
from marin_profile.base.text import size, visible
from marin_profile.history.legacy_lines import is_legacy_line, record_of_legacy_line
from marin_profile.history.record import HISTORY_SCHEMA, HistoryRecord

_SUFFIX = ".json"
_HASH_DIGITS = 16
LARGEST_FILE = 1_000_000_000  # bytes
LARGEST_RECORD = 10_000_000


@dataclass(frozen=True)
class History:
    """All records of a store; `problems` names what could not be read, one sentence each."""

    records: tuple[HistoryRecord, ...] = ()
    problems: tuple[str, ...] = ()


def append(target: str, record: HistoryRecord) -> None:
    """Keep a record. `target`: a JSONL file, or a folder: an existing one, a path that ends in "/",
    or any URL. Raises UsageError where it cannot be written."""
    target = plain(target)
    if is_url(target) and target.endswith(".jsonl"):
        raise UsageError(
            f"{target} cannot be appended to: object stores only write whole objects; name a "
            "folder, which gets one object per record."
        )
    if is_url(target) or _is_folder(target):
        write_file(f"{target.rstrip('/')}/{object_name(record)}", record.to_line() + b"\n")
    else:
        _append_line(Path(target), record.to_line())


def read(target: str, *, missing_ok: bool = False) -> History:
    """All records of a store. Raises NotFoundError where there is none, unless `missing_ok`."""
    target = plain(target)
    try:
        if _is_folder(target) or (is_url(target) and not target.endswith(".jsonl")):
            return _history(_objects(target))
        return _history(_lines(target))
    except NotFoundError as error:
        if missing_ok and isinstance(error.__cause__, FileNotFoundError):
            return History()
        raise


def object_name(record: HistoryRecord) -> str:
    """Its time and the head of its content hash: no two records share a name."""
    time = record.time.replace("-", "").replace(":", "")
    return f"{time}-{record.content_hash[:_HASH_DIGITS]}{_SUFFIX}"


def _is_folder(target: str) -> bool:
    return not is_url(target) and (target.endswith("/") or os.path.isdir(target))


def _append_line(path: Path, line: bytes) -> None:
    try:
        append_line(path, line)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be appended to: {error.strerror or error}; name a file on a disk that "
            "has file locks, or a folder."
        ) from error


# Reading: (where, content) of each line or object; no content of one that is too large


def _lines(path: str) -> Iterator[tuple[str, bytes]]:
    with open_file(path) as stream:
        if not is_url(path):
            _wait_for_writer(stream.fileno())
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise BrokenInputError(
            f"{path} is larger than {size(LARGEST_FILE)}; keep so long a history in a folder."
        )
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            torn = " (the last; its writer was stopped)" if number == len(lines) else ""
            yield f"{path}, line {number}{torn}", line


def _wait_for_writer(descriptor: int) -> None:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # until closed
    except OSError:
        return  # no locks here, so `append` does not write here either


def _objects(folder: str) -> Iterator[tuple[str, bytes | None]]:
    sizes = {
        name: length
        for name, length in files_below(folder)
        if "/" not in name and name.endswith(_SUFFIX) and not name.startswith(".")
    }
    names = [name for name, length in sizes.items() if length <= LARGEST_RECORD]
    contents = dict(zip(names, read_files(folder, names), strict=True))
    for name in sizes:
        yield f"{folder.rstrip('/')}/{name}", contents.get(name)


def _history(pieces: Iterable[tuple[str, bytes | None]]) -> History:
    by_time: dict[str, list[HistoryRecord]] = {}
    problems = []
    for where, content in pieces:
        parsed = _parse(content)
        if isinstance(parsed, str):
            problems.append(f"{where} is left out: {parsed}.")
        else:
            by_time.setdefault(parsed.time, []).append(parsed)
    ordered = (one for _, found in sorted(by_time.items()) for one in _distinct(found))
    return History(tuple(ordered), tuple(problems))


def _distinct(records: list[HistoryRecord]) -> list[HistoryRecord]:
    """Of one time, by content hash, which takes long and is seldom needed."""
    if len(records) == 1:
        return records
    by_hash = {record.content_hash: record for record in records}
    return [by_hash[one] for one in sorted(by_hash)]


def _parse(content: bytes | None) -> HistoryRecord | str:
    """A record, or why there is none."""
    if content is None or len(content) > LARGEST_RECORD:
        return f"it is larger than {size(LARGEST_RECORD)}"
    try:
        data = read_json(content)
    except ValueError as error:
        return str(error)
    if not isinstance(data, dict):
        return "it holds no record"
    version = data.get("schema_version")
    is_ours = version == HISTORY_SCHEMA
    if not is_ours and not is_legacy_line(data):
        return f"its schema_version is {visible(repr(version))}, not {HISTORY_SCHEMA!r}"
    try:
        if not is_ours:
            return record_of_legacy_line(data)
        return HistoryRecord.model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{visible(where, 200)}: {visible(first['msg'], 200)}"
    except ValueError as error:
        return str(error)
