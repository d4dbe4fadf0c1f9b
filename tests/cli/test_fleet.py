"""`fleet`: the table in each format, and exit code 1 for what is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from fleet_captures import write_fleet


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_fleet(tmp_path / "fleet", runs=5, slow=(4,), broken=())


def test_a_fleet_on_the_screen(call: Any, root: Path) -> None:
    result = call("fleet", root)
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "# Fleet report\n\n5 captures in 1 group; 1 slow.\n\n- `run-04/"
    )


def test_what_is_broken_is_exit_code_1(call: Any, root: Path) -> None:
    write_fleet(root, runs=6, slow=(4,), broken=(5,))
    result = call("fleet", root)
    assert result.exit_code == 1
    assert "**1 could not be summarised**" in result.stdout
    assert result.stderr.splitlines()[-1] == "note: 1 capture could not be summarised."


def test_the_rows_as_json_and_parquet(call: Any, root: Path, tmp_path: Path) -> None:
    output, table = tmp_path / "fleet.json", tmp_path / "fleet.parquet"
    result = call("fleet", root, "-o", output, "--table", table, "--jobs", "2")
    assert (result.exit_code, result.stdout) == (0, f"{output}\n")
    rows = json.loads(output.read_text())["rows"]
    assert [row["step_typical"] for row in rows] == [1000.0, 1001.0, 1002.0, 1003.0, 1200.0]
    read = pyarrow.parquet.read_table(table)
    assert read.column("step_typical").to_pylist() == [row["step_typical"] for row in rows]
    assert read.column("hosts").to_pylist() == [row["hosts"] for row in rows]
    assert read.schema.field("step_typical").metadata == {b"unit": b"us"}
    assert read.schema.field("name").metadata is None


def test_a_page(call: Any, root: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    assert call("fleet", root, "-o", page, "--label", "canary").exit_code == 0
    assert "Typical step of TPU v6 Lite, config canary" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "exit_code"), [(["nowhere"], 3), (["nowhere", "--table", "rows.csv"], 2)]
)
def test_errors(call: Any, arguments: list[str], exit_code: int) -> None:
    assert call("fleet", *arguments).exit_code == exit_code
