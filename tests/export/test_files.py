"""Events in files: the same rows in each format, whole or absent, in memory that does not grow."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from builders_capture import leave_capture
from builders_xspace import Space
from marin_profile.base.errors import CannotAnswerError, MissingPackageError, UsageError
from marin_profile.capture.sources import Capture, resolve_path
from marin_profile.export import COLUMNS, write_events
from marin_profile.export.arrow import events_table
from marin_profile.export.rows import TEXTS


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    leave_capture(tmp_path / "run", host='h,"1"')
    return resolve_path(str(tmp_path / "run"))[0]


def expected() -> list[dict[str, object]]:
    return [
        {
            "host": 'h,"1"',
            "device": "/device:TPU:0",
            "step": step,
            "program": "jit_step",
            "program_id": "7",
            "op": "dot.1",
            "kind": "compute",
            "pass": "other",
            "region": None,
            "start_ps": 100_000_000 * step,
            "duration_ps": 80_000_000,
            "self_ps": 80_000_000,
            "exposed_ps": 80_000_000,
        }
        for step in range(4)
    ]


def written(capture: Capture, path: Path) -> Path:
    assert write_events(capture, str(path), note=print) == 4
    return path


def test_parquet(capture, tmp_path):
    table = pyarrow.parquet.read_table(written(capture, tmp_path / "deep" / "x.parquet"))
    assert table.to_pylist() == expected()
    assert tuple(table.column_names) == COLUMNS
    for field in table.schema:
        if field.name in TEXTS:
            assert pyarrow.types.is_dictionary(field.type)
        else:
            assert field.type == pyarrow.int64()
    assert events_table(capture, print).equals(table)


def test_the_same_bytes_each_time(capture, tmp_path):
    for ending in ("parquet", "csv", "jsonl"):
        one, two = (written(capture, tmp_path / f"{name}.{ending}") for name in "ab")
        assert one.read_bytes() == two.read_bytes()


def test_row_groups(capture, tmp_path, monkeypatch):
    monkeypatch.setattr("marin_profile.export.rows.BLOCK", 1)
    monkeypatch.setattr("marin_profile.export.arrow.ROW_GROUP", 3)
    path = written(capture, tmp_path / "x.parquet")
    facts = pyarrow.parquet.ParquetFile(path).metadata
    assert [facts.row_group(at).num_rows for at in range(facts.num_row_groups)] == [3, 1]
    assert pyarrow.parquet.read_table(path).to_pylist() == expected()


def test_csv(capture, tmp_path):
    path = written(capture, tmp_path / "X.CSV")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts = [
        {column: "" if value is None else str(value) for column, value in row.items()}
        for row in expected()
    ]
    assert rows == texts


def test_json_lines(capture, tmp_path):
    path = written(capture, tmp_path / "x.jsonl")
    assert [json.loads(line) for line in path.read_text().splitlines()] == expected()


def test_a_url(capture, tmp_path):
    write_events(capture, f"file://{tmp_path}/u.csv", note=print)
    write_events(capture, "memory://events/u.parquet", note=print)
    import fsspec

    with fsspec.open("memory://events/u.parquet", "rb") as file:
        assert pyarrow.parquet.read_table(file).to_pylist() == expected()
    assert (tmp_path / "u.csv").exists()


@pytest.mark.parametrize("name", ["x.txt", "parquet", "x.parquet.gz"])
def test_another_name_is_refused(capture, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.parquet, \.csv or \.jsonl"):
        write_events(capture, str(tmp_path / name), note=print)


def test_without_pyarrow(capture, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'marin-profile\[events\]'"):
        write_events(capture, str(tmp_path / "x.parquet"), note=print)
    with pytest.raises(MissingPackageError):
        events_table(capture, print)
    written(capture, tmp_path / "x.csv")


def test_what_fails_leaves_what_was_there(tmp_path):
    idle = Space("h")
    idle.host().marker(0, 0, 10)
    capture, _ = resolve_path(str(idle.write(tmp_path / "h.xplane.pb")))
    for name in ("x.parquet", "x.csv", "x.jsonl"):
        (tmp_path / name).write_text("before")
        with pytest.raises(CannotAnswerError):
            write_events(capture, str(tmp_path / name), note=print)
        assert (tmp_path / name).read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["h.xplane.pb", "x.csv", "x.jsonl", "x.parquet"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_named(capture, tmp_path):
    for name in ("full.parquet", "full.csv"):
        (tmp_path / name).symlink_to("/dev/full")
        with pytest.raises(UsageError, match=r"full\.\w+ cannot be written: No space left"):
            write_events(capture, str(tmp_path / name), note=print)


def test_texts_that_are_none_are_kept(tmp_path):
    """Hostile names stay what they are, and the file stays one."""
    space = Space("h")
    tpu = space.tpu(0)
    names = ['=cmd|" /C"!A0', "a\nb", "\x1b[31m", "\u202e", "<b>", ",", "é\ufffd"]
    for at, name in enumerate(names):
        tpu.op(name, 10 * at, 5, category="loop fusion")
    capture, _ = resolve_path(str(space.write(tmp_path / "h.xplane.pb")))
    ops = [row["op"] for row in events_table(capture, print).to_pylist()]
    assert ops == names
    write_events(capture, str(tmp_path / "x.csv"), note=print)
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        assert [row["op"] for row in csv.DictReader(file)] == names
