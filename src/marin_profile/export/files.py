"""Events into a file, in the format that its name tells.

Contract: the file is whole or absent, and the same for the same capture (Parquet: and the same
pyarrow). What is in memory does not grow with the number of events but for the capture itself.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec

from marin_profile.base.errors import UsageError
from marin_profile.base.storage import base_name, new_output, writing
from marin_profile.base.text import either
from marin_profile.capture.sources import Capture
from marin_profile.export.rows import COLUMNS, UNKNOWN, Block, Texts, event_blocks

PARQUET, CSV, JSON_LINES = ENDINGS = (".parquet", ".csv", ".jsonl")


def format_of_file(path: str) -> str:
    """One of ENDINGS. Raises UsageError for another name, and MissingPackageError."""
    for ending in ENDINGS:
        if base_name(path).lower().endswith(ending):
            break
    else:
        raise UsageError(
            f"Events go into a {either(ENDINGS)} file, by its name's end; {path} is none of them."
        )
    if ending == PARQUET:
        from marin_profile.export.arrow import require_pyarrow

        require_pyarrow()
    return ending


def write_events(capture: Capture, path: str, *, note: Callable[[str], None]) -> int:
    """Write all device events to a file or an fsspec URL; how many they are. Raises what
    `event_blocks` and `format_of_file` raise."""
    kind = format_of_file(path)
    blocks = event_blocks(capture, note)
    with new_output(path) as target, writing(path):
        if kind == PARQUET:
            from marin_profile.export.arrow import write_parquet

            return write_parquet(blocks, target)
        return _write_lines(blocks, target, _csv if kind == CSV else _json_lines)


def _write_lines(blocks: Iterable[Block], target: Path, lines: Callable[[Block], bytes]) -> int:
    count = 0
    with target.open("wb") as file:
        if lines is _csv:
            file.write(_csv_of([COLUMNS]))
        for block in blocks:
            file.write(lines(block))
            count += block.count
    return count


def _csv(block: Block) -> bytes:
    return _csv_of(plain_rows(block))


def _csv_of(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _json_lines(block: Block) -> bytes:
    encoder = msgspec.json.Encoder()
    lines = (encoder.encode(dict(zip(COLUMNS, row, strict=True))) for row in plain_rows(block))
    return b"\n".join(chain(lines, (b"",)))


def plain_rows(block: Block) -> Iterator[tuple[Any, ...]]:
    """In the order of COLUMNS; None is not known."""
    columns: list[Iterable[Any]] = []
    for column in COLUMNS:
        if column == "step":
            known = block.has_step.tolist()
            columns.append(
                step if has_step else None
                for step, has_step in zip(block.step.tolist(), known, strict=True)
            )
        elif column in block.texts:
            columns.append(_values(block.texts[column]))
        else:
            columns.append(block.numbers[column].tolist())
    return zip(*columns, strict=True)


def _values(texts: Texts) -> Iterable[str | None]:
    if len(texts.values) == 1 and (texts.codes != UNKNOWN).all():
        return list(repeat(texts.values[0], len(texts.codes)))
    # As an index, UNKNOWN is that of the entry appended.
    values = (*texts.values, None)
    return [values[code] for code in texts.codes.tolist()]
