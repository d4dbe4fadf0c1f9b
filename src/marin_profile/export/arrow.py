"""Events as a table of Arrow, and as Parquet.

Contract: texts are dictionary-encoded, times int64. pyarrow is imported when it is asked for, and
where it is not installed the error names the extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from marin_profile.base.errors import MissingPackageError
from marin_profile.capture.sources import Capture
from marin_profile.export.rows import COLUMNS, TEXTS, UNKNOWN, Block, event_blocks

# Rows of a row group, the last one's apart: readers skip and share out work by row groups.
ROW_GROUP = 1 << 18


def require_pyarrow() -> None:
    """Raises MissingPackageError."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "A table of events needs pyarrow: pip install 'marin-profile[events]'; .csv and .jsonl "
            "files need nothing."
        ) from error


def events_table(capture: Capture, note: Callable[[str], None]) -> Any:
    """All device events as a pyarrow.Table. Raises MissingPackageError, and what `event_blocks`
    raises."""
    require_pyarrow()
    return _table([_batch(block) for block in event_blocks(capture, note)])


def write_parquet(blocks: Iterable[Block], target: Path) -> int:
    """How many events."""
    import pyarrow.parquet as parquet

    count = 0
    with (
        target.open("wb") as file,
        parquet.ParquetWriter(
            file, _schema(), compression="zstd", use_dictionary=list(TEXTS)
        ) as writer,
    ):
        for group in _groups(blocks):
            table = _table([_batch(block) for block in group])
            writer.write_table(table, row_group_size=len(table))
            count += len(table)
    return count


def _groups(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    group: list[Block] = []
    for block in blocks:
        group.append(block)
        if sum(one.count for one in group) >= ROW_GROUP:
            yield group
            group = []
    if group:
        yield group


def _schema() -> Any:
    import pyarrow

    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    return pyarrow.schema(
        [pyarrow.field(name, text if name in TEXTS else pyarrow.int64()) for name in COLUMNS]
    )


def _batch(block: Block) -> Any:
    import pyarrow

    columns = []
    for name in COLUMNS:
        if name == "step":
            columns.append(pyarrow.array(block.step, mask=~block.has_step))
        elif name in TEXTS:
            texts = block.texts[name]
            codes = pyarrow.array(texts.codes, mask=texts.codes == UNKNOWN)
            values = pyarrow.array(texts.values, pyarrow.string())
            columns.append(pyarrow.DictionaryArray.from_arrays(codes, values))
        else:
            columns.append(pyarrow.array(block.numbers[name]))
    return pyarrow.RecordBatch.from_arrays(columns, schema=_schema())


def _table(batches: list[Any]) -> Any:
    """One dictionary for each column."""
    import pyarrow

    return pyarrow.Table.from_batches(batches, _schema()).unify_dictionaries().combine_chunks()
